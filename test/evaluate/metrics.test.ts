import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import {
  adaptiveCompleteness,
  completenessAtK,
  type Gold,
  goldPositions,
  goldSize,
  maxRelevance,
  ndcgAtK,
  recallAtK,
  reciprocalRank,
} from '../../lib/evaluate/metrics.js';

interface GoldenFile {
  readonly ks: number[];
  readonly cases: {
    readonly ranking: string[];
    readonly gold: Record<string, number>;
    readonly ndcg: number[];
    readonly recall: number[];
    readonly completeness: number[];
    readonly reciprocalRank: number;
  }[];
}

const golden = JSON.parse(
  readFileSync(new URL('../golden/metrics.json', import.meta.url), 'utf8'),
) as GoldenFile;

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof FinchError) return error.code;
    throw error;
  }
  return 'nothing thrown';
}

/** NDCG written straight from its definition: the best order is found by trying every one. */
function slowNdcg(
  ranking: readonly string[],
  gold: ReadonlyMap<string, number>,
  k: number,
): number {
  const dcg = (order: readonly number[]): number =>
    order
      .slice(0, k)
      .reduce((sum, rel, i) => sum + (2 ** rel - 1) / (Math.log(i + 2) / Math.LN2), 0);
  const orders = (values: readonly number[]): number[][] =>
    values.length === 0
      ? [[]]
      : values.flatMap((value, i) =>
          orders([...values.slice(0, i), ...values.slice(i + 1)]).map((rest) => [value, ...rest]),
        );
  const best = Math.max(...orders([...gold.values()]).map(dcg));
  return dcg(ranking.map((id) => gold.get(id) ?? 0)) / best;
}

const ids = Array.from({ length: 12 }, (_, i) => `tool ${i}`);
const rankings = fc.shuffledSubarray(ids);
const golds = fc
  .tuple(
    fc.shuffledSubarray(ids, { minLength: 1, maxLength: 5 }),
    fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 5, maxLength: 5 }),
  )
  .map(([tools, grades]) => new Map(tools.map((id, i) => [id, grades[i] as number])));
const ks = fc.integer({ min: 1, max: 15 });

describe('the metrics against trec_eval', () => {
  it('agree on every committed case', () => {
    expect(golden.cases.length).toBeGreaterThanOrEqual(80);
    for (const one of golden.cases) {
      const gold = new Map(Object.entries(one.gold));
      for (const [i, k] of golden.ks.entries()) {
        expect(ndcgAtK(one.ranking, gold, k)).toBeCloseTo(one.ndcg[i] as number, 12);
        expect(recallAtK(one.ranking, gold, k)).toBeCloseTo(one.recall[i] as number, 12);
        expect(completenessAtK(one.ranking, gold, k)).toBe(one.completeness[i]);
      }
      expect(reciprocalRank(one.ranking, gold)).toBeCloseTo(one.reciprocalRank, 12);
    }
  });
});

describe('the metrics by hand', () => {
  const gold = new Set(['b', 'd']);

  it('give the figures of a worked example', () => {
    const ranking = ['a', 'b', 'c', 'd'];
    // DCG = 1/log2(3) + 1/log2(5), ideal = 1 + 1/log2(3).
    expect(ndcgAtK(ranking, gold, 10)).toBeCloseTo(
      (0.6309297535714575 + 0.43067655807339306) / 1.6309297535714575,
      14,
    );
    expect(ndcgAtK(ranking, gold, 1)).toBe(0);
    expect(recallAtK(ranking, gold, 2)).toBe(0.5);
    expect(completenessAtK(ranking, gold, 3)).toBe(0);
    expect(completenessAtK(ranking, gold, 4)).toBe(1);
    expect(reciprocalRank(ranking, gold)).toBe(0.5);
    expect(reciprocalRank(ranking, gold, 1)).toBe(0);
    expect(goldPositions(ranking, gold)).toEqual([2, 4]);
  });

  it('weigh grades by 2^rel − 1', () => {
    const graded = new Map([
      ['x', 1],
      ['y', 3],
      ['z', 0],
    ]);
    // x first: 1 + 7/log2(3); y first: 7 + 1/log2(3).
    expect(ndcgAtK(['x', 'y', 'z'], graded, 3)).toBeCloseTo(
      5.416508275000203 / 7.630929753571458,
      14,
    );
    expect(recallAtK(['z'], graded, 1)).toBe(0);
    expect(goldSize(graded)).toBe(2);
  });

  it('stay sound when there are more gold tools than k', () => {
    const many = new Set(['a', 'b', 'c', 'd']);
    expect(ndcgAtK(['a', 'b'], many, 2)).toBe(1);
    expect(recallAtK(['a', 'b'], many, 2)).toBe(0.5);
    expect(completenessAtK(['a', 'b'], many, 2)).toBe(0);
  });

  it('count an empty ranking as missing everything', () => {
    for (const metric of [ndcgAtK, recallAtK, completenessAtK]) expect(metric([], gold, 5)).toBe(0);
    expect(reciprocalRank([], gold)).toBe(0);
  });

  it('take a set as relevance 1', () => {
    const graded = new Map([...gold].map((id) => [id, 1] as const));
    expect(ndcgAtK(['c', 'd', 'b'], gold, 3)).toBe(ndcgAtK(['c', 'd', 'b'], graded, 3));
  });

  it('average completeness with the number kept', () => {
    const selections = [
      { kept: ['b', 'd', 'x'], gold },
      { kept: ['b'], gold },
      { kept: [], gold },
      { kept: ['a', 'b'], gold: new Set(['a']) },
    ];
    expect(adaptiveCompleteness(selections)).toEqual({ completeness: 0.5, meanK: 1.5 });
  });
});

