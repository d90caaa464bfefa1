import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import { encodeFrame, encodeSegmentHead } from '../../lib/reliability/log-frames.js';
import { segmentPattern } from '../../lib/reliability/log-replay.js';
import { FakeBandit } from './fake-bandit.js';
import { bytesOf, context, dimension, expectCode, openFake, priors, scratch } from './scratch.js';

/** A folder of `count` decisions, each reported once and awaited; with the bandit's bytes after every report. */
async function written(folder: string, count: number, compactAt?: number): Promise<string[]> {
  const states = [bytesOf(new FakeBandit({ dimension }))];
  const store = await openFake(folder);
  for (let i = 0; i < count; i++) {
    const id = `d${i}`;
    store.decide({ id, x: context(i), toolIds: ['a', 'b'], priors: priors(2), time: i });
    await store.report({ decisionId: id, toolId: i % 2 ? 'a' : 'b', outcome: 'success', at: i });
    states.push(bytesOf(store.bandit));
    if (i === compactAt) await store.compact();
  }
  await store.close();
  return states;
}

function logFile(folder: string): string {
  const name = readdirSync(folder).find((entry) => segmentPattern.test(entry));
  return path.join(folder, name ?? 'none');
}

/** Opens and closes; the bandit's bytes, or the code it failed with. */
async function outcomeOf(
  folder: string,
  onCorruption: 'fail' | 'cut' = 'fail',
): Promise<{ state: string; torn: boolean } | { code: string; message: string }> {
  try {
    const store = await openFake(folder, { onCorruption });
    const state = bytesOf(store.bandit);
    const torn = store.health().recovered.some(({ kind }) => kind === 'torn');
    await store.close();
    return { state, torn };
  } catch (error) {
    if (!(error instanceof FinchError)) throw error;
    return { code: error.code, message: error.message };
  }
}

describe('a log cut short', () => {
  it('at any byte opens with every whole report, and can be written again', async () => {
    const root = scratch();
    const source = path.join(root, 'source');
    const states = await written(source, 3);
    const whole = readFileSync(logFile(source));
    const name = path.basename(logFile(source));
    let reached = 0;
    for (let size = 0; size <= whole.length; size++) {
      const folder = path.join(root, 'cut');
      mkdirSync(folder);
      writeFileSync(path.join(folder, name), whole.subarray(0, size));
      const store = await openFake(folder);
      const state = states.indexOf(bytesOf(store.bandit));
      // Never backwards, never a state that was not there.
      expect(state).toBeGreaterThanOrEqual(reached);
      expect(state - reached).toBeLessThanOrEqual(1);
      reached = state;
      const recovered = store.health().recovered;
      if (recovered[0] !== undefined) {
        expect(recovered[0]).toMatchObject({ kind: 'torn', aside: [] });
        expect(recovered[0].offset + recovered[0].bytes).toBe(size);
      }
      const decisionId = store.decide({ x: context(9), toolIds: ['c'], priors: priors(1) });
      await store.report({ decisionId, toolId: 'c', outcome: 'error', at: 9 });
      const after = bytesOf(store.bandit);
      await store.close();
      expect(await outcomeOf(folder)).toEqual({ state: after, torn: false });
      rmSync(folder, { recursive: true });
    }
    expect(reached).toBe(3);
  });

  it('with zeros or noise where the end should be opens too', async () => {
    const root = scratch();
    const source = path.join(root, 'source');
    const states = await written(source, 3);
    const whole = readFileSync(logFile(source));
    for (const [i, tail] of [
      Buffer.alloc(5000),
      Buffer.alloc(1),
      Buffer.from('noise '.repeat(100)),
      whole.subarray(40, 90),
    ].entries()) {
      const folder = path.join(root, `tail-${i}`);
      mkdirSync(folder);
      const file = path.join(folder, path.basename(logFile(source)));
      writeFileSync(file, Buffer.concat([whole, tail]));
      expect(await outcomeOf(folder)).toEqual({ state: states[3], torn: true });
      expect(readFileSync(file).equals(whole)).toBe(true);
    }
  });
});

