import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AllowSet,
  defineTool,
  FeedbackStore,
  FinchError,
  retrieve,
  Selector,
  type Tool,
  ToolIndex,
} from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';

const tool = (name: string, description: string, group?: string): Tool =>
  defineTool(
    { name, description, inputSchema: { type: 'object' } },
    group === undefined ? {} : { group },
  );

const music = [
  tool('play_song', 'Plays a song by title or artist.'),
  tool('stop_song', 'Stops what is playing.'),
  tool('set_alarm', 'Wakes you at a time of day.'),
  tool('add_event', 'Puts an appointment into the calendar.'),
];

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'toolfinch-index-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function rejection(work: Promise<unknown>): Promise<FinchError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FinchError);
  return error as FinchError;
}

async function found(index: ToolIndex, text: string, options: object = {}): Promise<string[]> {
  const snapshot = index.snapshot();
  const vector = await index.encoder.encode([text]);
  const hits = await retrieve(index, snapshot, { text, vector }, { n: 10, ...options });
  snapshot.close();
  return hits.map(({ id }) => id);
}

describe('what was learnt of replaced tools', () => {
  const changes = async (forget: boolean) => {
    const encoder = new WordEncoder();
    const index = await ToolIndex.build(music, { encoder });
    const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
    const selector = new Selector({ index, feedback, method: 'lexical', shortlist: 4 });
    for (const { id } of music) {
      const decision = await selector.select(index.tool(id).description);
      await selector.report(decision.id, id, 'error');
    }
    const arms = () => feedback.bandit.arms.count;
    const options = forget ? { feedback } : {};
    const counts = [arms()];
    // The same tool again, with the text it had: it is not replaced.
    await index.upsert([tool('play_song', 'Plays a song by title or artist.')], options);
    counts.push(arms());
    await index.upsert([tool('play_song', 'Sings.'), tool('new_one', 'Is new.')], options);
    counts.push(arms());
    await index.remove(['stop_song'], options);
    counts.push(arms());
    await index.sync(music.slice(0, 3), options);
    counts.push(arms());
    await feedback.close();
    index.close();
    return counts;
  };

  it('is kept, or forgotten by choice', async () => {
    expect(await changes(false)).toEqual([4, 4, 4, 4, 4]);
    // play_song replaced; stop_song removed; then play_song replaced again (gone already) and add_event removed.
    expect(await changes(true)).toEqual([4, 4, 3, 2, 1]);
  });

  it('stays where it cannot be forgotten: the change is made, and the error told', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    const feedback = { drop: () => Promise.reject(new FinchError('FINCH_IO', 'no disk')) };
    expect((await rejection(index.remove(['stop_song'], { feedback }))).code).toBe('FINCH_IO');
    expect(index.get('stop_song')).toBeUndefined();
    index.close();
  });

  it('is asked for again where it could not be forgotten', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    const asked: string[][] = [];
    const refuses: unknown[] = [new FinchError('FINCH_CLOSED', 'closed.'), 'no disk'];
    const feedback = {
      async drop(ids: readonly string[]) {
        asked.push([...ids]);
        if (refuses.length > 0) throw refuses.shift();
      },
    };
    const first = await rejection(index.remove(['stop_song'], { feedback }));
    expect(first.code).toBe('FINCH_CLOSED');
    expect(first.message).toContain('stop_song');
    // Another feedback, or none, is not asked for what this one owes.
    const other: string[][] = [];
    const others = { drop: async (ids: readonly string[]) => void other.push([...ids]) };
    await index.remove(['set_alarm'], { feedback: others });
    await index.upsert([tool('play_song', 'Sings.')]);
    const second = await rejection(index.remove(['add_event'], { feedback }));
    expect(second.code).toBe('FINCH_INTERNAL');
    expect(second.cause).toBe('no disk');
    await index.upsert([], { feedback });
    await index.upsert([], { feedback });
    expect(asked).toEqual([['stop_song'], ['stop_song', 'add_event'], ['stop_song', 'add_event']]);
    expect(other).toEqual([['set_alarm']]);
    index.close();
  });

  it('may be forgotten by a drop that waits for other changes of the index', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    const feedback = {
      async drop(ids: readonly string[]) {
        await index.upsert(ids.map((id) => tool(`was_${id}`, 'Is kept as a note.')));
        await index.save(path.join(folder, 'during-drop.finch'));
      },
    };
    await index.remove(['stop_song'], { feedback });
    expect(index.ids()).toContain('was_stop_song');
    index.close();
  });
});

