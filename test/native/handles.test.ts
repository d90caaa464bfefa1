// Handles: closing twice, closing while calls use them, and being collected.
import { describe, expect, test } from 'vitest';

import { addon, failure, fill, randomNumbers, runModule } from './addon.js';

describe('close', () => {
  test('twice is fine, use after is FINCH_CLOSED', async () => {
    const { index, snapshot } = fill(4, 4);
    const bandit = addon.banditCreate({ dimension: 4 });
    for (let i = 0; i < 2; i++) {
      addon.indexClose(index);
      addon.banditClose(bandit);
    }
    const x = new Float32Array([1, 0, 0, 0]);
    const uses: Array<() => unknown> = [
      () => addon.indexInspect(index),
      () => addon.indexSnapshot(index),
      () => addon.indexUpsertSync(index, ['a'], x),
      () => addon.indexUpsert(index, ['a'], x),
      () => addon.indexRemove(index, ['a']),
      () => addon.indexSetPriors(index, ['a'], new Float32Array(1)),
      () => addon.indexBuildAnn(index),
      () => addon.indexDropAnn(index),
      () => addon.indexSave(index, 'x', []),
      () => addon.indexBlob(index, 'x'),
      () => addon.banditScore(bandit, [], new Float32Array(0), x, 0, false),
      () =>
        addon.banditUpdate(
          bandit,
          [],
          new Float32Array(0),
          new Float32Array(0),
          new Float32Array(0),
          new Float64Array(0),
        ),
      () => addon.banditDrop(bandit, []),
      () => addon.banditArms(bandit),
      () => addon.banditSerialize(bandit),
      () => addon.banditDeserialize(bandit, new Uint8Array(1)),
      () => addon.selectSync(snapshot, bandit, x, { k: 1 }, { now: 0 }),
    ];
    for (const use of uses) expect((await failure(use)).code).toBe('FINCH_CLOSED');
    expect(addon.searchSync(snapshot, x, { k: 1 }).counts[0]).toBe(1);
    addon.snapshotClose(snapshot);
    addon.snapshotClose(snapshot);
    expect((await failure(() => addon.searchSync(snapshot, x, { k: 1 }))).code).toBe(
      'FINCH_CLOSED',
    );
    expect((await failure(() => addon.search(snapshot, x, { k: 1 }))).code).toBe('FINCH_CLOSED');
    expect((await failure(() => addon.snapshotVersion(snapshot))).code).toBe('FINCH_CLOSED');
  });

  test('while calls are in flight is safe: they finish with their result', async () => {
    const { index, snapshot, vectors } = fill(3000, 64);
    const bandit = addon.banditCreate({ dimension: 64 });
    const expected = addon.searchSync(snapshot, vectors.subarray(0, 64 * 64), { k: 5 });
    const calls = [
      addon.search(snapshot, vectors.subarray(0, 64 * 64), { k: 5 }),
      addon.select(snapshot, bandit, vectors.subarray(0, 64), { k: 5 }, { now: 0 }),
      addon.indexUpsert(index, ['late'], randomNumbers(64, 3)),
      addon.indexBuildAnn(index),
      addon.indexRemove(index, ['tool 9']),
    ] as const;
    addon.indexClose(index);
    addon.snapshotClose(snapshot);
    addon.banditClose(bandit);
    const [found, ranked, keys] = await Promise.all(calls);
    expect(found).toEqual(expected);
    expect(ranked.ids[0]).toBe('tool 0');
    expect([...keys]).toEqual([3001]);
  });
});

describe('garbage collection', () => {
  test('releases what handles held, and calls in flight keep what they need', async () => {
    const ended = await runModule(
      `
      import { binding } from './dist/esm/lib/native.js';
      const addon = binding();
      const settle = async () => { for (let i = 0; i < 5; i++) { gc(); await new Promise(setImmediate); } };
      const rows = 4096, dimension = 1024;
      const vectors = new Float32Array(rows * dimension).fill(1);
      const ids = Array.from({ length: rows }, (_, i) => 'id ' + i);
      const megabytes = () => process.memoryUsage().rss / 2 ** 20;
      const make = () => {
        const index = addon.indexCreate(dimension);
        addon.indexUpsertSync(index, ids, vectors);
        const snapshot = addon.indexSnapshot(index);
        return addon.search(snapshot, vectors.subarray(0, dimension), { k: 3, allow: addon.allowCreate(snapshot, ids).allow });
      };
      await make();
      await settle();
      const start = megabytes();
      let most = 0;
      for (let i = 0; i < 40; i++) {
        const promise = make();
        gc();
        const found = await promise;
        if (found.counts[0] !== 3 || found.keys[0] !== 1) throw new Error('wrong result');
        await settle();
        most = Math.max(most, megabytes() - start);
      }
      console.log(Math.round(most));
      `,
      {},
      ['--expose-gc'],
    );
    expect(ended.stderr).toBe('');
    expect(ended.code).toBe(0);
    // 40 indexes of 16 MiB each: a leak of the handles would hold 640.
    expect(Number(ended.stdout)).toBeLessThan(200);
  });
});
