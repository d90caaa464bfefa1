// Every numeric function of the addon against float64, for every dimension from 1 to 130 and some large odd ones, on
// views that start anywhere in their buffer.
import { describe, expect, it } from 'vitest';
import { addon } from './addon.js';

const dimensions = [
  ...Array.from({ length: 130 }, (_, i) => i + 1),
  383,
  384,
  385,
  767,
  1024,
  1025,
  4097,
];

/** mulberry32: the same numbers everywhere. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Numbers in (-1, 1) in a view at an offset of 1 to 7 floats: never 32-byte aligned with the buffer's start. */
function view(length: number, random: () => number): Float32Array {
  const offset = 1 + Math.floor(7 * random());
  const buffer = new Float32Array(length + offset + 3).fill(Number.NaN);
  const part = buffer.subarray(offset, offset + length);
  for (let i = 0; i < length; i += 1) part[i] = 2 * random() - 1;
  return part;
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] as number) * (b[i] as number);
  return sum;
};
const unit = (a: ArrayLike<number>) => {
  const norm = Math.sqrt(dot(a, a));
  return Float64Array.from(a, (value) => value / norm);
};
/** Rounding of d products and sums in float32, a generous constant above the expected √d. */
const bound = (d: number) => 4e-7 * (2 + Math.sqrt(d));

