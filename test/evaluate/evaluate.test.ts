import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import { bootstrapMeans } from '../../lib/evaluate/bootstrap.js';
import { countEach, curveAt, rankingCurve } from '../../lib/evaluate/curve.js';
import { evaluateCut, evaluateRanking } from '../../lib/evaluate/evaluate.js';
import {
  adaptiveCompleteness,
  completenessAtK,
  ndcgAtK,
  recallAtK,
} from '../../lib/evaluate/metrics.js';

const query = (id: string, ...gold: string[]) => ({ id, gold: new Set(gold) });
const queries = [query('one', 'a'), query('two', 'b', 'c'), query('none'), query('three', 'z')];
const order = ['a', 'b', 'x', 'c'];

async function codeOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
  } catch (error) {
    if (error instanceof FinchError) return error.code;
    throw error;
  }
  return 'nothing thrown';
}

describe('evaluateRanking', () => {
  it('averages over the answerable queries and asks for no other', async () => {
    const asked: string[] = [];
    const result = await evaluateRanking(
      queries,
      ({ id }) => {
        asked.push(id);
        return order;
      },
      { k: 3, depth: 4 },
    );
    expect(asked).toEqual(['one', 'two', 'three']);
    expect(result.queries).toBe(3);
    expect(result.unanswerable).toBe(1);
    expect(result.recall.mean).toBeCloseTo((1 + 0.5 + 0) / 3, 14);
    expect(result.completeness.mean).toBeCloseTo(1 / 3, 14);
    expect(result.reciprocalRank.mean).toBeCloseTo((1 + 0.5 + 0) / 3, 14);
    expect(result.ndcg.mean).toBeCloseTo((1 + ndcgAtK(order, new Set(['b', 'c']), 3) + 0) / 3, 14);
    expect(result.perQuery.map(({ id, positions }) => [id, positions])).toEqual([
      ['one', [1]],
      ['two', [2, 4]],
      ['three', []],
    ]);
    expect(result.curve.recall.map((value) => value * 6)).toEqual(
      [2, 3, 3, 4].map((value) => expect.closeTo(value, 10) as number),
    );
  });

  it('agrees with the metrics for every k of the curve', async () => {
    const ids = Array.from({ length: 30 }, (_, i) => `t${i}`);
    const data = fc.array(
      fc.tuple(fc.shuffledSubarray(ids, { minLength: 1, maxLength: 6 }), fc.shuffledSubarray(ids)),
      { minLength: 1, maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(data, async (rows) => {
        const asked = rows.map(([gold], i) => ({ id: `${i}`, gold: new Set(gold), at: i }));
        const rank = ({ at }: { at: number }) => rows[at]?.[1] ?? [];
        const result = await evaluateRanking(asked, rank, { depth: 20, resamples: 5 });
        for (let k = 1; k <= 20; k++) {
          const mean = (metric: typeof recallAtK | typeof completenessAtK) =>
            asked.reduce((sum, q) => sum + metric(rank(q), q.gold, k), 0) / asked.length;
          expect(result.curve.recall[k - 1]).toBeCloseTo(mean(recallAtK), 12);
          expect(result.curve.completeness[k - 1]).toBeCloseTo(mean(completenessAtK), 12);
        }
        expect(result.recall.mean).toBeCloseTo(result.curve.recall[9] as number, 12);
      }),
      { numRuns: 40 },
    );
  });

  it('cuts every ranking at the depth', async () => {
    const long = Array.from({ length: 20 }, (_, i) => `t${i}`);
    const deep = [query('in', 't4'), query('out', 't5')];
    const result = await evaluateRanking(deep, () => long, { k: 5, depth: 5 });
    expect(result.perQuery.map(({ positions }) => positions)).toEqual([[5], []]);
    expect(result.perQuery.map(({ reciprocalRank }) => reciprocalRank)).toEqual([0.2, 0]);
    expect(result.curve.recall.length).toBe(5);
  });

  it('gives the same result for any concurrency, in the order of the queries', async () => {
    const many = Array.from({ length: 40 }, (_, i) => query(`q${i}`, `t${i % 7}`));
    const rank = async ({ id }: { id: string }) => {
      await new Promise((resolve) => setTimeout(resolve, Number(id.slice(1)) % 3));
      return ['t0', 't3', 't5'];
    };
    const one = await evaluateRanking(many, rank, { concurrency: 1 });
    expect(await evaluateRanking(many, rank, { concurrency: 16 })).toEqual(one);
    expect(one.perQuery.map(({ id }) => id)).toEqual(many.map(({ id }) => id));
  });

  it('keeps to its concurrency and reports each query', async () => {
    let running = 0;
    let most = 0;
    const progress: number[] = [];
    const many = Array.from({ length: 25 }, (_, i) => query(`q${i}`, 'a'));
    await evaluateRanking(
      many,
      async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return ['a'];
      },
      {
        concurrency: 4,
        onProgress: ({ done, total }) => {
          expect(total).toBe(25);
          progress.push(done);
        },
      },
    );
    expect(most).toBe(4);
    expect(progress).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
  });

  it('throws what the callback throws, and starts no more', async () => {
    let started = 0;
    const many = Array.from({ length: 50 }, (_, i) => query(`q${i}`, 'a'));
    const failing = evaluateRanking(
      many,
      async ({ id }) => {
        started += 1;
        await new Promise((resolve) => setImmediate(resolve));
        if (id === 'q2') throw new RangeError('broken ranker');
        return ['a'];
      },
      { concurrency: 3 },
    );
    await expect(failing).rejects.toThrow(new RangeError('broken ranker'));
    expect(started).toBeLessThan(10);
  });

  it('stops at once when aborted, though the ranker hangs', async () => {
    const controller = new AbortController();
    const hanging = evaluateRanking(queries, () => new Promise<string[]>(() => undefined), {
      signal: controller.signal,
    });
    controller.abort(new Error('enough'));
    const error: unknown = await hanging.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'FINCH_ABORTED', cause: new Error('enough') });
    const before = evaluateRanking(queries, () => order, { signal: controller.signal });
    expect(await codeOf(() => before)).toBe('FINCH_ABORTED');
  });

  it('refuses bad options, no queries and a ranking with a tool twice', async () => {
    const bad = [
      { k: 0 },
      { k: 2.5 },
      { k: 10, depth: 9 },
      { depth: Number.NaN },
      { concurrency: 0 },
    ];
    for (const options of bad) {
      expect(await codeOf(() => evaluateRanking(queries, () => order, options))).toBe(
        'FINCH_INVALID_ARGUMENT',
      );
    }
    expect(await codeOf(() => evaluateRanking([], () => order))).toBe('FINCH_INVALID_ARGUMENT');
    expect(await codeOf(() => evaluateRanking([query('n')], () => order))).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
    const twice = evaluateRanking(queries, () => ['a', 'a']);
    await expect(twice).rejects.toThrow("query 'one': 'a' stands at positions 1 and 2");
    expect(await codeOf(() => twice)).toBe('FINCH_DUPLICATE_ID');
  });
});

