import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Decision,
  defineTool,
  FeedbackStore,
  FinchError,
  type SelectOptions,
  Selector,
  type Tool,
  ToolIndex,
} from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';

const tool = (name: string, description: string, group: string): Tool =>
  defineTool(
    { name, description, inputSchema: { type: 'object', properties: { q: { type: 'string' } } } },
    { group },
  );

const tools = [
  tool('forecast', 'Weather forecast for a city: rain, wind, temperature.', 'meteo'),
  tool('weather', 'Current weather and forecast for a city.', 'sky'),
  tool('rain_radar', 'Rain radar picture for a city.', 'meteo'),
  tool('set_alarm', 'Wakes you at a time.', 'clock'),
  tool('play_song', 'Plays a song.', 'music'),
  tool('send_mail', 'Sends an email to someone.', 'mail'),
  tool('book_table', 'Books a table in a restaurant.', 'food'),
];
const query = 'weather forecast for the city';
const minute = 60_000;

let encoder: WordEncoder;
let index: ToolIndex;
beforeAll(async () => {
  encoder = new WordEncoder();
  index = await ToolIndex.build(tools, { encoder });
});
afterAll(() => index.close());

const ids = (decision: Decision) => decision.tools.map(({ id }) => id);
const memory = () => FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });

async function code(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FinchError);
  return (error as FinchError).code;
}

