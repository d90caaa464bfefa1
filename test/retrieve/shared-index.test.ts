/** One index used by several workers of the process: real worker threads, concurrent changes, workers that die. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, test, vi } from 'vitest';

import { FinchError } from '../../dist/esm/lib/errors.js';
import { binding } from '../../dist/esm/lib/native.js';
import { Bandit } from '../../dist/esm/lib/reliability/bandit.js';
import { VectorIndex } from '../../dist/esm/lib/retrieve/vector-index.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const moduleOf = (name: string): string =>
  JSON.stringify(path.join(root, 'dist/esm/lib', `${name}.js`));
const dimension = 32;

/** Deterministic vectors: worker threads make the same ones. */
const axis = (seed: number): Float32Array =>
  Float32Array.from({ length: dimension }, (_, i) => Math.sin(seed * 31 + i * (seed + 1)));

function start(body: string, workerData: unknown): Worker {
  const text = `
    const { parentPort, workerData } = require('node:worker_threads');
    (async () => {
      const { VectorIndex } = await import(${moduleOf('retrieve/vector-index')});
      const { Bandit } = await import(${moduleOf('reliability/bandit')});
      const { FinchError } = await import(${moduleOf('errors')});
      const axis = (seed) => Float32Array.from({ length: ${dimension} }, (_, i) => Math.sin(seed * 31 + i * (seed + 1)));
      ${body}
    })().catch((error) => { parentPort.postMessage({ failed: String(error && error.stack || error) }); });
  `;
  return new Worker(text, { eval: true, execArgv: [], workerData });
}

