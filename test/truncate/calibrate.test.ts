import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CutCalibration,
  calibrateAbstention,
  calibrateCut,
  cutList,
  defaultKeepWeights,
  FinchError,
  type LabelledList,
  packagedAbstention,
  packagedCut,
} from '../../dist/esm/lib/index.js';
import { mulberry32, permutation } from '../../lib/evaluate/random.js';
import '../property-seed.js';
import { drawLists, labelledList } from './labelled.js';

const pipeline = { encoder: 'e', method: 'hybrid', shortlist: 12 };
const weights = { standing: 1, share: 1, similarity: 0 };

function refusal(work: () => unknown): FinchError {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(FinchError);
    return error as FinchError;
  }
  throw new Error('it was taken');
}

const loss = (list: LabelledList, k: number, measure: 'recall' | 'completeness') => {
  const kept = list.relevant.filter((position) => position < k).length;
  return measure === 'recall' ? 1 - kept / list.gold : kept === list.gold ? 0 : 1;
};

describe('calibrateCut', () => {
  it('keeps the promise on average over calibrations, with few and with many queries', () => {
    const random = mulberry32(5);
    for (const [n, target] of [
      [19, 0.8],
      [40, 0.9],
      [200, 0.9],
      [100, 0.95],
    ] as const) {
      for (const measure of ['recall', 'completeness'] as const) {
        const rounds = 200;
        let sum = 0;
        let kept = 0;
        for (let round = 0; round < rounds; round++) {
          const lists = drawLists(n, random);
          const calibration = calibrateCut(lists, {
            pipeline,
            weights,
            measure,
            targets: [target],
          });
          for (const list of drawLists(5, random)) {
            const { k } = cutList(list, { rule: 'calibrated', target, calibration });
            sum += loss(list, k, measure) / 5;
            kept += k / 5;
          }
        }
        // Three standard errors, taking a round for one draw: losses in [0, 1] with mean 1 − target.
        const risk = sum / rounds;
        const slack = 3 * Math.sqrt(((1 - target) * target) / rounds);
        expect(risk).toBeLessThanOrEqual(1 - target + slack);
        // And does not do so by keeping everything: what is given away is of the order of 1 / n.
        expect(risk).toBeGreaterThanOrEqual(1 - target - 2 / (n + 1) - slack);
        expect(kept / rounds).toBeLessThan(12);
      }
    }
  });

  it('takes the highest threshold that satisfies the bound', () => {
    fc.assert(
      fc.property(
        fc.array(labelledList(), { minLength: 1, maxLength: 30 }),
        fc.constantFrom('recall', 'completeness'),
        fc.double({ min: 0.05, max: 0.95, noNaN: true }),
        (lists, measure, target) => {
          const counted = lists.filter(({ gold }) => gold > 0);
          const n = counted.length;
          const riskOf = (calibration: CutCalibration) =>
            counted.reduce((sum, list) => {
              const { k } = cutList(list, { rule: 'calibrated', target, calibration });
              return sum + loss(list, k, measure);
            }, 0);
          const bounded = (total: number) => total <= (1 - target) * (n + 1) - 1 + 1e-8;
          let calibration: CutCalibration;
          try {
            calibration = calibrateCut(lists, { pipeline, measure, targets: [target] });
          } catch (error) {
            expect((error as FinchError).code).toBe('FINCH_INVALID_ARGUMENT');
            const everything = counted.reduce((sum, list) => sum + loss(list, 99, measure), 0);
            expect(n === 0 || !bounded(everything - 1e-7)).toBe(true);
            return;
          }
          const [found] = calibration.thresholds;
          if (found === undefined) throw new Error('no threshold');
          const total = riskOf(calibration);
          expect(bounded(total)).toBe(true);
          expect(found.reached).toBeCloseTo(1 - total / n, 9);
          if (found.threshold < 1e300) {
            const higher = {
              ...found,
              threshold: found.threshold + 1e-9 * Math.max(1, Math.abs(found.threshold)),
            };
            expect(bounded(riskOf({ ...calibration, thresholds: [higher] }) - 2e-8)).toBe(false);
          }
        },
      ),
    );
  });

  it('does not depend on the order of queries, nor on that of labels', () => {
    fc.assert(
      fc.property(
        fc.array(labelledList(), { minLength: 12, maxLength: 30 }),
        fc.nat(),
        (lists, seed) => {
          const options = { pipeline, among: 'retrieved', targets: [0.3, 0.5] } as const;
          if (lists.filter(({ relevant }) => relevant.length > 0).length < 9) return;
          const order = permutation(lists.length, mulberry32(seed));
          const mixed = [...order].map((i) => {
            const list = lists[i] as LabelledList;
            return { ...list, relevant: [...list.relevant].reverse() };
          });
          const [a, b] = [calibrateCut(lists, options), calibrateCut(mixed, options)];
          a.thresholds.forEach(({ threshold, reached, meanK }, i) => {
            expect(b.thresholds[i]?.threshold).toBe(threshold);
            expect(b.thresholds[i]?.reached).toBeCloseTo(reached, 9);
            expect(b.thresholds[i]?.meanK).toBeCloseTo(meanK, 9);
          });
        },
      ),
    );
  });

  it('keeps more for a higher target', () => {
    const calibration = calibrateCut(drawLists(300, mulberry32(1)), {
      pipeline,
      weights,
      targets: [0.95, 0.5, 0.9, 0.7],
    });
    expect(calibration.thresholds.map(({ target }) => target)).toEqual([0.5, 0.7, 0.9, 0.95]);
    for (const list of drawLists(50, mulberry32(2))) {
      const ks = [0.5, 0.7, 0.9, 0.95].map(
        (target) => cutList(list, { rule: 'calibrated', target, calibration }).k,
      );
      expect(ks).toEqual([...ks].sort((a, b) => a - b));
    }
  });

  it('sees nothing of the scale of the scores', () => {
    fc.assert(
      fc.property(labelledList(), fc.double({ min: 0.5, max: 50, noNaN: true }), (list, scale) => {
        // Differences that rounding would eat are no part of it.
        const plain = Float64Array.from(list.scores, (score) => Math.round(100 * score) / 100);
        const scores = plain.map((score) => scale * score + 7);
        const calibration = { ...packagedCut, pipeline };
        const rule = { rule: 'calibrated', target: 0.8, calibration } as const;
        const [a, b] = [
          { ...list, scores: plain },
          { ...list, scores },
        ].map((each) => cutList(each, rule));
        a?.values?.forEach((value, i) => {
          expect(b?.values?.[i]).toBeCloseTo(value, 6);
        });
      }),
    );
  });

  it('says how many queries a target needs, and that number is enough', () => {
    const perfect = (n: number): LabelledList[] =>
      Array.from({ length: n }, () => ({ scores: [2, 1, 0.5], relevant: [0], gold: 1 }));
    const calibrate = (n: number) => () =>
      calibrateCut(perfect(n), { pipeline, weights, targets: [0.95] });
    const error = refusal(calibrate(18));
    expect(error.code).toBe('FINCH_INVALID_ARGUMENT');
    expect(error.message).toContain('at least 19');
    expect(calibrate(19)().thresholds[0]?.meanK).toBe(1);
  });

  it('says so when the retrieval is the limit', () => {
    const lists = Array.from({ length: 100 }, (_, i) => ({
      scores: [2, 1],
      relevant: i % 4 === 0 ? [] : [1],
      gold: 1,
    }));
    const { message } = refusal(() => calibrateCut(lists, { pipeline, weights, targets: [0.9] }));
    expect(message).toContain('75.0 %');
    const among = calibrateCut(lists, { pipeline, weights, targets: [0.9], among: 'retrieved' });
    expect(among.queries).toBe(75);
  });

  it('names the list whose embeddings are wrong, by its place among all', () => {
    const list = {
      scores: [3, 2, 1],
      embeddings: Float32Array.of(1, 0, 0, 1, 1, 1),
      relevant: [0],
      gold: 1,
    };
    // The first says nothing of a target and is passed over.
    const lists = [
      { ...list, relevant: [], gold: 0 },
      ...Array.from({ length: 30 }, () => ({ ...list })),
    ];
    const { embeddings: _, ...bare } = list;
    for (const [wrong, code] of [
      [bare, 'FINCH_INVALID_ARGUMENT'],
      [{ ...list, embeddings: Float32Array.of(1, 0, 0, 0, 1, 1) }, 'FINCH_ZERO_VECTOR'],
      [{ ...list, embeddings: Float32Array.of(1, 0, 0, 1, 1, Number.NaN) }, 'FINCH_NOT_FINITE'],
      [{ ...list, embeddings: new Float32Array(7) }, 'FINCH_DIMENSION'],
    ] as const) {
      const message = expect.stringContaining('lists[17]') as string;
      expect(() =>
        calibrateCut(lists.with(17, wrong as never), { pipeline, targets: [0.9] }),
      ).toThrow(expect.objectContaining({ code, message }));
    }
  });

  it('is plain data: JSON gives the same calibration back', () => {
    const calibration = calibrateCut(drawLists(100, mulberry32(3)), { pipeline, weights });
    expect(JSON.parse(JSON.stringify(calibration))).toEqual(calibration);
    for (const packaged of [packagedCut, packagedAbstention]) {
      expect(JSON.parse(JSON.stringify(packaged))).toEqual(packaged);
    }
  });

  it('refuses what was changed', () => {
    const list = { scores: [2, 1], embeddings: Float32Array.of(1, 0, 0, 1) };
    const use = (calibration: object) => () =>
      cutList(list, {
        rule: 'calibrated',
        target: 0.9,
        calibration: calibration as CutCalibration,
      });
    expect(use(packagedCut)().k).toBeGreaterThan(0);
    expect(refusal(use({ ...packagedCut, version: 2 })).code).toBe('FINCH_VERSION');
    expect(refusal(use(packagedAbstention)).message).toContain('calibrateCut');
    const thresholds = [...packagedCut.thresholds].reverse();
    expect(refusal(use({ ...packagedCut, thresholds })).message).toContain('thresholds[1]');
    expect(refusal(use({ ...packagedCut, weights: {} })).code).toBe('FINCH_INVALID_ARGUMENT');
    const { message } = refusal(() => cutList(list, { rule: 'calibrated', target: 0.91 }));
    expect(message).toContain('0.9, 0.95');
    const bare = refusal(() => cutList({ scores: [2, 1] }, { rule: 'calibrated', target: 0.9 }));
    expect(bare.message).toContain('embeddings');
    expect(defaultKeepWeights).toEqual(packagedCut.weights);
  });
});

