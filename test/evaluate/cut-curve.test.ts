import fc from 'fast-check';
import { expect, it } from 'vitest';
import { completenessAt, cutCurve, thresholdCurve } from '../../dist/esm/lib/evaluate/index.js';
import '../property-seed.js';
import { labelledList } from '../truncate/labelled.js';

const answerable = fc.array(
  labelledList().filter(({ gold }) => gold > 0),
  { minLength: 1, maxLength: 20 },
);

it('gives every threshold the point that the rule itself has', () => {
  fc.assert(
    fc.property(answerable, fc.double({ min: -2, max: 2, noNaN: true }), (lists, score) => {
      const all = thresholdCurve(lists, ({ scores }) => scores);
      const one = cutCurve(lists, [{ rule: 'threshold', score, minK: 1 }]);
      const at = completenessAt(all, one.meanK[0] as number) as number;
      expect(at).toBeCloseTo(one.completeness[0] as number, 9);
    }),
  );
});

it('rises with the mean k', () => {
  fc.assert(
    fc.property(answerable, (lists) => {
      const { meanK, completeness } = thresholdCurve(lists, ({ scores }) => scores);
      expect(meanK).toEqual([...meanK].sort((a, b) => a - b));
      expect(completeness).toEqual([...completeness].sort((a, b) => a - b));
    }),
  );
});

it('counts completeness over mean k', () => {
  const lists = [
    { scores: [3, 2, 1], relevant: [0], gold: 1 },
    { scores: [3, 2, 1], relevant: [2, 0], gold: 2 },
    { scores: [3, 2, 1], relevant: [0], gold: 2 },
  ];
  const rules = [3, 1, 2].map((k) => ({ rule: 'fixed', k }) as const);
  const curve = cutCurve(lists, rules);
  expect(curve).toEqual({ meanK: [1, 2, 3], completeness: [1 / 3, 1 / 3, 2 / 3] });
  expect(completenessAt(curve, 2.5)).toBeCloseTo(0.5, 12);
  expect(completenessAt(curve, 3)).toBe(2 / 3);
  expect(completenessAt(curve, 0.5)).toBeUndefined();
  expect(completenessAt(curve, 3.1)).toBeUndefined();
});