describe('the metrics for any ranking', () => {
  it('agree with NDCG over every possible order', () => {
    fc.assert(
      fc.property(rankings, golds, ks, (ranking, gold, k) => {
        expect(ndcgAtK(ranking, gold, k)).toBeCloseTo(slowNdcg(ranking, gold, k), 12);
      }),
    );
  });

  it('lie in [0, 1] and agree with plain counting', () => {
    fc.assert(
      fc.property(rankings, golds, ks, (ranking, gold, k) => {
        const head = ranking.slice(0, k).filter((id) => gold.has(id));
        const recall = recallAtK(ranking, gold, k);
        expect(recall).toBe(head.length / gold.size);
        expect(completenessAtK(ranking, gold, k)).toBe(head.length === gold.size ? 1 : 0);
        const first = ranking.findIndex((id) => gold.has(id));
        expect(reciprocalRank(ranking, gold)).toBe(first < 0 ? 0 : 1 / (first + 1));
        const ndcg = ndcgAtK(ranking, gold, k);
        expect(ndcg).toBeGreaterThanOrEqual(0);
        expect(ndcg).toBeLessThanOrEqual(1 + 1e-12);
        expect(ndcg === 0).toBe(head.length === 0);
      }),
    );
  });

  it('are 1 for the ideal ranking', () => {
    fc.assert(
      fc.property(golds, ks, (gold, k) => {
        const ideal = [...gold].sort((a, b) => b[1] - a[1]).map(([id]) => id);
        expect(ndcgAtK(ideal, gold, k)).toBeCloseTo(1, 12);
        expect(recallAtK(ideal, gold, gold.size)).toBe(1);
        expect(completenessAtK(ideal, gold, gold.size)).toBe(1);
        expect(reciprocalRank(ideal, gold)).toBe(1);
      }),
    );
  });

  it('never fall when k grows, nor when a gold tool moves up', () => {
    fc.assert(
      fc.property(rankings, golds, ks, fc.nat(), (ranking, gold, k, at) => {
        expect(recallAtK(ranking, gold, k + 1)).toBeGreaterThanOrEqual(recallAtK(ranking, gold, k));
        expect(completenessAtK(ranking, gold, k + 1)).toBeGreaterThanOrEqual(
          completenessAtK(ranking, gold, k),
        );
        if (ranking.length < 2) return;
        const i = 1 + (at % (ranking.length - 1));
        const [above, below] = [ranking[i - 1] as string, ranking[i] as string];
        if ((gold.get(below) ?? 0) <= (gold.get(above) ?? 0)) return;
        const better = [...ranking];
        better[i - 1] = below;
        better[i] = above;
        expect(ndcgAtK(better, gold, k)).toBeGreaterThanOrEqual(ndcgAtK(ranking, gold, k));
        expect(reciprocalRank(better, gold)).toBeGreaterThanOrEqual(reciprocalRank(ranking, gold));
      }),
    );
  });

  it('look at the first k tools only', () => {
    fc.assert(
      fc.property(rankings, golds, ks, (ranking, gold, k) => {
        const head = ranking.slice(0, k);
        expect(ndcgAtK(ranking, gold, k)).toBe(ndcgAtK(head, gold, k));
        expect(recallAtK(ranking, gold, k)).toBe(recallAtK(head, gold, k));
        expect(reciprocalRank(ranking, gold, k)).toBe(reciprocalRank(head, gold));
      }),
    );
  });
});

describe('the metrics refuse', () => {
  const gold: Gold = new Set(['a']);
  const metrics = { ndcgAtK, recallAtK, completenessAtK, reciprocalRank };
  for (const [name, metric] of Object.entries(metrics)) {
    it(`${name}: a bad k, a ranking with a tool twice, an empty gold set, a bad relevance`, () => {
      for (const k of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(codeOf(() => metric(['a'], gold, k))).toBe('FINCH_INVALID_ARGUMENT');
      }
      expect(codeOf(() => metric(['a', 'b', 'a'], gold, 1))).toBe('FINCH_DUPLICATE_ID');
      expect(codeOf(() => metric(['a'], new Set(), 1))).toBe('FINCH_INVALID_ARGUMENT');
      expect(codeOf(() => metric(['a'], new Map([['a', 0]]), 1))).toBe('FINCH_INVALID_ARGUMENT');
      for (const relevance of [-1, Number.NaN, maxRelevance + 1, Number.POSITIVE_INFINITY]) {
        const graded = new Map([['a', relevance]]);
        expect(codeOf(() => metric(['a'], graded, 1))).toBe('FINCH_INVALID_ARGUMENT');
      }
    });
  }

  it('adaptiveCompleteness: nothing to average, a tool kept twice', () => {
    expect(codeOf(() => adaptiveCompleteness([]))).toBe('FINCH_INVALID_ARGUMENT');
    expect(codeOf(() => adaptiveCompleteness([{ kept: ['a', 'a'], gold }]))).toBe(
      'FINCH_DUPLICATE_ID',
    );
  });

  it('and say which id stands where', () => {
    expect(() => recallAtK(['x', 'a', 'y', 'a'], gold, 1)).toThrow(
      "'a' stands at positions 2 and 4",
    );
  });
});