describe('evaluateCut', () => {
  it('gives completeness with the mean k and what happened without an answer', async () => {
    const kept: Record<string, string[]> = {
      one: ['a', 'x', 'y'],
      two: ['b'],
      three: [],
      none: [],
      nix: ['x', 'y', 'z'],
    };
    const all = [...queries, query('nix')];
    const result = await evaluateCut(all, ({ id }) => kept[id] ?? []);
    expect(result.queries).toBe(3);
    expect(result.k.mean).toBeCloseTo(4 / 3, 14);
    expect(result.completeness.mean).toBeCloseTo(1 / 3, 14);
    expect(result.recall.mean).toBeCloseTo(0.5, 14);
    expect(result.precision.mean).toBeCloseTo((1 / 3 + 1 + 0) / 3, 14);
    expect(result.distribution).toEqual([1, 1, 0, 1]);
    expect(result.abstained).toBeCloseTo(1 / 3, 14);
    expect(result.unanswerable).toEqual({ queries: 2, abstained: 0.5, meanK: 1.5 });
    const direct = adaptiveCompleteness(
      queries
        .filter(({ gold }) => gold.size > 0)
        .map(({ id, gold }) => ({ kept: kept[id] ?? [], gold })),
    );
    expect(direct.completeness).toBeCloseTo(result.completeness.mean, 14);
    expect(direct.meanK).toBeCloseTo(result.k.mean, 14);
  });

  it('says nothing of unanswerable queries when there are none', async () => {
    const result = await evaluateCut([query('q', 'a')], () => ['a']);
    expect(result.unanswerable).toBeUndefined();
    expect(result.completeness).toEqual({ mean: 1, low: 1, high: 1 });
  });

  it('refuses a tool kept twice and a set without answers', async () => {
    expect(await codeOf(() => evaluateCut(queries, () => ['x', 'x']))).toBe('FINCH_DUPLICATE_ID');
    expect(await codeOf(() => evaluateCut([query('n')], () => []))).toBe('FINCH_INVALID_ARGUMENT');
  });
});