describe('Selector.select', () => {
  it('tells everything about a decision', async () => {
    const decision = await new Selector({ index, shortlist: 5 }).select(query);
    expect(decision.candidates).toHaveLength(5);
    expect(decision.counts).toEqual({
      indexed: 7,
      eligible: 7,
      retrieved: 5,
      pinned: 0,
      returned: decision.tools.length,
    });
    expect(decision.stages).toEqual(['encode', 'retrieve:hybrid', 'rank']);
    const { cut, candidates } = decision;
    expect(cut?.similarities).toHaveLength(4);
    expect(cut?.k).toBe(Math.max(cut?.kScore ?? 0, cut?.kSimilarity ?? 0));
    expect(candidates.map(({ score }) => score)).toEqual(
      candidates.map(({ score }) => score).sort((a, b) => b - a),
    );
    candidates.forEach(({ fate }, i) => {
      expect(fate).toBe(i < (cut?.k ?? 0) ? 'selected' : 'cut');
    });
    expect(ids(decision)).toEqual(candidates.slice(0, cut?.k).map(({ id }) => id));
    for (const stage of decision.stages)
      expect(decision.milliseconds[stage]).toBeGreaterThanOrEqual(0);
    expect(decision.tools[0]?.tool).toBe(index.get(decision.tools[0]?.id ?? ''));
  });

  it('fuses what its stages give: score = 0.8 semantic + 0.2 p - 0.5 (1 - availability)', async () => {
    const decision = await new Selector({ index, feedback: memory() }).select(query);
    for (const { score, semantic, reliability } of decision.candidates) {
      const p = Math.min(1, Math.max(0, reliability.mean + reliability.bonus));
      const wanted = 0.8 * semantic + 0.2 * p - 0.5 * (1 - reliability.availability);
      expect(score).toBeCloseTo(wanted, 5);
    }
  });

  it('is deterministic', async () => {
    const selector = new Selector({ index, explore: false });
    const strip = ({ id: _, milliseconds: __, ...rest }: Decision) => rest;
    expect(strip(await selector.select(query))).toEqual(strip(await selector.select(query)));
  });

  it('gives all of many concurrent requests their own answer', async () => {
    const selector = new Selector({ index });
    const texts = tools.map(({ description }) => description);
    const alone = [];
    for (const text of texts) alone.push(ids(await selector.select(text)));
    const together = await Promise.all(texts.map((text) => selector.select(text)));
    expect(together.map(ids)).toEqual(alone);
  });

  it.each<[string, SelectOptions, (found: string[]) => void]>([
    ['a fixed cut', { cut: { rule: 'fixed', k: 2 } }, (found) => expect(found).toHaveLength(2)],
    [
      'maxTools',
      { cut: { rule: 'fixed', k: 5 }, maxTools: 3 },
      (found) => expect(found).toHaveLength(3),
    ],
    ['allow', { allow: ['sky/weather'] }, (found) => expect(found).toEqual(['sky/weather'])],
    [
      'exclude',
      { exclude: ['sky/weather'] },
      (found) => expect(found).not.toContain('sky/weather'),
    ],
    [
      'groups',
      { groups: ['meteo'], cut: { rule: 'fixed', k: 9 } },
      (found) => expect([...found].sort()).toEqual(['meteo/forecast', 'meteo/rain_radar']),
    ],
    ['pins', { pin: ['mail/send_mail'] }, (found) => expect(found).toContain('mail/send_mail')],
    [
      'pins before the budget',
      { pin: ['mail/send_mail'], maxTools: 1 },
      (found) => expect(found).toEqual(['mail/send_mail']),
    ],
    [
      'stable order',
      { cut: { rule: 'fixed', k: 7 }, order: 'stable' },
      (found) => expect(found).toEqual(tools.map(({ id }) => id)),
    ],
  ])('honours %s', async (_, options, check) => {
    check(ids(await new Selector({ index }).select(query, options)));
  });

  it('refuses pins in an iterator, which would be empty at the second call', () => {
    const pin = ['mail/send_mail'].values() as unknown as string[];
    expect(() => new Selector({ index, pin })).toThrow(
      expect.objectContaining({ code: 'FINCH_INVALID_ARGUMENT' }),
    );
  });

  it('never shows a pinned tool that is not visible, and says so', async () => {
    const decision = await new Selector({ index, pin: ['mail/send_mail', 'no/such'] }).select(
      query,
      {
        exclude: ['mail/send_mail'],
      },
    );
    expect(ids(decision)).not.toContain('mail/send_mail');
    expect(decision.pinnedMissing).toEqual(['mail/send_mail', 'no/such']);
  });

  it.each<[SelectOptions, string]>([
    [{ allow: [] }, 'nothing-allowed'],
    [{ groups: ['no such group'] }, 'nothing-allowed'],
    [{ relevanceFloor: 0.99 }, 'below-floor'],
    [{ maxTokens: 1 }, 'over-budget'],
  ])('chooses none with a reason for %j', async (options, reason) => {
    const decision = await new Selector({ index }).select('zebra quagga', options);
    expect(decision.tools).toEqual([]);
    expect(decision.reason).toBe(reason);
    expect(decision.candidates.every(({ fate }) => fate !== 'selected')).toBe(true);
  });

  it('says no-match when no word is shared, and empty-index for an empty one', async () => {
    const lexical = await new Selector({ index, method: 'lexical' }).select('zebra quagga');
    expect(lexical.reason).toBe('no-match');
    const empty = await ToolIndex.build([], { encoder });
    expect((await new Selector({ index: empty }).select(query)).reason).toBe('empty-index');
    empty.close();
  });

  it('has a reason exactly when it has no tool', async () => {
    const selector = new Selector({ index });
    for (const options of [
      {},
      { allow: [] },
      { relevanceFloor: 2 },
      { pin: ['food/book_table'], relevanceFloor: 2 },
    ]) {
      const decision = await selector.select(query, options);
      expect(decision.reason === undefined).toBe(decision.tools.length > 0);
    }
  });

  it('uses the state of a task', async () => {
    const selector = new Selector({ index, cut: { rule: 'fixed', k: 1 } });
    const first = await selector.select({ instruction: 'weather in the city' });
    const later = await selector.select({
      instruction: 'weather in the city',
      observation: 'Now send an email to someone, sends email',
    });
    expect(ids(first)).not.toEqual(ids(later));
    expect(ids(later)).toEqual(['mail/send_mail']);
  });

  it('does not encode for lexical retrieval without feedback', async () => {
    encoder.encoded.length = 0;
    await new Selector({ index, method: 'lexical' }).select(query);
    expect(encoder.encoded).toEqual([]);
  });

  it('drops a tool that was removed while the request was on its way', async () => {
    const slow = new WordEncoder();
    const changing = await ToolIndex.build(tools, { encoder: slow });
    slow.delayMs = 40;
    const pending = new Selector({
      index: changing,
      pin: ['mail/send_mail'],
      cut: { rule: 'fixed', k: 7 },
    }).select(query);
    await changing.remove(['sky/weather', 'mail/send_mail']);
    const decision = await pending;
    expect(ids(decision)).not.toContain('sky/weather');
    expect(decision.pinnedMissing).toEqual(['mail/send_mail']);
    expect(ids(decision).length).toBeGreaterThan(0);
    changing.close();
  });

  it('is aborted by its signal', async () => {
    const selector = new Selector({ index });
    expect(await code(selector.select(query, { signal: AbortSignal.abort() }))).toBe(
      'FINCH_ABORTED',
    );
  });

  it.each<[string, unknown, SelectOptions | object]>([
    ['an empty query', '  ', {}],
    ['a query that is no text', 7, {}],
    ['a state without instruction', { actions: [] }, {}],
    ['maxTools 0', query, { maxTools: 0 }],
    ['maxTokens -1', query, { maxTokens: -1 }],
    ['shortlist 0', query, { shortlist: 0 }],
    ['shortlist 1.5', query, { shortlist: 1.5 }],
    ['an unknown method', query, { method: 'fuzzy' }],
    ['an unknown order', query, { order: 'random' }],
    ['a floor that is NaN', query, { relevanceFloor: Number.NaN }],
    ['a fixed k of 0', query, { cut: { rule: 'fixed', k: 0 } }],
    ['minK above maxK', query, { cut: { rule: 'dynamic', minK: 5, maxK: 2 } }],
    ['an unknown signal', query, { cut: { rule: 'dynamic', signals: ['smell'] } }],
    ['an unknown cut rule', query, { cut: { rule: 'nearest' } }],
    [
      'weights that do not sum to 1',
      query,
      { weights: { semantic: 1, bandit: 1, prior: 0, outage: 0 } },
    ],
    ['a negative weight', query, { weights: { semantic: 1.1, bandit: -0.1, prior: 0, outage: 0 } }],
    ['exclude as one string', query, { exclude: 'sky/weather' }],
    ['allow as one string', query, { allow: 'sky/weather' }],
    ['groups as one string', query, { groups: 'sky' }],
    ['pin as one string', query, { pin: 'sky/weather' }],
    ['ids that are no strings', query, { exclude: [7] }],
    ['an outage above 1', query, { weights: { semantic: 1, bandit: 0, prior: 0, outage: 1.5 } }],
  ])('refuses %s', async (_, bad, options) => {
    const selector = new Selector({ index });
    expect(await code(selector.select(bad as string, options as SelectOptions))).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
  });
});

