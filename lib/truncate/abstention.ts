import { anObject, refuse } from '../check.js';
import { FinchError } from '../errors.js';
import {
  type AbstentionCalibration,
  aShare,
  checkPipeline,
  type Pipeline,
  pipelineParts,
} from './calibration.js';
import { checkLabelled, checkList, type LabelledList, type RankedList } from './ranked-list.js';

/** How many of the best scores tell whether any tool fits. */
const looksAt = 3;

/**
 * How much a list looks as if it answered its query: the mean of its three best scores (of all, when there are fewer). One
 * score alone is more easily high by chance: on train queries of two datasets the mean refused more off-topic queries at the
 * same share of wrong refusals (docs/cuts.md). −Infinity for an empty list.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE, FINCH_DIMENSION
 */
export function answerability(list: RankedList): number {
  checkList(list);
  return meanOfBest(list.scores);
}

/** @param scores sorted, best first */
export function meanOfBest(scores: RankedList['scores']): number {
  const n = Math.min(looksAt, scores.length);
  if (n === 0) return -Infinity;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += scores[i] as number;
  return sum / n;
}

export interface CalibrateAbstentionOptions {
  /** What made the lists; `labelledLists` returns it with them. */
  pipeline: Pipeline;
  /** The share of answerable queries that may wrongly get no tool, between 0 and 1. Default 0.05. */
  falseAbstention?: number | undefined;
}

/**
 * Finds the highest answerability below which a list may be refused: with n answerable queries, the ⌊α(n + 1)⌋-th lowest. A new
 * answerable query, exchangeable with these, falls below it with probability at most α (split conformal prediction: Vovk,
 * Gammerman, Shafer 2005). Lists without gold tools are passed over: what unanswerable queries look like is not assumed.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT (also: too few queries, with the number needed), FINCH_NOT_FINITE, FINCH_DIMENSION
 */
export function calibrateAbstention(
  lists: readonly LabelledList[],
  options: CalibrateAbstentionOptions,
): AbstentionCalibration {
  if (!Array.isArray(lists)) refuse(lists, 'lists', 'an array of labelled lists');
  anObject(options, 'options');
  const { pipeline, falseAbstention = 0.05 } = options;
  checkPipeline(pipeline, 'options.pipeline');
  aShare(falseAbstention, 'options.falseAbstention');
  for (let i = 0; i < lists.length; i++) checkLabelled(lists[i], `lists[${i}]`);
  const values = (lists as readonly LabelledList[])
    .filter(({ gold, scores }) => gold > 0 && scores.length > 0)
    .map(({ scores }) => meanOfBest(scores))
    .sort((a, b) => a - b);
  const n = values.length;
  const rank = Math.floor(falseAbstention * (n + 1) + 1e-9);
  const needed = Math.ceil(1 / falseAbstention - 1 - 1e-9);
  const threshold = values[rank - 1];
  if (threshold === undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${n} answerable queries cannot vouch for at most ${(100 * falseAbstention).toFixed(1)} % false abstention: at least ${needed} are needed. Give more queries, or allow more.`,
    );
  }
  return {
    kind: 'abstention',
    version: 1,
    pipeline: pipelineParts(pipeline),
    falseAbstention,
    threshold,
    queries: n,
  };
}