describe('curves', () => {
  it('lie between their points at a mean k', () => {
    expect(curveAt([0.2, 0.6], 1.5)).toBeCloseTo(0.4, 14);
    expect(curveAt([0.2, 0.6], 1.25)).toBeCloseTo(0.3, 14);
    expect(curveAt([0.2, 0.6], 0.5)).toBeCloseTo(0.1, 14);
    expect(curveAt([0.2, 0.6], 0)).toBe(0);
    expect(curveAt([0.2, 0.6], 2)).toBe(0.6);
    for (const k of [-0.1, 2.1, Number.NaN]) {
      expect(() => curveAt([0.2, 0.6], k)).toThrow('the curve reaches from 0 to 2');
    }
  });

  it('count gold tools up to the depth', () => {
    const curve = rankingCurve([{ positions: [2, 3], gold: 2 }], 3);
    expect(curve).toEqual({ recall: [0, 0.5, 1], completeness: [0, 0, 1] });
  });

  it('count how often each k occurs', () => {
    expect(countEach([2, 0, 2, 5])).toEqual([1, 0, 2, 0, 0, 1]);
    expect(countEach([])).toEqual([]);
  });
});

describe('bootstrapMeans', () => {
  const values = Array.from({ length: 400 }, (_, i) => ((i * 7919) % 400) / 400);

  it('is near the interval of the normal approximation', () => {
    const [estimate] = bootstrapMeans([values], { resamples: 4000 });
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    const half = 1.96 * Math.sqrt(variance / values.length);
    expect(estimate?.mean).toBeCloseTo(mean, 14);
    expect(estimate?.low).toBeCloseTo(mean - half, 2);
    expect(estimate?.high).toBeCloseTo(mean + half, 2);
  });

  it('covers the true mean about as often as it says', () => {
    let covered = 0;
    for (let run = 0; run < 200; run++) {
      // A low-discrepancy walk through (0, 1) stands for fresh samples of a coin that falls 1 with 0.3.
      const sample = Array.from({ length: 120 }, (_, i) => {
        const u = Math.sin((run * 120 + i + 1) * 12.9898) * 43758.5453;
        return u - Math.floor(u) < 0.3 ? 1 : 0;
      });
      const [estimate] = bootstrapMeans([sample], { seed: run, resamples: 400 });
      if (estimate && estimate.low <= 0.3 && 0.3 <= estimate.high) covered += 1;
    }
    expect(covered).toBeGreaterThanOrEqual(180);
    expect(covered).toBeLessThanOrEqual(199);
  });

  it('repeats itself, changes with the seed and widens with the confidence', () => {
    const [a] = bootstrapMeans([values]);
    expect(bootstrapMeans([values])).toEqual([a]);
    expect(bootstrapMeans([values], { seed: 2 })).not.toEqual([a]);
    const [wide] = bootstrapMeans([values], { confidence: 0.99 });
    expect(wide?.low).toBeLessThan(a?.low ?? 0);
    expect(wide?.high).toBeGreaterThan(a?.high ?? 1);
  });

  it('resamples rows whole: a difference of equal columns has no spread', () => {
    const [a, b, difference] = bootstrapMeans([values, values, values.map(() => 0)]);
    expect(a).toEqual(b);
    expect(difference).toEqual({ mean: 0, low: 0, high: 0 });
  });

  it('refuses no rows, unequal columns, NaN and bad options', () => {
    const bad: [number[][], object][] = [
      [[[]], {}],
      [[[1], [1, 2]], {}],
      [[[Number.NaN]], {}],
      [[[1]], { resamples: 0 }],
      [[[1]], { confidence: 1 }],
      [[[1]], { seed: 0.5 }],
    ];
    for (const [columns, options] of bad) {
      expect(() => bootstrapMeans(columns, options)).toThrow(FinchError);
    }
    expect(bootstrapMeans([])).toEqual([]);
  });
});