describe('the loop', () => {
  it('ranks a failing tool down and lets it come back', async () => {
    let now = 1_000_000;
    const selector = new Selector({ index, feedback: memory(), now: () => now });
    const song = 'play me a song';
    const best = (decision: Decision) => decision.candidates[0]?.id;
    for (let i = 0; i < 3; i += 1) {
      const { id } = await selector.select(song);
      await selector.report(id, 'music/play_song', 'error');
      now += 1000;
    }
    const failing = await selector.select(song);
    expect(best(failing)).not.toBe('music/play_song');
    expect(ids(failing)).not.toContain('music/play_song');
    const record = failing.candidates.find(({ id }) => id === 'music/play_song');
    expect(record).toMatchObject({ fate: 'unhealthy', unhealthy: true });
    expect(record?.reliability).toMatchObject({ reports: 3, lastOutcome: 0 });
    now += 240 * minute;
    const later = await selector.select(song);
    expect(best(later)).toBe('music/play_song');
    await selector.report(later.id, 'music/play_song', 'success');
    expect(best(await selector.select(song))).toBe('music/play_song');
  });

  it('lets a failing tool come back though the clock was put back', async () => {
    let system = 400 * 24 * 60 * minute;
    const now = () => system;
    const bandit = { dimension: encoder.dimension };
    const song = 'play me a song';
    for (const options of [
      { feedback: FeedbackStore.memory({ bandit, now }) },
      { feedback: memory(), now },
    ]) {
      const selector = new Selector({ index, ...options });
      for (let i = 0; i < 3; i += 1) {
        const { id } = await selector.select(song);
        await selector.report(id, 'music/play_song', 'error');
      }
      system -= 365 * 24 * 60 * minute;
      expect(ids(await selector.select(song))).not.toContain('music/play_song');
      system += 240 * minute;
      expect(ids(await selector.select(song))).toContain('music/play_song');
    }
  });

  it('prefers, of two tools that fit alike, the one that works', async () => {
    const selector = new Selector({ index, feedback: memory() });
    const [first, second] = (await selector.select(query)).candidates.map(({ id }) => id);
    for (let i = 0; i < 3; i += 1) {
      const { id } = await selector.select(query);
      await selector.report(id, first ?? '', 'error');
    }
    expect((await selector.select(query)).candidates[0]?.id).toBe(second);
  });

  it('does not let a failing tool make a cliff for the cut', async () => {
    const selector = new Selector({ index, feedback: memory(), shortlist: 4 });
    const before = await selector.select(query);
    const last = before.candidates.at(-1)?.id ?? '';
    const others = before.candidates.slice(0, -1).map(({ id }) => id);
    for (let i = 0; i < 4; i += 1) {
      const { id } = await selector.select(query);
      await selector.report(id, last, 'error');
    }
    const after = await selector.select(query);
    const without = await selector.select(query, { exclude: [last], shortlist: 3 });
    expect(ids(after)).toEqual(ids(without));
    expect(after.candidates.slice(0, -1).map(({ id }) => id)).toEqual(others);
    expect(after.cut?.similarities).toHaveLength(2);
  });

  it('says unhealthy when every relevant tool is failing', async () => {
    const selector = new Selector({ index, feedback: memory(), relevanceFloor: 0.6 });
    const song = 'play a song';
    for (let i = 0; i < 4; i += 1) {
      const { id } = await selector.select(song, { relevanceFloor: -Infinity });
      await selector.report(id, 'music/play_song', 'error');
    }
    const decision = await selector.select(song);
    expect([decision.tools, decision.reason]).toEqual([[], 'unhealthy']);
    expect((await selector.select('zebra quagga')).reason).toBe('below-floor');
  });

  it('does not blame a tool for the others, nor for a cancelled call', async () => {
    const feedback = memory();
    const selector = new Selector({ index, feedback });
    const { id, candidates } = await selector.select(query);
    const [a, b] = candidates;
    await selector.report(id, a?.id ?? '', 'cancelled');
    expect(await selector.report(id, b?.id ?? '', false)).toMatchObject({ status: 'applied' });
    const after = await selector.select(query);
    const of = (tool?: { id: string }) =>
      after.candidates.find((each) => each.id === tool?.id)?.reliability;
    expect(of(a)).toMatchObject({ availability: 1, reports: 0 });
    expect(of(a)).not.toHaveProperty('lastOutcome');
    expect(of(b)).toMatchObject({ lastOutcome: 0, reports: 1 });
  });

  it('applies a report once', async () => {
    const selector = new Selector({ index, feedback: memory() });
    const { id, tools: chosen } = await selector.select(query);
    const name = chosen[0]?.id ?? '';
    expect((await selector.report(id, name, true)).status).toBe('applied');
    expect((await selector.report(id, name, false)).status).toBe('duplicate');
  });

  it('takes reports of pinned tools, and refuses strangers', async () => {
    const selector = new Selector({
      index,
      feedback: memory(),
      pin: ['mail/send_mail'],
      shortlist: 2,
    });
    const { id } = await selector.select(query);
    expect((await selector.report(id, 'mail/send_mail', true)).status).toBe('applied');
    expect(await code(selector.report(id, 'food/book_table', true))).toBe('FINCH_UNKNOWN_ID');
    expect(await code(selector.report('no-such-decision', 'mail/send_mail', true))).toBe(
      'FINCH_UNKNOWN_ID',
    );
    expect(await code(selector.report(id, 'mail/send_mail', 'meh' as 'error'))).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
  });

  it('names an encoder that gives the wrong number of floats', async () => {
    const wrong = new WordEncoder();
    const other = await ToolIndex.build(tools, { encoder: wrong });
    wrong.encode = async () => new Float32Array(3);
    expect(await code(new Selector({ index: other }).select(query))).toBe('FINCH_DIMENSION');
    other.close();
    expect(await code(ToolIndex.build(tools, {} as { encoder: WordEncoder }))).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
    const plain = [{ name: 'a', description: 'b' }] as unknown as Tool[];
    expect(await code(ToolIndex.build(plain, { encoder }))).toBe('FINCH_INVALID_ARGUMENT');
    expect(() => new Selector({} as { index: ToolIndex })).toThrow(/ToolIndex/);
  });

  it('takes reports of a pinned tool when nothing matched', async () => {
    const selector = new Selector({
      index,
      feedback: memory(),
      method: 'lexical',
      pin: ['mail/send_mail'],
    });
    const decision = await selector.select('zebra quagga');
    expect([ids(decision), decision.candidates]).toEqual([['mail/send_mail'], []]);
    expect((await selector.report(decision.id, 'mail/send_mail', true)).status).toBe('applied');
  });

  it('asks for a store when there is none, and for one of the right dimension', async () => {
    const selector = new Selector({ index });
    const { id } = await selector.select(query);
    expect(await code(selector.report(id, 'sky/weather', true))).toBe('FINCH_INVALID_ARGUMENT');
    const other = FeedbackStore.memory({ bandit: { dimension: 3 } });
    expect(() => new Selector({ index, feedback: other })).toThrow(/3 dimensions/);
  });

  it('can be watched through diagnostics channels', async () => {
    const seen: unknown[] = [];
    const onSelect = (message: unknown) => seen.push(message);
    subscribe('tracing:toolfinch:select:asyncEnd', onSelect);
    subscribe('toolfinch:report', onSelect);
    const selector = new Selector({ index, feedback: memory() });
    const decision = await selector.select(query);
    await selector.report(decision.id, decision.tools[0]?.id ?? '', 'timeout');
    unsubscribe('tracing:toolfinch:select:asyncEnd', onSelect);
    unsubscribe('toolfinch:report', onSelect);
    expect(seen[0]).toMatchObject({ query, result: { id: decision.id } });
    expect(seen[1]).toMatchObject({
      decisionId: decision.id,
      outcome: 'timeout',
      result: { status: 'applied' },
    });
  });
});
