import type { NativeRanked } from '../native.js';
import type { Retrieved } from '../retrieve/retrieve.js';
import type { Snapshot } from '../retrieve/vector-index.js';
import { meanOfBest } from '../truncate/abstention.js';
import type { AbstentionCalibration } from '../truncate/calibration.js';
import type { CutRule, CutRuleName } from '../truncate/cut-rule.js';
import type { Decision } from './decision.js';
import { type AppliedCut, cutRanked, rankedAnswerability } from './list-cut.js';
import type { RerankedRequest } from './rerank-stage.js';

/** What the cut and abstaining made of the ranked candidates. */
export interface Judged {
  /** The rule that cut the list. */
  readonly rule: CutRuleName;
  /** Where the rule is not the native ranking's own. */
  readonly applied: AppliedCut | undefined;
  readonly abstained: 'unhealthy' | 'below-floor' | 'unanswerable' | undefined;
  readonly abstention?: NonNullable<Decision['abstention']>;
}

/** What a request is judged by. */
export interface Criteria {
  readonly cut?: CutRule | undefined;
  readonly abstain?: AbstentionCalibration | undefined;
  readonly relevanceFloor?: number | undefined;
  /** The encoder's own floor. */
  readonly encoderFloor: number | undefined;
  readonly reranked?: RerankedRequest | undefined;
}

/**
 * Whether the best of what was found is good enough, and where the list is cut.
 *
 * @param retrieved at least one, best first
 */
export function judge(
  ranked: NativeRanked,
  retrieved: readonly Retrieved[],
  snapshot: Snapshot,
  { cut = { rule: 'dynamic' }, abstain, ...floors }: Criteria,
): Judged {
  const best = retrieved[0] as Retrieved;
  // What was calibrated goes before the models' own floors.
  const own = abstain === undefined;
  const encoderFloor = own ? floors.encoderFloor : undefined;
  const { relevanceFloor, reranked } = floors;
  const floored =
    reranked === undefined
      ? belowFloor(ranked, best, relevanceFloor ?? encoderFloor ?? -Infinity)
      : belowFloorReranked(
          ranked,
          retrieved,
          own ? reranked : { ...reranked, floor: undefined },
          relevanceFloor,
          encoderFloor,
        );
  // What was meant for a reranker's scores says nothing of the retrieval's, nor of the fillers of a list half scored.
  const unscored = reranked?.record.scored === 0;
  const hasScale = cut.rule === 'threshold' || cut.rule === 'calibrated';
  const rule = unscored && hasScale ? 'dynamic' : cut.rule;
  const applied = rule === cut.rule ? cutRanked(ranked, cut, snapshot) : undefined;
  const judged = { rule, applied, abstained: floored };
  if (abstain === undefined || (reranked !== undefined && reranked.record.outcome !== 'done')) {
    return judged;
  }
  const answerability = rankedAnswerability(ranked);
  const { threshold } = abstain;
  const doubted =
    answerability >= threshold || best.named !== undefined
      ? undefined
      : meanOfBest(scoresOf(retrieved, reranked)) >= threshold
        ? 'unhealthy'
        : 'unanswerable';
  return { ...judged, abstained: floored ?? doubted, abstention: { answerability, threshold } };
}

function belowFloor(
  ranked: NativeRanked,
  best: Retrieved,
  floor: number,
): 'unhealthy' | 'below-floor' | undefined {
  const healthy = ranked.semantic.subarray(0, ranked.cut.n);
  if (Math.max(...healthy) >= floor || best.named !== undefined) return undefined;
  return best.score >= floor ? 'unhealthy' : 'below-floor';
}

/**
 * After a reranker: by probability where the reranker has a floor and the caller gave none, else by the retrieval's scores of
 * all that was found. A tool called by its name is always good enough, one that is failing at present never.
 */
function belowFloorReranked(
  ranked: NativeRanked,
  retrieved: readonly Retrieved[],
  { record, floor }: RerankedRequest,
  given: number | undefined,
  encoderFloor: number | undefined,
): 'unhealthy' | 'below-floor' | undefined {
  const byProbability = given === undefined && floor !== undefined && record.scored > 0;
  const probabilities = new Map(record.order.map(({ id, probability }) => [id, probability]));
  const least = byProbability ? floor : (given ?? encoderFloor ?? -Infinity);
  const good = retrieved.filter(
    ({ id, score, named }) =>
      named !== undefined ||
      (byProbability ? (probabilities.get(id) ?? -Infinity) : score) >= least,
  );
  const failing = new Set(ranked.ids.slice(ranked.cut.n));
  if (good.some(({ id }) => !failing.has(id))) return undefined;
  return good.length > 0 ? 'unhealthy' : 'below-floor';
}

/** The scores that the ranking began with, failing tools included, best first. */
function scoresOf(
  retrieved: readonly Retrieved[],
  reranked: RerankedRequest | undefined,
): readonly number[] {
  if (reranked === undefined) return retrieved.map(({ score }) => score);
  return reranked.record.order.flatMap(({ probability }) => probability ?? []);
}