function message<T>(worker: Worker): Promise<T> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the worker ended (${code})`)));
  });
}

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(FinchError);
    return (error as FinchError).code;
  }
  return 'none';
}

/** What workers had begun may go on for a moment after them, and holds what it works on. */
async function untilShared(count: number): Promise<void> {
  await vi.waitFor(() => expect(binding().sharedCount()).toBe(count), { timeout: 60_000 });
}

describe('a shared index', () => {
  test('is the same native index, in this thread too', async () => {
    const index = VectorIndex.create(dimension, { storage: 'i8' });
    await index.upsert(['a', 'b'], Float32Array.from([...axis(1), ...axis(2)]));
    const token = index.share();
    expect(index.share()).toBe(token);
    expect(structuredClone(token)).toBe(token);
    const other = VectorIndex.fromShared(token);
    expect(other.info()).toEqual(index.info());
    await other.upsert(['c'], axis(3));
    expect(index.info().count).toBe(3);
    index.close();
    expect((await other.search(axis(3), { k: 1 }))[0]?.id).toBe('c');
    expect(codeOf(() => index.share())).toBe('FINCH_CLOSED');
    expect(other.share()).toBe(token);
    other.close();
    expect(codeOf(() => VectorIndex.fromShared(token))).toBe('FINCH_CLOSED');
  });

  test('four workers search and change it at once, and see each other', async () => {
    const index = VectorIndex.create(dimension);
    await index.upsert(['start'], axis(0));
    const rounds = 60;
    const workers = [0, 1, 2, 3].map((number) =>
      start(
        `
        const index = VectorIndex.fromShared(workerData.token);
        const { number, rounds } = workerData;
        // Each keeps two rows that must always be there together.
        const pair = (round) => [\`left \${number}\`, \`right \${number}\`];
        for (let round = 0; round < rounds; round++) {
          const seed = 1 + number * rounds + round;
          await index.upsert(pair(round), Float32Array.from([...axis(seed), ...axis(seed).map((x) => -x)]));
          const own = (await index.search(axis(seed), { k: 1, mode: 'exact' }))[0];
          if (own.id !== \`left \${number}\`) throw new Error('own row not found: ' + own.id);
          const snapshot = index.snapshot();
          for (let other = 0; other < 4; other++) {
            const keys = snapshot.find([\`left \${other}\`, \`right \${other}\`]);
            if ((keys[0] === 0) !== (keys[1] === 0)) throw new Error('half a change');
            if (keys[0] === 0) continue;
            const rows = snapshot.vectors(keys);
            for (let i = 0; i < ${dimension}; i++) {
              if (rows[i] !== -rows[i + ${dimension}]) throw new Error('two changes mixed');
            }
          }
          snapshot.close();
          if (round % 10 === 9) {
            await index.remove(pair(round));
            await index.upsert(pair(round), Float32Array.from([...axis(seed), ...axis(seed).map((x) => -x)]));
          }
        }
        parentPort.postMessage({ count: index.info().count });
        index.close();
        `,
        { token: index.share(), number, rounds },
      ),
    );
    const answers = await Promise.all(workers.map((worker) => message<{ count?: number }>(worker)));
    for (const answer of answers) expect(answer).toEqual({ count: expect.any(Number) });
    expect(index.info().count).toBe(9);
    for (let number = 0; number < 4; number++) {
      const hits = await index.search(axis(number * rounds + rounds), { k: 1 });
      expect(hits[0]?.id).toBe(`left ${number}`);
    }
    // Rows that a snapshot still read had to stay; now that none is open, places are used again.
    const { slots } = index.info();
    for (let round = 0; round < 50; round++) await index.upsert(['left 0'], axis(round));
    expect(index.info().slots).toBeLessThanOrEqual(slots + 2);
    index.close();
  });

  test('workers ended at random moments leave it to the others, and nothing in the registry', async () => {
    const before = binding().sharedCount();
    const index = VectorIndex.create(dimension);
    await index.upsert(['start'], axis(0));
    const token = index.share();
    for (let round = 0; round < 3; round++) {
      const workers = Array.from({ length: 4 }, (_, number) =>
        start(
          `
          const index = VectorIndex.fromShared(workerData.token);
          parentPort.postMessage('ready');
          for (let i = 0; ; i++) {
            await Promise.all([
              index.upsert([\`w \${workerData.number} \${i % 50}\`], axis(i)),
              index.search(axis(i), { k: 5 }),
              i % 20 === 0 ? index.buildAnn() : undefined,
            ]);
            VectorIndex.fromShared(workerData.token).share();
          }
          `,
          { token, number },
        ),
      );
      await Promise.all(
        workers.map(async (worker, i) => {
          if (i > 0) expect(await message(worker)).toBe('ready');
          await new Promise((resolve) => setTimeout(resolve, (round * 23 + i * 17) % 60));
          await worker.terminate();
        }),
      );
      await index.upsert(['after'], axis(round));
      expect((await index.search(axis(round), { k: 1 }))[0]?.score).toBeCloseTo(1, 5);
    }
    expect(binding().sharedCount()).toBe(before + 1);
    index.close();
    await untilShared(before);
    expect(codeOf(() => VectorIndex.fromShared(token))).toBe('FINCH_CLOSED');
  });

  test('the last holder may be a worker', async () => {
    const index = VectorIndex.create(dimension);
    await index.upsert(['a'], axis(1));
    const worker = start(
      `
      const index = VectorIndex.fromShared(workerData);
      parentPort.postMessage('have it');
      parentPort.once('message', async (query) => {
        parentPort.postMessage((await index.search(query, { k: 1 }))[0].id);
      });
      `,
      index.share(),
    );
    expect(await message(worker)).toBe('have it');
    index.close();
    worker.postMessage(axis(1));
    expect(await message(worker)).toBe('a');
    await worker.terminate();
  });

  test('many shared indexes come and go without leaving anything', () => {
    const before = binding().sharedCount();
    const tokens = Array.from({ length: 500 }, () => {
      const index = VectorIndex.create(2);
      const token = index.share();
      index.close();
      return token;
    });
    expect(new Set(tokens).size).toBe(500);
    expect(binding().sharedCount()).toBe(before);
    for (const token of tokens) {
      expect(codeOf(() => VectorIndex.fromShared(token))).toBe('FINCH_CLOSED');
    }
  });

  test('tokens of another process, of another kind and no tokens are refused', () => {
    const text = `
      import { VectorIndex } from ${moduleOf('retrieve/vector-index')};
      process.stdout.write(VectorIndex.create(2).share());
    `;
    const foreign = execFileSync(process.execPath, ['--input-type=module', '-e', text], {
      encoding: 'utf8',
    });
    expect(foreign).toMatch(/^toolfinch-index:/);
    expect(codeOf(() => VectorIndex.fromShared(foreign))).toBe('FINCH_INVALID_ARGUMENT');
    const bandit = new Bandit({ dimension: 2 });
    const index = VectorIndex.create(2);
    const good = index.share();
    for (const bad of [
      bandit.share().token,
      '',
      'toolfinch-index:',
      'toolfinch-index:0123456789abcdef:',
      `${good}0x`,
      `${good} `,
      `${good.slice(0, -1)}-1`,
      `${good.slice(0, -1)}99999999999999999999999`,
      good.toUpperCase(),
      7,
      null,
      { token: good },
    ]) {
      expect(codeOf(() => VectorIndex.fromShared(bad as string))).toBe('FINCH_INVALID_ARGUMENT');
    }
    const unknown = `${good.slice(0, good.lastIndexOf(':') + 1)}9007199254740993`;
    expect(codeOf(() => VectorIndex.fromShared(unknown))).toBe('FINCH_CLOSED');
    index.close();
  });
});

describe('a shared bandit', () => {
  test('learns from every worker', async () => {
    const bandit = new Bandit({ dimension, gamma: 1 });
    const report = `
      const bandit = Bandit.fromShared(workerData);
      for (let i = 0; i < 50; i++) {
        bandit.update(['tool'], axis(1), Float32Array.of(0.5), Float32Array.of(1), Float64Array.of(i));
      }
      const { dimension } = bandit.options;
      bandit.close();
      parentPort.postMessage(dimension);
    `;
    const workers = [1, 2, 3, 4].map(() => start(report, bandit.share()));
    expect(await Promise.all(workers.map(message))).toEqual([
      dimension,
      dimension,
      dimension,
      dimension,
    ]);
    const scores = bandit.score(['tool'], Float32Array.of(0.5), axis(1), 100);
    expect(scores.updates[0]).toBe(200);
    expect(scores.evidence[0]).toBeCloseTo(200, 3);
    const shared = structuredClone(bandit.share());
    const here = Bandit.fromShared(shared);
    bandit.close();
    expect(here.arms.count).toBe(1);
    here.close();
    expect(codeOf(() => Bandit.fromShared(shared))).toBe('FINCH_CLOSED');
  });
});