describe('calibrateAbstention', () => {
  it('refuses at most the share allowed of new answerable queries, on average', () => {
    const random = mulberry32(9);
    for (const [n, alpha] of [
      [19, 0.05],
      [60, 0.05],
      [30, 0.2],
    ] as const) {
      let refused = 0;
      const rounds = 1500;
      for (let round = 0; round < rounds; round++) {
        const { threshold } = calibrateAbstention(drawLists(n, random), {
          pipeline,
          falseAbstention: alpha,
        });
        const [list] = drawLists(1, random);
        const { scores } = list as LabelledList;
        const best = ((scores[0] as number) + (scores[1] as number) + (scores[2] as number)) / 3;
        if (best < threshold) refused += 1;
      }
      const slack = 4 * Math.sqrt((alpha * (1 - alpha)) / rounds);
      expect(refused / rounds).toBeLessThanOrEqual(alpha + slack);
      expect(refused / rounds).toBeGreaterThan(alpha - 1 / (n + 1) - slack);
    }
  });

  it('says how many queries it needs', () => {
    const lists = drawLists(18, mulberry32(1));
    expect(refusal(() => calibrateAbstention(lists, { pipeline })).message).toContain(
      'at least 19',
    );
    expect(calibrateAbstention(drawLists(19, mulberry32(1)), { pipeline }).queries).toBe(19);
  });
});
