import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  answerability,
  type CutRule,
  cutList,
  dynamicCut,
  packagedCut,
  type RankedList,
} from '../../dist/esm/lib/index.js';
import { mulberry32 } from '../../lib/evaluate/random.js';
import '../property-seed.js';
import { labelledList } from './labelled.js';

const scores = [0.9, 0.88, 0.52, 0.5, 0.49];
const k = (list: RankedList, rule: CutRule) => cutList(list, rule).k;

describe('cutList', () => {
  it('keeps what each rule says', () => {
    expect(k({ scores }, { rule: 'fixed', k: 3 })).toBe(3);
    expect(k({ scores }, { rule: 'fixed', k: 9 })).toBe(5);
    expect(k({ scores }, { rule: 'threshold', score: 0.5 })).toBe(4);
    expect(k({ scores }, { rule: 'threshold', score: 0.95 })).toBe(0);
    expect(k({ scores }, { rule: 'threshold', score: 0.95, minK: 1 })).toBe(1);
    expect(k({ scores }, { rule: 'ratio', ratio: 0.95 })).toBe(2);
    expect(k({ scores: [-1, -2] }, { rule: 'ratio', ratio: 0.5 })).toBe(1);
    expect(k({ scores }, { rule: 'ratio', ratio: 0.1, maxK: 2 })).toBe(2);
    expect(k({ scores }, { rule: 'elbow' })).toBe(2);
  });

  it('does not cut a list without an elbow', () => {
    for (const straight of [[5, 4, 3, 2, 1], [1, 1, 1], [2, 1], [1], [4, 3.9, 3.5, 2.5, 0]]) {
      expect(k({ scores: straight }, { rule: 'elbow' })).toBe(straight.length);
    }
  });

  it('cuts 1 / x where kneedle does', () => {
    // The elbow of y = 1 / x on [1, 10], both axes scaled, is at x = √10: the first integer tool of the tail is the third.
    const list = { scores: Array.from({ length: 10 }, (_, i) => 1 / (i + 1)) };
    expect(k(list, { rule: 'elbow' })).toBe(2);
    expect(k(list, { rule: 'elbow', sensitivity: 20 })).toBe(10);
  });

  it('is the kernel for the dynamic cut', () => {
    fc.assert(
      fc.property(labelledList(), (list) => {
        const single = { scores: list.scores, embeddings: list.embeddings };
        const { cut } = dynamicCut(Float32Array.from(list.scores), list.embeddings ?? null);
        expect(cutList(single, { rule: 'dynamic' })).toMatchObject({ k: cut.k, dynamic: cut });
      }),
    );
  });

  it('keeps more for a looser setting, within its bounds', () => {
    const rules: ((x: number) => CutRule)[] = [
      (x) => ({ rule: 'fixed', k: 1 + Math.floor(9 * x) }),
      (x) => ({ rule: 'threshold', score: 2 - 4 * x }),
      (x) => ({ rule: 'ratio', ratio: 1 - 0.99 * x }),
      (x) => ({ rule: 'elbow', sensitivity: 0.01 + 9 * x }),
    ];
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(labelledList(), share, share, fc.nat(5), (list, a, b, least) => {
        const [tight, loose] = [Math.min(a, b), Math.max(a, b)];
        for (const rule of rules) {
          expect(k(list, rule(tight))).toBeLessThanOrEqual(k(list, rule(loose)));
          if (rule(0).rule === 'fixed') continue;
          const bounded = { ...rule(a), minK: least, maxK: least + 2 } as CutRule;
          const kept = k(list, bounded);
          expect(kept).toBeGreaterThanOrEqual(Math.min(least, list.scores.length));
          expect(kept).toBeLessThanOrEqual(Math.min(least + 2, list.scores.length));
        }
      }),
    );
  });

  it('holds the keep scores of the formula against the threshold', () => {
    const { weights } = packagedCut;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -99, max: 99 }), { minLength: 2, maxLength: 8 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(),
        (numbers, d, seed) => {
          const random = mulberry32(seed);
          const s = numbers.map((number) => number / 100).sort((a, b) => b - a);
          const rows = s.map(() => Array.from({ length: d }, () => random() + 0.01));
          const n = s.length;
          const average = s.reduce((a, b) => a + b) / n;
          const sd = Math.sqrt(s.reduce((sum, x) => sum + (x - average) ** 2, 0) / n);
          const z = s.map((x) => (sd < 1e-9 ? 0 : (x - average) / sd));
          const total = z.reduce((sum, x) => sum + Math.exp(x), 0);
          const cosine = (a: number[], b: number[]) =>
            a.reduce((sum, x, i) => sum + x * (b[i] as number), 0) /
            (Math.hypot(...a) * Math.hypot(...b));
          const expected = z.map((x, i) => {
            const before = rows.slice(0, i).map((row) => cosine(row, rows[i] as number[]));
            const nearest = i === 0 ? 0 : Math.max(...before);
            return (
              weights.standing * x +
              weights.share * Math.log(Math.exp(x) / total) +
              weights.similarity * nearest
            );
          });
          const list = { scores: s, embeddings: Float32Array.from(rows.flat()) };
          const { values } = cutList(list, { rule: 'calibrated', target: 0.9 });
          values?.forEach((value, i) => {
            expect(value).toBeCloseTo(Math.max(...expected.slice(i)), 5);
          });
        },
      ),
    );
  });

  it('keeps none of an empty list', () => {
    const empty = { scores: [], embeddings: new Float32Array(0) };
    const rules: CutRule[] = [
      { rule: 'dynamic' },
      { rule: 'fixed', k: 3 },
      { rule: 'threshold', score: 0 },
      { rule: 'ratio', ratio: 0.5 },
      { rule: 'elbow' },
      { rule: 'calibrated', target: 0.9 },
    ];
    for (const rule of rules) expect(k(empty, rule)).toBe(0);
  });

  it.each(['minK', 'maxK'])('refuses %s beside a fixed k, which it would not keep', (name) => {
    const rule = { rule: 'fixed', k: 5, [name]: 3 } as unknown as CutRule;
    const message = expect.stringContaining(`cut.${name}`) as string;
    const refusal = expect.objectContaining({ code: 'FINCH_INVALID_ARGUMENT', message });
    expect(() => cutList({ scores }, rule)).toThrow(refusal);
    expect(cutList({ scores: [3, 2, 1] }, { ...rule, [name]: undefined } as CutRule).k).toBe(3);
  });

  it('refuses lists and rules that are wrong', () => {
    const bad: [RankedList, CutRule, string][] = [
      [{ scores: [1, 2] }, { rule: 'elbow' }, 'FINCH_INVALID_ARGUMENT'],
      [{ scores: [1, Number.NaN] }, { rule: 'elbow' }, 'FINCH_NOT_FINITE'],
      [{ scores, embeddings: new Float32Array(7) }, { rule: 'elbow' }, 'FINCH_DIMENSION'],
      [{ scores }, { rule: 'ratio', ratio: 1.5 }, 'FINCH_INVALID_ARGUMENT'],
      [{ scores }, { rule: 'elbow', minK: 3, maxK: 2 }, 'FINCH_INVALID_ARGUMENT'],
      [{ scores }, { rule: 'nearest' } as unknown as CutRule, 'FINCH_INVALID_ARGUMENT'],
      [
        { scores: [2, 1], embeddings: Float32Array.of(1, 0, 0, 0) },
        { rule: 'calibrated', target: 0.9 },
        'FINCH_ZERO_VECTOR',
      ],
    ];
    for (const [list, rule, code] of bad) {
      expect(() => cutList(list, rule)).toThrow(expect.objectContaining({ code }));
    }
  });
});

describe('answerability', () => {
  it('is the mean of the three best, of all when there are fewer', () => {
    expect(answerability({ scores: [0.9, 0.6, 0.3, 0.1] })).toBeCloseTo(0.6, 12);
    expect(answerability({ scores: [0.5] })).toBe(0.5);
    expect(answerability({ scores: [] })).toBe(-Infinity);
  });
});