describe('ToolIndex', () => {
  it('finds by every method', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    for (const method of ['hybrid', 'dense', 'lexical'] as const) {
      expect((await found(index, 'play a song by this artist', { method }))[0]).toBe('play_song');
    }
    index.close();
  });

  it('embeds only texts that changed', async () => {
    const encoder = new WordEncoder();
    const index = await ToolIndex.build(music, { encoder, prior: 'none' });
    expect(encoder.encoded).toHaveLength(music.length);
    encoder.encoded.length = 0;
    const changed = [
      ...music.slice(0, 3),
      tool('add_event', 'Adds an appointment.'),
      tool('call_taxi', 'Orders a taxi.'),
    ];
    const summary = await index.sync(changed);
    expect(summary).toEqual({ added: 1, replaced: 1, unchanged: 3, removed: 0, encoded: 2 });
    expect(encoder.encoded).toHaveLength(2);
    expect(await found(index, 'order a taxi')).toContain('call_taxi');
    index.close();
  });

  it('keeps definitions byte for byte through a file, and the same search results', async () => {
    const encoder = new WordEncoder();
    const definition =
      '{ "name":"odd", "description":"Ünïcode 🐦 \\u00e9",\t"inputSchema": {"type":"object","x":1.0} }';
    const { importTools } = await import('../../dist/esm/lib/index.js');
    const odd = importTools(`{"tools": [${definition}]}`).tools;
    const index = await ToolIndex.build([...music, ...odd], { encoder });
    const file = path.join(folder, 'round.finch');
    await index.save(file);
    const opened = await ToolIndex.open(file, { encoder });
    expect(opened.get('odd')?.definition).toBe(definition);
    expect(opened.tools()).toEqual(index.tools());
    for (const text of ['play song', 'alarm', 'odd bird', 'nothing of this']) {
      expect(await found(opened, text)).toEqual(await found(index, text));
    }
    const before = index.snapshot();
    const after = opened.snapshot();
    expect(after.priors(after.keys())).toEqual(before.priors(before.keys()));
    for (const closable of [before, after, index, opened]) closable.close();
  });

  it('refuses a file of another model, and says what to do', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    const file = path.join(folder, 'model.finch');
    await index.save(file);
    const error = await rejection(
      ToolIndex.open(file, { encoder: new WordEncoder(64, 'words@2') }),
    );
    expect(error.code).toBe('FINCH_INVALID_ARGUMENT');
    expect(error.message).toMatch(/words@1.*words@2/);
    index.close();
  });

  it('refuses damaged, foreign and missing files', async () => {
    const encoder = new WordEncoder();
    const index = await ToolIndex.build(music, { encoder });
    const file = path.join(folder, 'whole.finch');
    await index.save(file);
    index.close();
    const bytes = await readFile(file);
    const broken = path.join(folder, 'broken.finch');
    for (const at of [0, 9, bytes.length >> 1, bytes.length - 3]) {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] as number) ^ 0x40;
      await writeFile(broken, copy);
      expect(['FINCH_CORRUPT', 'FINCH_VERSION']).toContain(
        (await rejection(ToolIndex.open(broken, { encoder }))).code,
      );
    }
    await writeFile(broken, bytes.subarray(0, bytes.length - 1));
    expect((await rejection(ToolIndex.open(broken, { encoder }))).code).toBe('FINCH_CORRUPT');
    await writeFile(broken, 'not an index');
    expect((await rejection(ToolIndex.open(broken, { encoder }))).code).toBe('FINCH_CORRUPT');
    expect((await rejection(ToolIndex.open(path.join(folder, 'none'), { encoder }))).code).toBe(
      'FINCH_IO',
    );
  });

  it('changes nothing on an error', async () => {
    const encoder = new WordEncoder();
    const index = await ToolIndex.build(music, { encoder });
    const state = () => ({ ids: index.ids(), version: index.info().version, count: index.count });
    const before = state();
    const twice = tool('new_tool', 'New.');
    expect((await rejection(index.upsert([twice, twice]))).code).toBe('FINCH_DUPLICATE_ID');
    expect((await rejection(index.remove(['set_alarm', 'no_such']))).code).toBe('FINCH_UNKNOWN_ID');
    expect((await rejection(index.remove(['set_alarm', 'set_alarm']))).code).toBe(
      'FINCH_DUPLICATE_ID',
    );
    expect((await rejection(index.upsert([twice], { signal: AbortSignal.abort() }))).code).toBe(
      'FINCH_ABORTED',
    );
    encoder.encode = () => Promise.reject(new FinchError('FINCH_IO', 'the endpoint is away'));
    expect((await rejection(index.upsert([twice]))).code).toBe('FINCH_IO');
    expect(state()).toEqual(before);
    index.close();
  });

  it('applies an allow set inside the search, and an empty one allows nothing', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    for (const method of ['hybrid', 'dense', 'lexical'] as const) {
      const only = new AllowSet(['stop_song']);
      expect(await found(index, 'song', { method, allow: only })).toEqual(['stop_song']);
      expect(await found(index, 'song', { method, allow: [] })).toEqual([]);
      expect(await found(index, 'song', { method, allow: ['no_such_tool'] })).toEqual([]);
    }
    index.close();
  });

  it('keeps an AllowSet right while tools come and go', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    const allow = new AllowSet(['play_song', 'pause_song']);
    expect(await found(index, 'song', { allow })).toEqual(['play_song']);
    await index.remove(['play_song']);
    // The freed slot goes to a tool that is not allowed.
    await index.upsert([tool('sing_song', 'Sings a song aloud.')]);
    expect(await found(index, 'song', { allow })).toEqual([]);
    await index.upsert([tool('pause_song', 'Pauses the song.')]);
    expect(await found(index, 'song', { allow })).toEqual(['pause_song']);
    index.close();
  });

  it('puts a tool that is called by name first, however thin its description', async () => {
    const rich = Array.from({ length: 30 }, (_, i) =>
      tool(
        `ask_helper_${i}`,
        'Ask codex anything: ask codex about code, codex answers, codex explains.',
      ),
    );
    const index = await ToolIndex.build([...rich, tool('mcp__x__ask_codex', '')], {
      encoder: new WordEncoder(),
    });
    expect((await found(index, 'ask_codex'))[0]).toBe('mcp__x__ask_codex');
    index.close();
  });

  it('answers resolve() for exact ids and names', async () => {
    const index = await ToolIndex.build([tool('a', 'x', 'one'), tool('a', 'y', 'two')], {
      encoder: new WordEncoder(),
    });
    expect(index.resolve('one/a').map(({ id }) => id)).toEqual(['one/a']);
    expect(index.resolve('a').map(({ id }) => id)).toEqual(['one/a', 'two/a']);
    expect(index.resolve('b')).toEqual([]);
    index.close();
  });

  it('uses the ANN graph from its threshold on, with the same best tools', async () => {
    const encoder = new WordEncoder();
    const many = Array.from({ length: 300 }, (_, i) =>
      tool(`tool_${i}`, `Handles topic${i % 60} for area${i % 7}.`),
    );
    const exact = await ToolIndex.build(many, { encoder, prior: 'none', annThreshold: Infinity });
    const ann = await ToolIndex.build(many, { encoder, prior: 'none', annThreshold: 100 });
    expect(exact.info().annCount).toBe(0);
    expect(ann.info().annCount).toBeGreaterThanOrEqual(300);
    let same = 0;
    for (let i = 0; i < 30; i += 1) {
      const text = `topic${i} area${i % 7}`;
      const best = (await found(exact, text, { method: 'dense' }))[0];
      if ((await found(ann, text, { method: 'dense' }))[0] === best) same += 1;
    }
    expect(same).toBeGreaterThanOrEqual(28);
    exact.close();
    ann.close();
  });

  it('holds what a model of it holds after any sequence of changes', async () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
    const step = fc.oneof(
      fc.record({
        op: fc.constant('upsert' as const),
        name,
        text: fc.constantFrom('red', 'green', 'blue'),
      }),
      fc.record({ op: fc.constant('remove' as const), name, text: fc.constant('') }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const index = await ToolIndex.build([], { encoder: new WordEncoder(16), prior: 'none' });
        const model = new Map<string, string>();
        for (const { op, name: id, text } of steps) {
          if (op === 'upsert') {
            await index.upsert([tool(id, text)]);
            model.set(id, text);
          } else if (model.has(id)) {
            await index.remove([id]);
            model.delete(id);
          } else {
            expect((await rejection(index.remove([id]))).code).toBe('FINCH_UNKNOWN_ID');
          }
        }
        expect(new Map(index.tools().map((each) => [each.id, each.description]))).toEqual(model);
        for (const colour of ['red', 'green', 'blue']) {
          const ids = await found(index, colour, { method: 'lexical' });
          const wanted = [...model].filter(([, text]) => text === colour).map(([id]) => id);
          expect([...ids].sort()).toEqual(wanted.sort());
        }
        index.close();
      }),
      { numRuns: 25 },
    );
  });

  it('indexes a tool whose schema is nested too deep to be written as JSON', async () => {
    let schema = {};
    for (let depth = 0; depth < 20_000; depth += 1)
      schema = { type: 'object', properties: { a: schema } };
    const deep: Tool = {
      ...music[0],
      id: 'deep',
      name: 'deep',
      definition: '{}',
      parameters: schema,
    } as Tool;
    const index = await ToolIndex.build([...music, deep], {
      encoder: new WordEncoder(),
      prior: 'none',
    });
    expect(index.tokens('deep')).toBeGreaterThan(0);
    index.close();
  });

  it.each([
    { prior: 'metdata' },
    { ann: { connectivity: 1 } },
    { annThreshold: 0 },
    { encoder: {} },
  ])('refuses the option %j', async (options) => {
    const bad = { encoder: new WordEncoder(), ...options } as unknown as Parameters<
      typeof ToolIndex.build
    >[1];
    expect((await rejection(ToolIndex.build(music, bad))).code).toBe('FINCH_INVALID_ARGUMENT');
  });

  it('is FINCH_CLOSED after close, and close twice is fine', async () => {
    const index = await ToolIndex.build(music, { encoder: new WordEncoder() });
    index.close();
    index.close();
    expect(
      (await rejection(index.upsert(music.slice(0, 1).map((t) => ({ ...t, description: 'new' })))))
        .code,
    ).toBe('FINCH_CLOSED');
  });
});
