// Every function of the addon with good arguments: results against float64 arithmetic or against what went in.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import { addon, cosine64, fill, openTokenizer, randomNumbers } from './addon.js';

const folder = mkdtempSync(path.join(tmpdir(), 'toolfinch-native-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function row(vectors: Float32Array, i: number, dimension: number): Float32Array {
  return vectors.subarray(i * dimension, (i + 1) * dimension);
}

describe('library', () => {
  test('says what it is', () => {
    expect(addon.abiVersion()).toBe(1);
    expect(addon.version()).toMatch(/^\d+\.\d+\.\d+$/);
    expect(addon.isa().level).toMatch(
      /^(portable|avx2|avx512(vnni|bf16)?|amx|neon(dot|i8mm|bf16)?)$/,
    );
    expect(addon.isa().reason).toContain(addon.isa().level);
    expect(addon.poolThreads()).toBeGreaterThanOrEqual(1);
  });
});

describe('index', () => {
  test('upserts, replaces, removes; keys stay and are never reused', async () => {
    const index = addon.indexCreate(2);
    const keys = await addon.indexUpsert(index, ['a', 'b'], new Float32Array([1, 0, 0, 1]));
    expect([...keys]).toEqual([1, 2]);
    expect([...addon.indexUpsertSync(index, ['b', 'c'], new Float32Array([1, 1, 3, 4]))]).toEqual([
      2, 3,
    ]);
    await addon.indexRemove(index, ['a']);
    expect([...addon.indexUpsertSync(index, ['a'], new Float32Array([5, 0]))]).toEqual([4]);
    const info = addon.indexInspect(index);
    expect(info.count).toBe(3);
    expect(info.dimension).toBe(2);
    expect(info.version).toBeGreaterThan(0);
    expect(info.vectorBytes).toBeGreaterThanOrEqual(3 * 2 * 4);
    expect([info.annBytes, info.annCount]).toEqual([0, 0]);
    const snapshot = addon.indexSnapshot(index);
    expect(addon.snapshotIds(snapshot, addon.snapshotKeys(snapshot))).toEqual(['b', 'c', 'a']);
    const stored = addon.snapshotVectors(snapshot, new Float64Array([3]));
    expect(stored[0]).toBeCloseTo(0.6, 6);
    expect(stored[1]).toBeCloseTo(0.8, 6);
  });

  test('inputs of an asynchronous call may be changed as soon as it returned', async () => {
    const index = addon.indexCreate(64);
    const ids = Array.from({ length: 500 }, (_, i) => `id ${i}`);
    const vectors = randomNumbers(500 * 64, 3);
    const kept = vectors.slice();
    const promise = addon.indexUpsert(index, ids, vectors);
    vectors.fill(Number.NaN);
    ids.fill('x');
    await promise;
    const snapshot = addon.indexSnapshot(index);
    expect(addon.snapshotCount(snapshot)).toBe(500);
    const [key] = addon.snapshotFind(snapshot, ['id 499']);
    const stored = addon.snapshotVectors(snapshot, new Float64Array([key ?? 0]));
    expect(cosine64(stored, row(kept, 499, 64))).toBeCloseTo(1, 6);
  });

  test('ids survive byte for byte: NUL, emoji, combining marks, the longest', () => {
    const ids = [
      'a\0b',
      'a\0c',
      '\0',
      '🦜🪵',
      'e\u0301',
      '\u00e9',
      '\ufffd',
      'x'.repeat(4096),
      '\u{10ffff}',
      '漢'.repeat(200),
    ];
    const index = addon.indexCreate(3);
    addon.indexUpsertSync(index, ids, randomNumbers(ids.length * 3, 5));
    const snapshot = addon.indexSnapshot(index);
    expect(addon.snapshotCount(snapshot)).toBe(ids.length);
    expect(addon.snapshotIds(snapshot, addon.snapshotFind(snapshot, ids))).toEqual(ids);
    expect([...addon.snapshotFind(snapshot, ['a', 'a\0', '\ufffd\ufffd'])]).toEqual([0, 0, 0]);
  });

  test('priors: given, left out, replaced alone', async () => {
    const index = addon.indexCreate(2);
    addon.indexUpsertSync(
      index,
      ['a', 'b'],
      new Float32Array([1, 0, 0, 1]),
      new Float32Array([0.25, 1]),
    );
    addon.indexUpsertSync(index, ['b', 'c'], new Float32Array([1, 0, 0, 1]), null);
    const priors = (): number[] => {
      const snapshot = addon.indexSnapshot(index);
      return [...addon.snapshotPriors(snapshot, addon.snapshotKeys(snapshot))];
    };
    expect(priors()).toEqual([0.25, 1, 0.5]);
    await addon.indexSetPriors(index, ['c', 'a'], new Float32Array([0, 0.75]));
    expect(priors()).toEqual([0.75, 1, 0]);
  });

  test('a snapshot stays as it was', async () => {
    const { index, snapshot, ids, vectors } = fill(20, 8);
    const version = addon.snapshotVersion(snapshot);
    const query = row(vectors, 3, 8);
    const before = addon.searchSync(snapshot, query, { k: 20 });
    await addon.indexRemove(index, ids.slice(0, 10));
    addon.indexUpsertSync(index, ['new'], query.slice());
    addon.indexClose(index);
    expect(addon.searchSync(snapshot, query, { k: 20 })).toEqual(before);
    expect(addon.snapshotVersion(snapshot)).toBe(version);
    expect(addon.snapshotCount(snapshot)).toBe(20);
  });

  test('saves and opens with its blobs', async () => {
    const { index, snapshot, ids, vectors } = fill(50, 16);
    const file = path.join(folder, 'käfig 🐦.finch');
    const blob = new Uint8Array([9, 1, 2, 3, 9]).subarray(1, 4);
    await addon.indexSave(index, file, [
      { name: 'tools', data: blob },
      { name: 'empty', data: new Uint8Array(0) },
    ]);
    const opened = await addon.indexOpen(file);
    expect(addon.indexInspect(opened)).toMatchObject({ count: 50, dimension: 16 });
    expect([...(addon.indexBlob(opened, 'tools') ?? [])]).toEqual([1, 2, 3]);
    expect(addon.indexBlob(opened, 'empty')?.length).toBe(0);
    expect(addon.indexBlob(opened, 'nothing')).toBeUndefined();
    const again = addon.indexSnapshot(opened);
    expect(addon.snapshotIds(again, addon.snapshotKeys(again))).toEqual(ids);
    const query = row(vectors, 7, 16);
    expect(addon.searchSync(again, query, { k: 9 })).toEqual(
      addon.searchSync(snapshot, query, { k: 9 }),
    );
  });

  test('builds an ANN graph, uses it, drops it', async () => {
    const { index, vectors } = fill(2000, 24);
    await addon.indexBuildAnn(index, { connectivity: 16, expansionAdd: 128, expansionSearch: 256 });
    expect(addon.indexInspect(index).annCount).toBe(2000);
    expect(addon.indexInspect(index).annBytes).toBeGreaterThan(0);
    const snapshot = addon.indexSnapshot(index);
    const queries = vectors.subarray(0, 50 * 24);
    const exact = addon.searchSync(snapshot, queries, { k: 10, mode: 'exact' });
    const ann = addon.searchSync(snapshot, queries, { k: 10, mode: 'ann' });
    let found = 0;
    for (let i = 0; i < 50; i++) {
      const truth = new Set(exact.keys.subarray(i * 10, i * 10 + 10));
      for (const key of ann.keys.subarray(i * 10, i * 10 + 10)) found += truth.has(key) ? 1 : 0;
    }
    expect(found / 500).toBeGreaterThan(0.9);
    addon.indexDropAnn(index);
    expect(addon.indexInspect(index).annCount).toBe(0);
  });
});

describe('search', () => {
  test.each([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 130, 384, 769])(
    'agrees with float64 in %d dimensions, through offset views, alone and in a batch',
    async (dimension) => {
      const count = 150;
      const { snapshot, ids, vectors } = fill(count, dimension, dimension);
      const memory = new Float32Array(3 * dimension + 5);
      memory.set(randomNumbers(3 * dimension, 1000 + dimension), 3);
      const queries = memory.subarray(3, 3 + 3 * dimension);
      const batch = await addon.search(snapshot, queries, { k: 10 });
      expect(addon.searchSync(snapshot, queries, { k: 10, mode: 'exact' })).toEqual(batch);
      for (let q = 0; q < 3; q++) {
        const query = row(queries, q, dimension);
        const single = addon.searchSync(snapshot, query, { k: 10 });
        expect(single.keys).toEqual(batch.keys.slice(q * 10, q * 10 + 10));
        expect(single.scores).toEqual(batch.scores.slice(q * 10, q * 10 + 10));
        const truth = ids.map((_, i) => cosine64(row(vectors, i, dimension), query));
        const best = truth.slice().sort((a, b) => b - a);
        single.keys.forEach((key, i) => {
          expect(single.scores[i]).toBeCloseTo(truth[key - 1] ?? 9, 5);
          expect(single.scores[i]).toBeCloseTo(best[i] ?? 9, 5);
        });
      }
    },
  );

  test('fewer rows than k, no rows, no queries', async () => {
    const { snapshot, vectors } = fill(3, 4);
    const few = addon.searchSync(snapshot, vectors.subarray(0, 4), { k: 5 });
    expect([...few.counts]).toEqual([3]);
    expect([few.keys.length, few.keys[4], few.scores[4]]).toEqual([5, 0, 0]);
    const empty = addon.indexSnapshot(addon.indexCreate(4));
    expect([...addon.searchSync(empty, vectors.subarray(0, 4), { k: 2 }).counts]).toEqual([0]);
    const none = await addon.search(snapshot, new Float32Array(0), { k: 2 });
    expect([none.counts.length, none.keys.length, none.scores.length]).toEqual([0, 0, 0]);
  });

  test('ties go by key; allow sets bind before scores; an empty set allows nothing', () => {
    const index = addon.indexCreate(2);
    const ids = ['d', 'c', 'b', 'a'];
    addon.indexUpsertSync(index, ids, new Float32Array([1, 1, 2, 2, 1, 1, 0, 1]));
    const snapshot = addon.indexSnapshot(index);
    const query = new Float32Array([3, 3]);
    const search = (allow?: ReturnType<typeof addon.allowCreate>): string[] => {
      const found = addon.searchSync(snapshot, query, { k: 4, allow: allow?.allow });
      return addon.snapshotIds(snapshot, found.keys.slice(0, found.counts[0]));
    };
    expect(search()).toEqual(['d', 'c', 'b', 'a']);
    const two = addon.allowCreate(snapshot, ['a', 'b', 'not there']);
    expect(two.matched).toBe(2);
    expect(search(two)).toEqual(['b', 'a']);
    expect(search(addon.allowCreate(snapshot, []))).toEqual([]);
  });

  test('a cancelled call rejects, before and while it runs', async () => {
    const { snapshot } = fill(4000, 128);
    const cancel = addon.cancelCreate();
    addon.cancelSignal(cancel);
    addon.cancelSignal(cancel);
    const queries = randomNumbers(512 * 128, 9);
    await expect(addon.search(snapshot, queries, { k: 100 }, cancel)).rejects.toMatchObject({
      code: 'FINCH_ABORTED',
    });
    const later = addon.cancelCreate();
    const promise = addon.search(snapshot, queries, { k: 100 }, later);
    setImmediate(() => addon.cancelSignal(later));
    const outcome = await promise.then(
      (result) => result.counts.length,
      (error: { code?: unknown }) => error.code,
    );
    expect([512, 'FINCH_ABORTED']).toContain(outcome);
  });

  test('cosine of pairs', () => {
    const a = randomNumbers(40 * 33, 1);
    const b = randomNumbers(40 * 33, 2);
    const cosines = addon.cosine(a, b, 33);
    expect(cosines.length).toBe(40);
    cosines.forEach((value, i) => {
      expect(value).toBeCloseTo(cosine64(row(a, i, 33), row(b, i, 33)), 5);
    });
  });
});

describe('truncate', () => {
  const scores = new Float32Array([0.9, 0.85, 0.4, 0.3]);
  const embeddings = new Float32Array([1, 0, 1, 0.1, 1, 0.2, -1, 1]);

  test('cuts at the largest gaps', () => {
    const { cut, similarities } = addon.truncate(scores, embeddings);
    expect(cut.kScore).toBe(2);
    expect(cut.gapScore).toBeCloseTo(0.45, 6);
    for (let i = 0; i < 3; i++) {
      expect(similarities[i]).toBeCloseTo(
        cosine64(row(embeddings, i, 2), row(embeddings, i + 1, 2)),
        6,
      );
    }
    expect(cut.kSimilarity).toBe(2);
    expect(cut.k).toBe(2);
    expect(cut.signals).toEqual(['score', 'similarity']);
    expect(addon.truncate(scores, embeddings, { boundary: 'after' }).cut.k).toBe(3);
    expect(addon.truncate(scores, embeddings, { minK: 4 }).cut).toMatchObject({
      k: 4,
      signals: [],
    });
    expect(addon.truncate(scores, embeddings, { maxK: 1 }).cut).toMatchObject({
      k: 1,
      signals: [],
    });
  });

  test('the score signal needs no embeddings', () => {
    const { cut, similarities } = addon.truncate(scores, null, { signals: ['score'] });
    expect(cut).toMatchObject({ k: 2, kSimilarity: 0, signals: ['score'] });
    expect(similarities.length).toBe(0);
  });

  test('nothing, one, two', () => {
    expect(addon.truncate(new Float32Array(0), new Float32Array(0)).cut.k).toBe(0);
    expect(addon.truncate(scores.subarray(0, 1), embeddings.subarray(0, 2)).cut.k).toBe(1);
    expect(addon.truncate(scores.subarray(0, 2), embeddings.subarray(0, 4)).cut.k).toBe(1);
  });

  test('a batch is its lists', () => {
    const many = new Float32Array([...scores, 0.5, ...scores]);
    const all = new Float32Array([...embeddings, 1, 1, ...embeddings]);
    const cuts = addon.truncateBatch(many, all, new Float64Array([0, 4, 4, 5, 9]));
    const single = addon.truncate(scores, embeddings).cut;
    expect(cuts).toEqual([
      single,
      addon.truncate(new Float32Array(0), new Float32Array(0)).cut,
      addon.truncate(scores.subarray(0, 1), embeddings.subarray(0, 2)).cut,
      single,
    ]);
    expect(
      addon.truncateBatch(new Float32Array(0), null, new Float64Array([0]), { signals: ['score'] }),
    ).toEqual([]);
  });
});

describe('bandit', () => {
  test('scores priors, learns, forgets, survives as bytes', () => {
    const bandit = addon.banditCreate({ dimension: 3, alpha: 0, form: 'calibrated' });
    const x = new Float32Array([1, 2, 2]);
    const score = (of = bandit) =>
      addon.banditScore(of, ['a', 'b'], new Float32Array([0.25, 0.75]), x, 2, true);
    expect([...score().mean]).toEqual([0.25, 0.75]);
    expect([...score().updates]).toEqual([0, 0]);
    expect([...score().bonus]).toEqual([0, 0]);
    expect(score().lastOutcome).toEqual(new Float32Array([Number.NaN, Number.NaN]));
    const none = addon.banditArms(bandit);
    expect(none.count).toBe(0);
    for (let i = 0; i < 50; i++) {
      addon.banditUpdate(
        bandit,
        ['a'],
        x,
        new Float32Array([0.25]),
        new Float32Array([1]),
        new Float64Array([1]),
      );
    }
    const after = score();
    expect(after.mean[0]).toBeGreaterThan(0.9);
    expect(after.mean[1]).toBe(0.75);
    expect([...after.updates]).toEqual([50, 0]);
    expect(after.evidence[0]).toBeGreaterThan(10);
    expect([after.lastOutcome[0], after.availability[0]]).toEqual([1, 1]);
    expect(addon.banditArms(bandit).count).toBe(1);
    expect(addon.banditArms(bandit).bytes).toBeGreaterThan(none.bytes);

    const state = addon.banditSerialize(bandit);
    const copy = addon.banditCreate({ dimension: 3, alpha: 0, form: 'calibrated' });
    addon.banditDeserialize(copy, state);
    expect(score(copy)).toEqual(after);
    expect(addon.banditSerialize(copy)).toEqual(state);
    addon.banditDrop(copy, ['a', 'nobody']);
    expect(addon.banditArms(copy).count).toBe(0);
    expect([...score(copy).mean]).toEqual([0.25, 0.75]);
  });

  test('explores with alpha and not with alpha 0', () => {
    const x = new Float32Array([1, 0]);
    const bonus = (alpha?: number): number => {
      const bandit = addon.banditCreate(
        alpha === undefined ? { dimension: 2 } : { dimension: 2, alpha },
      );
      return addon.banditScore(bandit, ['a'], new Float32Array([0.5]), x, 0, true).bonus[0] ?? -1;
    };
    expect(bonus()).toBeCloseTo(0.1, 6);
    expect(bonus(0.3)).toBeCloseTo(0.3, 6);
    expect(bonus(0)).toBe(0);
  });
});

describe('fuse, rank, select', () => {
  test('fuses as the formula says', () => {
    const semantic = randomNumbers(20, 1);
    const p = randomNumbers(20, 2).map((v) => v * 2);
    const prior = randomNumbers(20, 3).map(Math.abs);
    const availability = randomNumbers(20, 4).map(Math.abs);
    const weights = { semantic: 0.5, bandit: 0.3, prior: 0.2, outage: 0.4, clamp: true };
    addon.fuse(semantic, p, prior, availability, weights).forEach((value, i) => {
      const clipped = Math.min(1, Math.max(0, p[i] ?? 0));
      const expected =
        0.5 * (semantic[i] ?? 0) +
        0.3 * clipped +
        0.2 * (prior[i] ?? 0) -
        0.4 * (1 - (availability[i] ?? 0));
      expect(value).toBeCloseTo(expected, 5);
    });
    expect(addon.fuse(new Float32Array([1]), null, null, null)[0]).toBeCloseTo(
      0.75 + 0.075 + 0.05,
      6,
    );
  });

  test('select is search and rank, and its asynchronous twin the same', async () => {
    const { snapshot, ids, vectors } = fill(200, 32);
    const bandit = addon.banditCreate({ dimension: 32 });
    const query = row(vectors, 5, 32);
    addon.banditUpdate(
      bandit,
      ['tool 5', 'tool 6'],
      vectors.subarray(0, 64),
      new Float32Array([0.5, 0.5]),
      new Float32Array([0, 1]),
      new Float64Array([10, 20]),
    );
    const options = {
      now: 30,
      explore: true,
      weights: { semantic: 0.6, bandit: 0.3, prior: 0.1, outage: 0.5 },
      cut: { minK: 2 },
    };
    const found = addon.searchSync(snapshot, query, { k: 12 });
    const ranked = addon.rank(snapshot, bandit, found.keys, found.scores, query, options);
    const selected = addon.selectSync(snapshot, bandit, query, { k: 12 }, options);
    expect(selected).toEqual(ranked);
    const copy = query.slice();
    const promise = addon.select(snapshot, bandit, copy, { k: 12 }, options);
    copy.fill(0);
    expect(await promise).toEqual(ranked);

    expect(ranked.ids).toEqual(addon.snapshotIds(snapshot, ranked.keys));
    expect(ranked.ids.every((id) => ids.includes(id))).toBe(true);
    expect([...ranked.score]).toEqual([...ranked.score].sort((a, b) => b - a));
    expect([...ranked.semanticRank].sort((a, b) => a - b)).toEqual([...Array(12).keys()]);
    ranked.semanticRank.forEach((place, i) => {
      expect(ranked.semantic[i]).toBe(found.scores[place]);
    });
    expect(ranked.similarities.length).toBe(11);
    expect(ranked.cut.k).toBeGreaterThanOrEqual(2);
    const without = addon.selectSync(snapshot, null, query, { k: 12 }, { now: 0 });
    expect([...without.availability].every((value) => value === 1)).toBe(true);
    expect(without.ids[0]).toBe('tool 5');
  });

  test('of nothing is nothing', () => {
    const snapshot = addon.indexSnapshot(addon.indexCreate(2));
    const ranked = addon.selectSync(snapshot, null, new Float32Array([1, 0]), { k: 3 }, { now: 0 });
    expect([
      ranked.ids.length,
      ranked.keys.length,
      ranked.similarities.length,
      ranked.cut.k,
    ]).toEqual([0, 0, 0, 0]);
  });
});

describe('tokenize', () => {
  test('frames, cuts, and takes any string', () => {
    const tokenizer = openTokenizer();
    const words = addon.tokenize(tokenizer, 'Find a nearby restaurant', 16);
    expect(words[0]).toBe(101);
    expect(words[words.length - 1]).toBe(102);
    expect(words.length).toBe(6);
    expect([...addon.tokenize(tokenizer, 'find A NEARBY réstaurant', 16)]).toEqual([...words]);
    expect(addon.tokenize(tokenizer, 'one two three four five', 4).length).toBe(4);
    expect([...addon.tokenize(tokenizer, '', 8)]).toEqual([101, 102]);
    expect(addon.tokenize(tokenizer, 'broken \ud800 text \0 here', 16).length).toBeGreaterThan(4);
  });
});