describe('a flipped bit', () => {
  it('anywhere in the log is found: FINCH_CORRUPT, or the last write cut; never another state', async () => {
    const root = scratch();
    const source = path.join(root, 'source');
    const states = await written(source, 6);
    const file = logFile(source);
    const whole = readFileSync(file);
    let corrupt = 0;
    for (let at = 0; at < whole.length; at += 3) {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(file, damaged);
      const result = await outcomeOf(source);
      if ('code' in result) {
        expect(['FINCH_CORRUPT', 'FINCH_VERSION']).toContain(result.code);
        expect(result.message).toContain(path.basename(file));
        expect(result.message).toMatch(/offset \d+/);
        expect(result.message).toContain("onCorruption: 'cut'");
        expect(readFileSync(file).equals(damaged)).toBe(true);
        corrupt++;
      } else {
        // Only the last frame has nothing whole behind it: to the reader that is an interrupted write.
        expect(result).toEqual({ state: states[5], torn: true });
      }
    }
    expect(corrupt).toBeGreaterThan(whole.length / 3 / 2);
  });

  it('anywhere in the snapshot is found', async () => {
    const folder = scratch();
    await written(folder, 6, 4);
    const file = path.join(folder, 'feedback.snapshot');
    const whole = readFileSync(file);
    for (let at = 0; at < whole.length; at += 2) {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(file, damaged);
      const result = await outcomeOf(folder);
      expect(result).toMatchObject({ code: 'FINCH_CORRUPT' });
    }
    for (let size = 0; size < whole.length; size += 5) {
      writeFileSync(file, whole.subarray(0, size));
      expect(await outcomeOf(folder)).toMatchObject({ code: 'FINCH_CORRUPT' });
    }
    writeFileSync(file, whole);
    expect(await outcomeOf(folder)).toMatchObject({ torn: false });
  });
});

describe('cutting damage', () => {
  it('keeps what is before it and the damaged file aside', async () => {
    const folder = scratch();
    const states = await written(folder, 6);
    const file = logFile(folder);
    const damaged = readFileSync(file);
    const middle = Math.floor(damaged.length / 2);
    damaged[middle] = (damaged[middle] ?? 0) ^ 255;
    writeFileSync(file, damaged);
    expect(await outcomeOf(folder)).toMatchObject({ code: 'FINCH_CORRUPT' });
    const store = await openFake(folder, { onCorruption: 'cut' });
    expect(states.slice(1, 6)).toContain(bytesOf(store.bandit));
    const recovered = store.health().recovered[0];
    expect(recovered).toMatchObject({ kind: 'damaged', file });
    expect(readFileSync(recovered?.aside[0] ?? '').equals(damaged)).toBe(true);
    const state = bytesOf(store.bandit);
    await store.close();
    expect(await outcomeOf(folder)).toEqual({ state, torn: false });
  });

  it('sets a damaged snapshot aside and goes on with the log', async () => {
    const folder = scratch();
    await written(folder, 6, 3);
    writeFileSync(path.join(folder, 'feedback.snapshot'), 'not a snapshot');
    expect(await outcomeOf(folder)).toMatchObject({ code: 'FINCH_CORRUPT' });
    const store = await openFake(folder, { onCorruption: 'cut' });
    expect(store.bandit.updatesOf('a') + store.bandit.updatesOf('b')).toBe(2);
    expect(store.health().recovered).toMatchObject([{ kind: 'damaged' }]);
    expect(existsSync(path.join(folder, 'feedback.snapshot'))).toBe(false);
    await store.close();
  });

  it('covers a lost snapshot and a lost segment', async () => {
    const folder = scratch();
    await written(folder, 6, 3);
    rmSync(path.join(folder, 'feedback.snapshot'));
    const missing = await outcomeOf(folder);
    expect(missing).toMatchObject({ code: 'FINCH_CORRUPT' });
    expect('message' in missing && missing.message).toContain('records 1 to 8');
    expect(await outcomeOf(folder, 'cut')).toMatchObject({ torn: false });
  });
});