describe.each(dimensions)('d = %i', (d) => {
  const random = generator(d);

  it('cosine', () => {
    const a = view(5 * d, random);
    const b = view(5 * d, random);
    addon.cosine(a, b, d).forEach((got, i) => {
      const row = (all: Float32Array) => unit(all.subarray(i * d, (i + 1) * d));
      expect(Math.abs(got - dot(row(a), row(b)))).toBeLessThanOrEqual(bound(d));
    });
  });

  it('search, stored vectors and the order of results', () => {
    const n = 37;
    const rows = view(n * d, random);
    const queries = view(3 * d, random);
    const index = addon.indexCreate(d);
    const keys = addon.indexUpsertSync(
      index,
      Array.from({ length: n }, (_, i) => `${i}`),
      rows,
    );
    const snapshot = addon.indexSnapshot(index);
    const stored = addon.snapshotVectors(snapshot, keys);
    const found = addon.searchSync(snapshot, queries, { k: n });
    for (let q = 0; q < 3; q += 1) {
      const query = unit(queries.subarray(q * d, (q + 1) * d));
      const exact = new Map<number, number>();
      for (let i = 0; i < n; i += 1) {
        const row = unit(rows.subarray(i * d, (i + 1) * d));
        exact.set(keys[i] as number, dot(query, row));
        if (q === 0) {
          const off = row.map((value, j) => Math.abs((stored[i * d + j] as number) - value));
          expect(Math.max(...off)).toBeLessThanOrEqual(2e-7);
        }
      }
      expect(found.counts[q]).toBe(n);
      for (let i = 0; i < n; i += 1) {
        const [key, score] = [found.keys[q * n + i] as number, found.scores[q * n + i] as number];
        expect(Math.abs(score - (exact.get(key) as number))).toBeLessThanOrEqual(bound(d));
        if (i > 0) expect(score).toBeLessThanOrEqual(found.scores[q * n + i - 1] as number);
      }
      expect(new Set(found.keys.subarray(q * n, (q + 1) * n)).size).toBe(n);
    }
    addon.snapshotClose(snapshot);
    addon.indexClose(index);
  });

  it('truncate', () => {
    const n = 12;
    const scores = Float32Array.from({ length: n }, () => random())
      .sort()
      .reverse();
    const embeddings = view(n * d, random);
    const { cut, similarities } = addon.truncate(scores, embeddings);
    similarities.forEach((got, i) => {
      const row = (at: number) => unit(embeddings.subarray(at * d, (at + 1) * d));
      expect(Math.abs(got - dot(row(i), row(i + 1)))).toBeLessThanOrEqual(bound(d));
    });
    const argmax = (values: number[]) => values.indexOf(Math.max(...values)) + 1;
    const gaps = (values: Float32Array) =>
      [...values.subarray(1)].map((next, i) => (values[i] as number) - next);
    expect(cut.kScore).toBe(argmax(gaps(scores)));
    expect(cut.kSimilarity).toBe(argmax(gaps(similarities)));
    expect(cut.k).toBe(Math.max(cut.kScore, cut.kSimilarity));
  });

  it.each(['calibrated', 'literal'] as const)('bandit, %s', (form) => {
    const [lambda, gamma, alpha, prior] = [1.5, 0.9, 0.25, 0.625];
    const bandit = addon.banditCreate({ dimension: d, form, lambda, gamma, alpha });
    const scale = form === 'calibrated' ? Math.sqrt(d) : 1;
    const a = new Float64Array(d).fill(lambda);
    const b = new Float64Array(d).fill(form === 'literal' ? prior / Math.sqrt(d) : 0);
    for (let step = 0; step < 12; step += 1) {
      const context = view(d, random);
      const x = unit(context).map((value) => value * scale);
      const { mean, bonus } = addon.banditScore(
        bandit,
        ['tool'],
        Float32Array.of(prior),
        context,
        0,
        true,
      );
      const ratio = form === 'calibrated' ? d : 1;
      let [wantedMean, variance] = [form === 'calibrated' ? prior : 0, 0];
      for (let i = 0; i < d; i += 1) {
        const xi = x[i] as number;
        wantedMean += ((b[i] as number) * xi) / (a[i] as number) / ratio;
        variance += (xi * xi) / (a[i] as number) / ratio;
      }
      const tolerance = 2e-5 * (1 + Math.abs(wantedMean));
      expect(Math.abs((mean[0] as number) - wantedMean)).toBeLessThanOrEqual(tolerance);
      expect(Math.abs((bonus[0] as number) - alpha * Math.sqrt(variance))).toBeLessThanOrEqual(
        tolerance,
      );
      const y = step % 3 === 0 ? 0 : 1;
      addon.banditUpdate(
        bandit,
        ['tool'],
        context,
        Float32Array.of(prior),
        Float32Array.of(y),
        Float64Array.of(step),
      );
      for (let i = 0; i < d; i += 1) {
        const xi = x[i] as number;
        const floor = form === 'calibrated' ? (1 - gamma) * lambda : 0;
        a[i] = gamma * (a[i] as number) + xi * xi + floor;
        b[i] = gamma * (b[i] as number) + (form === 'calibrated' ? y - prior : y) * xi;
      }
    }
    addon.banditClose(bandit);
  });

  it('select gives the bits of search, score, fuse and truncate', () => {
    const n = 15;
    const index = addon.indexCreate(d);
    const ids = Array.from({ length: n }, (_, i) => `${i}`);
    addon.indexUpsertSync(
      index,
      ids,
      view(n * d, random),
      Float32Array.from(ids, () => random()),
    );
    const bandit = addon.banditCreate({ dimension: d });
    for (let i = 0; i < 8; i += 1) {
      const id = `${Math.floor(n * random())}`;
      addon.banditUpdate(
        bandit,
        [id],
        view(d, random),
        Float32Array.of(0.5),
        Float32Array.of(i % 2),
        Float64Array.of(i),
      );
    }
    const snapshot = addon.indexSnapshot(index);
    const query = view(d, random);
    const weights = { semantic: 0.6, bandit: 0.3, prior: 0.1, outage: 0.4, clamp: true };
    const fused = addon.selectSync(
      snapshot,
      bandit,
      query,
      { k: n },
      { now: 99, explore: true, weights },
    );

    const { keys, scores } = addon.searchSync(snapshot, query, { k: n });
    const foundIds = addon.snapshotIds(snapshot, keys);
    const priors = addon.snapshotPriors(snapshot, keys);
    const arms = addon.banditScore(bandit, foundIds, priors, query, 99, true);
    const p = arms.mean.map((mean, i) => Math.fround(mean + (arms.bonus[i] as number)));
    const total = addon.fuse(scores, p, priors, arms.availability, weights);
    const order = [...total.keys()].sort(
      (i, j) =>
        (total[j] as number) - (total[i] as number) || (keys[i] as number) - (keys[j] as number),
    );
    expect(fused.ids).toEqual(order.map((i) => foundIds[i]));
    expect([...fused.score]).toEqual(order.map((i) => total[i]));
    const { cut, similarities } = addon.truncate(
      Float32Array.from(order, (i) => total[i] as number),
      addon.snapshotVectors(
        snapshot,
        Float64Array.from(order, (i) => keys[i] as number),
      ),
    );
    expect(fused.cut).toEqual(cut);
    expect(fused.similarities).toEqual(similarities);
    addon.snapshotClose(snapshot);
    addon.indexClose(index);
    addon.banditClose(bandit);
  });
});
