import { aList, anObject, optional, refuse } from '../check.js';
import { FinchError } from '../errors.js';
import {
  aMeasure,
  anAmong,
  aShare,
  type CutAmong,
  type CutCalibration,
  type CutMeasure,
  type CutThreshold,
  checkPipeline,
  type Pipeline,
  pipelineParts,
} from './calibration.js';
import {
  barsOf,
  checkWeights,
  countReaching,
  defaultKeepWeights,
  type KeepWeights,
  keepScores,
} from './keep-scores.js';
import { checkLabelled, type LabelledList } from './ranked-list.js';
import { cannotControl, controlRisk, type Loss } from './risk-control.js';

export interface CalibrateCutOptions {
  /** What made the lists; `labelledLists` returns it with them. */
  pipeline: Pipeline;
  /** Each between 0 and 1. Default 0.8, 0.9 and 0.95. */
  targets?: readonly number[] | undefined;
  /** Default `recall`. */
  measure?: CutMeasure | undefined;
  /** Default `all`: tools that the retrieval misses count as missed. */
  among?: CutAmong | undefined;
  /** Default {@link defaultKeepWeights}. Choose them on other queries than these, or the guarantee is void. */
  weights?: KeepWeights | undefined;
}

const targetList = optional(aList(aShare));

/**
 * Finds, for each target, the highest threshold of keep scores (so the fewest tools) whose expected loss on a new query is at
 * most 1 − target, by conformal risk control: with n queries, the mean loss R̂ on them must satisfy (n·R̂ + 1) / (n + 1) ≤ 1 −
 * target. It holds on average over calibrations, for new queries exchangeable with these: same users, same catalogue, same
 * pipeline. Queries without gold tools are passed over; so are, with `among: 'retrieved'`, those none of whose is in the list.
 *
 * Source: Angelopoulos, Bates, Fisch, Lei, Schuster, Conformal Risk Control (2022), eq. 4.
 *
 * @param lists one a query, in any order; the result does not depend on it
 * @throws FinchError FINCH_INVALID_ARGUMENT (also: a target that so few queries cannot vouch for, with the number that could;
 * one that the retrieval cannot reach), FINCH_NOT_FINITE, FINCH_DIMENSION, FINCH_ZERO_VECTOR
 */
export function calibrateCut(
  lists: readonly LabelledList[],
  options: CalibrateCutOptions,
): CutCalibration {
  if (!Array.isArray(lists)) refuse(lists, 'lists', 'an array of labelled lists');
  anObject(options, 'options');
  const { pipeline, targets = [0.8, 0.9, 0.95], measure = 'recall', among = 'all' } = options;
  const { weights = defaultKeepWeights } = options;
  checkPipeline(pipeline, 'options.pipeline');
  targetList(targets, 'options.targets');
  aMeasure(measure, 'options.measure');
  anAmong(among, 'options.among');
  checkWeights(weights, 'options.weights');
  if (targets.length === 0) refuse(targets, 'options.targets', 'one or more targets');
  for (let i = 0; i < lists.length; i++) checkLabelled(lists[i], `lists[${i}]`);

  const counted = countedLists(lists, among);
  // By their places among all lists, which is how messages call them.
  const places = new Map(lists.map((list, i) => [list, i]));
  const bars = counted.map((list) =>
    barsOf(keepScores(list, weights, `lists[${places.get(list)}]`)),
  );
  const thresholds = thresholdsFor(counted, bars, { targets, measure, among }, pipeline.shortlist);
  return {
    kind: 'cut',
    version: 1,
    pipeline: pipelineParts(pipeline),
    measure,
    among,
    weights: { ...weights },
    queries: counted.length,
    thresholds,
  };
}

/** The lists that say something about a target. */
export function countedLists(lists: readonly LabelledList[], among: CutAmong): LabelledList[] {
  const counted = lists.filter(({ gold, relevant }) =>
    among === 'all' ? gold > 0 : relevant.length > 0,
  );
  if (counted.length > 0) return counted;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `none of the ${lists.length} lists has a gold tool${among === 'all' ? '' : ' among its candidates'}, so there is nothing to calibrate on`,
  );
}

/** {@link calibrateCut} of lists whose bars (see {@link barsOf}) are known. */
export function thresholdsFor(
  lists: readonly LabelledList[],
  bars: readonly Float64Array[],
  { targets, measure, among }: { targets: readonly number[]; measure: CutMeasure; among: CutAmong },
  shortlist: number,
): CutThreshold[] {
  const n = lists.length;
  let missed = 0;
  const losses: Loss[] = [];
  lists.forEach((list, q) => {
    const { relevant } = list;
    const gold = among === 'all' ? list.gold : relevant.length;
    // The first tool is always kept.
    const barOf = (position: number) =>
      position === 0 ? Infinity : ((bars[q] as Float64Array)[position] as number);
    if (measure === 'recall') {
      missed += (gold - relevant.length) / gold;
      for (const position of relevant) losses.push({ bar: barOf(position), loss: 1 / gold });
    } else if (relevant.length < gold) {
      missed += 1;
    } else {
      losses.push({ bar: Math.min(...relevant.map(barOf)), loss: 1 });
    }
  });
  const floor = missed / n;
  return [...new Set(targets)]
    .sort((a, b) => a - b)
    .map((target): CutThreshold => {
      const bound = controlRisk(losses, n, 1 - target, floor);
      if (bound === undefined) throw cannotControl(measure, target, n, floor, shortlist);
      const { threshold, risk } = bound;
      const kept = bars.map((each) =>
        Math.max(Math.min(1, each.length), countReaching(each, threshold)),
      );
      return { target, threshold, reached: 1 - risk, meanK: kept.reduce((a, k) => a + k, 0) / n };
    });
}