describe('a crash between the steps of a compaction', () => {
  it('loses and repeats nothing, wherever it falls', async () => {
    const root = scratch();
    const before = path.join(root, 'before');
    const after = path.join(root, 'after');
    const states = await written(before, 4);
    const last = states[4];
    cpSync(before, after, { recursive: true });
    const store = await openFake(after);
    await store.compact();
    await store.close();
    const oldLog = logFile(before);
    const newLog = logFile(after);
    const snapshot = path.join(after, 'feedback.snapshot');
    const bytes = readFileSync(newLog);
    const cases: Array<[string, Array<[string, Buffer]>]> = [
      [
        'the new segment begun',
        [
          [oldLog, readFileSync(oldLog)],
          [newLog, bytes],
        ],
      ],
      [
        'its head cut short',
        [
          [oldLog, readFileSync(oldLog)],
          [newLog, bytes.subarray(0, 11)],
        ],
      ],
      [
        'its head empty',
        [
          [oldLog, readFileSync(oldLog)],
          [newLog, bytes.subarray(0, 0)],
        ],
      ],
      [
        'its head zeros',
        [
          [oldLog, readFileSync(oldLog)],
          [newLog, Buffer.alloc(bytes.length)],
        ],
      ],
      [
        'the snapshot half written',
        [
          [oldLog, readFileSync(oldLog)],
          [newLog, bytes],
          ['feedback.snapshot.new', readFileSync(snapshot).subarray(0, 50)],
        ],
      ],
      [
        'the old segment not deleted',
        [
          [oldLog, readFileSync(oldLog)],
          [newLog, bytes],
          [snapshot, readFileSync(snapshot)],
        ],
      ],
      ['no segment at all', [[snapshot, readFileSync(snapshot)]]],
      [
        'an old segment alone, ending before the snapshot',
        [
          [snapshot, readFileSync(snapshot)],
          [oldLog, readFileSync(oldLog).subarray(0, -7)],
        ],
      ],
    ];
    for (const [i, [name, files]] of cases.entries()) {
      const folder = path.join(root, `case-${i}`);
      mkdirSync(folder);
      for (const [file, content] of files) {
        writeFileSync(path.join(folder, path.basename(file)), content);
      }
      const opened = await openFake(folder);
      expect(bytesOf(opened.bandit), name).toBe(last);
      const again = { decisionId: 'd1', toolId: 'a', outcome: 'error' } as const;
      expect((await opened.report(again)).status, name).toBe('duplicate');
      await opened.report({ decisionId: 'd0', toolId: 'a', outcome: 'error', at: 1 });
      const state = bytesOf(opened.bandit);
      await opened.close();
      expect(await outcomeOf(folder), name).toEqual({ state, torn: false });
    }
  });
});

describe('another format', () => {
  it('of the log is FINCH_VERSION and left alone', async () => {
    const folder = scratch();
    await written(folder, 1);
    const file = logFile(folder);
    const bytes = readFileSync(file);
    bytes.writeUInt32LE(2, 8);
    const end = 24 + bytes.readUInt32LE(12);
    bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
    writeFileSync(file, bytes);
    await expectCode(openFake(folder), 'FINCH_VERSION');
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  it('of a record is FINCH_VERSION, and a malformed record FINCH_CORRUPT', async () => {
    for (const [payload, code] of [
      [Buffer.from([9, 0, 0, 0, 0, 0, 0, 0, 0]), 'FINCH_VERSION'],
      [Buffer.from([1, 0]), 'FINCH_CORRUPT'],
      [Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]), 'FINCH_CORRUPT'],
    ] as const) {
      const folder = scratch();
      const meta = JSON.stringify({
        dimension,
        form: 'calibrated',
        lambda: 1,
        gamma: 0.95,
        model: null,
      });
      writeFileSync(
        path.join(folder, 'feedback-0000000000000001.log'),
        Buffer.concat([encodeSegmentHead(1, meta), encodeFrame(1, [payload])]),
      );
      await expectCode(openFake(folder), code);
    }
  });
});
