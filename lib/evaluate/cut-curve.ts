import { aList, aNumber, anObject, refuse } from '../check.js';
import { FinchError } from '../errors.js';
import { type CutRule, checkCutRule, cutChecked } from '../truncate/cut-rule.js';
import { checkLabelled, type LabelledList } from '../truncate/ranked-list.js';

/** What a family of cuts reaches as its one setting moves: points of mean k and Completeness, ascending by mean k. */
export interface CutCurve {
  readonly meanK: readonly number[];
  readonly completeness: readonly number[];
}

/**
 * The curve of cuts that differ in one setting, one point a rule: over all lists, how many tools are kept on average, and how
 * often every gold tool is among them. Tools that were not retrieved count as missed.
 *
 * @param lists one or more, each with a gold tool
 * @param rules one or more, in any order
 * @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE, FINCH_DIMENSION, FINCH_ZERO_VECTOR, FINCH_VERSION
 */
export function cutCurve(lists: readonly LabelledList[], rules: readonly CutRule[]): CutCurve {
  checkLists(lists);
  if (!Array.isArray(rules) || rules.length === 0) refuse(rules, 'rules', 'one or more cut rules');
  for (let i = 0; i < rules.length; i++) checkCutRule(rules[i]);
  const needed = lists.map(neededK);
  return pointsOf(
    (rules as readonly CutRule[]).map((rule) => {
      let kept = 0;
      let complete = 0;
      lists.forEach((list, q) => {
        const { k } = cutChecked(list, rule);
        kept += k;
        if (k >= (needed[q] as number)) complete += 1;
      });
      return { meanK: kept / lists.length, completeness: complete / lists.length };
    }),
  );
}

/**
 * {@link cutCurve} of every threshold at once, for cuts that keep the tools before the last whose value reaches it; the best
 * is always kept. At most 500 points.
 *
 * @param valuesOf n numbers of a list of n, such as its scores, or their ratios to the best
 */
export function thresholdCurve(
  lists: readonly LabelledList[],
  valuesOf: (list: LabelledList) => ArrayLike<number>,
): CutCurve {
  checkLists(lists);
  if (typeof valuesOf !== 'function') refuse(valuesOf, 'valuesOf', 'a function');
  const all: number[] = [];
  const ofNeeded: number[] = [];
  let always = 0;
  let first = 0;
  lists.forEach((list, q) => {
    const values: unknown = valuesOf(list);
    anObject(Array.isArray(values) ? {} : values, `what valuesOf gave for lists[${q}]`);
    const numbers = Array.from(values as ArrayLike<number>);
    aList(aNumber)(numbers, `what valuesOf gave for lists[${q}]`);
    if (numbers.length !== list.scores.length) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `valuesOf gave ${numbers.length} values for the ${list.scores.length} scores of lists[${q}]; expected one each`,
      );
    }
    for (let i = numbers.length - 2; i >= 0; i--) {
      numbers[i] = Math.max(numbers[i] as number, numbers[i + 1] as number);
    }
    first += Math.min(1, numbers.length);
    all.push(...numbers.slice(1));
    const k = neededK(list);
    if (k === 1) always += 1;
    else if (k < Infinity) ofNeeded.push(numbers[k - 1] as number);
  });
  const n = lists.length;
  const falling = all.sort((a, b) => b - a);
  const needs = ofNeeded.sort((a, b) => b - a);
  const points = [{ meanK: first / n, completeness: always / n }];
  let reached = 0;
  const steps = Math.min(500, falling.length);
  for (let step = 1; step <= steps; step++) {
    // Every count where there are few; else closer together where few are kept.
    const count =
      steps === falling.length ? step : Math.round((step / steps) ** 1.5 * falling.length);
    const threshold = falling[Math.max(0, count - 1)] as number;
    while (reached < needs.length && (needs[reached] as number) >= threshold) reached += 1;
    let kept = count;
    while (kept < falling.length && falling[kept] === threshold) kept += 1;
    points.push({ meanK: (first + kept) / n, completeness: (always + reached) / n });
  }
  return pointsOf(points);
}

/**
 * Completeness at a mean k between a curve's points, linear: what a mixture of the two neighbouring cuts gives.
 *
 * @returns undefined outside the curve
 * @throws FinchError FINCH_INVALID_ARGUMENT
 */
export function completenessAt(curve: CutCurve, meanK: number): number | undefined {
  anObject(curve, 'curve');
  aList(aNumber)(curve.meanK, 'curve.meanK');
  aList(aNumber)(curve.completeness, 'curve.completeness');
  aNumber(meanK, 'meanK');
  const { meanK: x, completeness: y } = curve;
  if (x.length !== y.length) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `the curve has ${x.length} mean ks and ${y.length} values; expected as many`,
    );
  }
  const high = x.findIndex((value) => value >= meanK);
  if (high === -1) return undefined;
  if (x[high] === meanK) return y[high];
  if (high === 0) return undefined;
  const [x0, x1] = [x[high - 1] as number, x[high] as number];
  const [y0, y1] = [y[high - 1] as number, y[high] as number];
  return y0 + ((y1 - y0) * (meanK - x0)) / (x1 - x0);
}

/** The smallest k that keeps every gold tool; Infinity when one is not in the list. */
function neededK({ relevant, gold }: LabelledList): number {
  return relevant.length < gold ? Infinity : Math.max(...relevant) + 1;
}

function pointsOf(points: { meanK: number; completeness: number }[]): CutCurve {
  points.sort((a, b) => a.meanK - b.meanK || a.completeness - b.completeness);
  return {
    meanK: points.map(({ meanK }) => meanK),
    completeness: points.map(({ completeness }) => completeness),
  };
}

function checkLists(lists: readonly LabelledList[]): void {
  if (!Array.isArray(lists) || lists.length === 0) {
    refuse(lists, 'lists', 'one or more labelled lists');
  }
  for (let i = 0; i < lists.length; i++) {
    checkLabelled(lists[i], `lists[${i}]`);
    if (lists[i].gold === 0) {
      refuse(
        lists[i].gold,
        `lists[${i}].gold`,
        '1 or more: leave out queries that no tool answers',
      );
    }
  }
}
