/** Storages and mapped files, as JavaScript sees them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import { FinchError } from '../../dist/esm/lib/errors.js';
import { VectorIndex } from '../../dist/esm/lib/retrieve/vector-index.js';

const folder = mkdtempSync(path.join(tmpdir(), 'finch-storage-'));
afterAll(() => rmSync(folder, { recursive: true }));

const dimension = 48;
const rows = 500;
const ids = Array.from({ length: rows }, (_, i) => `tool ${i}`);
let state = 7;
const random = (): number => {
  state = (state * 1103515245 + 12345) % 2 ** 31;
  return state / 2 ** 31 - 0.5;
};
const vectors = Float32Array.from({ length: rows * dimension }, random);
const query = Float32Array.from({ length: dimension }, random);

async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    expect(error).toBeInstanceOf(FinchError);
    return (error as FinchError).code;
  }
  return 'none';
}

describe.each(['f32', 'bf16', 'f16', 'i8'] as const)('storage %s', (storage) => {
  const file = path.join(folder, `${storage}.finch`);

  test('finds what float32 finds when every row is rescored', async () => {
    const exact = VectorIndex.create(dimension);
    const index = VectorIndex.create(dimension, { storage });
    await exact.upsert(ids, vectors);
    await index.upsert(ids, vectors);
    const expected = await exact.search(query, { k: 10 });
    expect(await index.search(query, { k: 10, overfetch: rows, threads: 2 })).toEqual(expected);
    const some = await index.search(query, { k: 10, overfetch: 40, threads: 1 });
    expect(some[0]).toEqual(expected[0]);
    const info = index.info();
    expect(info.storage).toBe(storage);
    expect(info.mappedBytes).toBe(0);
    const perRow = { f32: 0, bf16: 128, f16: 128, i8: 64 }[storage];
    expect(info.codeBytes).toBe(Math.ceil(rows / 64) * 64 * perRow);
  });

  test('is kept by the file, mapped or not', async () => {
    const index = VectorIndex.create(dimension, { storage });
    await index.upsert(ids, vectors);
    await index.save(file);
    const expected = await index.search(query, { k: 10 });
    const held = index.info();
    for (const options of [{}, { map: true }, { map: true, verify: false }, { map: false }]) {
      const opened = await VectorIndex.open(file, options);
      const info = opened.info();
      expect(info.storage).toBe(storage);
      expect(await opened.search(query, { k: 10 })).toEqual(expected);
      expect(info.vectorBytes === 0).toBe(options.map === true);
      if (options.map === true) {
        expect(info.mappedBytes).toBeGreaterThanOrEqual(rows * dimension * 4);
        expect(info.mappedBytes + info.codeBytes).toBe(rows * dimension * 4 + held.codeBytes);
      }
      await opened.upsert(['tool 0', 'new'], vectors.subarray(0, 2 * dimension));
      expect(
        (await opened.search(vectors.subarray(dimension, 2 * dimension), { k: 2 })).length,
      ).toBe(2);
      await opened.save(file);
      await index.save(file);
      opened.close();
    }
  });
});

describe('options', () => {
  test('that are none are refused with their names', async () => {
    const create = VectorIndex.create as (dimension: number, options: unknown) => VectorIndex;
    for (const storage of ['f64', 'F32', '', 8, null, {}]) {
      if (storage === null) continue;
      await expect(async () => create(4, { storage })).rejects.toThrow(/storage/);
      expect(await codeOf(() => create(4, { storage }))).toBe('FINCH_INVALID_ARGUMENT');
    }
    expect(await codeOf(() => create(4, 'i8'))).toBe('FINCH_INVALID_ARGUMENT');
    const open = VectorIndex.open as (path: string, options: unknown) => Promise<VectorIndex>;
    const file = path.join(folder, 'options.finch');
    const index = VectorIndex.create(4);
    await index.save(file);
    expect(await codeOf(() => open(file, { map: 1 }))).toBe('FINCH_INVALID_ARGUMENT');
    expect(await codeOf(() => open(file, { map: true, verify: 'no' }))).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
    expect(await codeOf(() => open(file, { verify: false }))).toBe('FINCH_INVALID_ARGUMENT');
    expect(await codeOf(() => open(file, true))).toBe('FINCH_INVALID_ARGUMENT');
    await index.upsert(['a'], Float32Array.of(1, 2, 3, 4));
    const search = (options: object): Promise<unknown> =>
      index.search(Float32Array.of(1, 2, 3, 4), { k: 1, ...options });
    for (const bad of [
      { threads: 0 },
      { threads: 1.5 },
      { threads: 'all' },
      { overfetch: 0 },
      { overfetch: -1 },
      { expansion: 0 },
      { expansion: 65_537 },
      { expansion: '9' },
    ]) {
      expect(await codeOf(() => search(bad))).toBe('FINCH_INVALID_ARGUMENT');
    }
    expect(await codeOf(() => search({ threads: 3, overfetch: 9, expansion: 9 }))).toBe('none');
  });
});
