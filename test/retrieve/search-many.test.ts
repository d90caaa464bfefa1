/** Batches and crowds of searches answer as single ones do. */
import { afterAll, describe, expect, test } from 'vitest';

import { FinchError, setSearchWait, VectorIndex } from '../../dist/esm/lib/index.js';

const dimension = 64;
const rows = 3000;
let state = 11;
const random = (): number => {
  state = (state * 1103515245 + 12345) % 2 ** 31;
  return state / 2 ** 31 - 0.5;
};
const vectors = Float32Array.from({ length: rows * dimension }, random);
const queries = Float32Array.from({ length: 90 * dimension }, random);
const query = (q: number): Float32Array => queries.subarray(q * dimension, (q + 1) * dimension);
const ids = Array.from({ length: rows }, (_, i) => `tool ${i}`);

afterAll(() => setSearchWait(0));

describe.each(['f32', 'bf16', 'f16', 'i8'] as const)('storage %s', (storage) => {
  test('many queries in one call, or in many at once, get the bits of one by one', async () => {
    const index = VectorIndex.create(dimension, { storage });
    await index.upsert(ids, vectors);
    const options = { k: 7 };
    const snapshot = index.snapshot();
    const alone = Array.from({ length: 90 }, (_, q) => snapshot.searchSync(query(q), options));
    expect(await index.searchMany(queries, options)).toEqual(alone);
    for (const wait of [0, 2000]) {
      setSearchWait(wait);
      const crowd = await Promise.all(alone.map((_, q) => snapshot.search(query(q), options)));
      expect(crowd).toEqual(alone);
    }
    snapshot.close();
    index.close();
  });
});

test('fewer rows than k, and masks', async () => {
  const index = VectorIndex.create(dimension);
  await index.upsert(ids.slice(0, 5), vectors.subarray(0, 5 * dimension));
  const found = await index.searchMany(queries, { k: 9 });
  expect(found.map((hits) => hits.length)).toEqual(Array(90).fill(5));
  const masked = await index.searchMany(queries, { k: 9, allow: ['tool 3', 'gone'] });
  expect(masked.map((hits) => hits.map(({ id }) => id))).toEqual(Array(90).fill(['tool 3']));
  index.close();
});

test('closing a snapshot lets its searches finish', async () => {
  const index = VectorIndex.create(dimension);
  await index.upsert(ids, vectors);
  const snapshot = index.snapshot();
  const expected = snapshot.searchSync(query(0), { k: 4 });
  const found = [snapshot.search(query(0), { k: 4 }), snapshot.search(query(0), { k: 4 })];
  snapshot.close();
  snapshot.close();
  await expect(snapshot.search(query(0), { k: 4 })).rejects.toMatchObject({ code: 'FINCH_CLOSED' });
  expect(await Promise.all(found)).toEqual([expected, expected]);
  expect(() => snapshot.keys()).toThrow(FinchError);
  index.close();
});

test('refuses what is no whole number of queries', async () => {
  const index = VectorIndex.create(dimension);
  for (const bad of [new Float32Array(0), new Float32Array(dimension + 1)]) {
    await expect(index.searchMany(bad, { k: 1 })).rejects.toMatchObject({
      code: 'FINCH_DIMENSION',
    });
  }
  expect(() => setSearchWait(100_001)).toThrow(FinchError);
  index.close();
});

test('one signal serves a crowd of searches without a warning', async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error): void => void warnings.push(warning);
  process.on('warning', listen);
  const index = VectorIndex.create(dimension);
  await index.upsert(ids, vectors);
  const controller = new AbortController();
  const { signal } = controller;
  const search = (q: number) => index.search(query(q % 90), { k: 3, signal });
  await Promise.all(Array.from({ length: 60 }, (_, q) => search(q)));
  const late = Array.from({ length: 60 }, (_, q) => search(q).catch((error: unknown) => error));
  controller.abort(new Error('shut down'));
  for (const outcome of await Promise.all(late)) {
    if (outcome instanceof FinchError) expect(outcome.code).toBe('FINCH_ABORTED');
    else expect(outcome).toHaveLength(3);
  }
  await expect(search(0)).rejects.toMatchObject({ code: 'FINCH_ABORTED' });
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', listen);
  expect(warnings).toEqual([]);
  index.close();
});
