import type { NativeRanked } from '../native.js';
import type { Retrieved } from '../retrieve/retrieve.js';
import type { Snapshot } from '../retrieve/vector-index.js';
import { meanOfBest } from '../truncate/abstention.js';
import type { AbstentionCalibration } from '../truncate/calibration.js';
import type { CutRule } from '../truncate/cut-rule.js';
import type { Decision } from './decision.js';
import { type AppliedCut, cutRanked, rankedAnswerability } from './list-cut.js';
import { abstentionAfterRerank, type RerankedRequest } from './rerank-stage.js';

/** What the cut and abstaining made of the ranked candidates. */
export interface Judged {
  /** Where the rule is not the native ranking's own. */
  readonly applied: AppliedCut | undefined;
  readonly abstained: 'unhealthy' | 'below-floor' | 'unanswerable' | undefined;
  readonly abstention?: NonNullable<Decision['abstention']>;
}

/** What a request is judged by. */
export interface Judgement {
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
  { cut = { rule: 'dynamic' }, abstain, ...floors }: Judgement,
): Judged {
  const best = retrieved[0] as Retrieved;
  // What was calibrated goes before the models' own floors.
  const own = abstain === undefined;
  const encoderFloor = own ? floors.encoderFloor : undefined;
  const { relevanceFloor, reranked } = floors;
  const floored =
    reranked === undefined
      ? belowFloor(ranked, best, relevanceFloor ?? encoderFloor ?? -Infinity)
      : abstentionAfterRerank(
          own ? reranked : { ...reranked, floor: undefined },
          best,
          ranked.cut.n,
          relevanceFloor,
          encoderFloor,
        );
  const applied = cutRanked(ranked, cut, snapshot);
  // A reranker that scored nothing leaves scores that the calibration knows nothing of.
  if (abstain === undefined || reranked?.record.scored === 0)
    return { applied, abstained: floored };
  const answerability = rankedAnswerability(ranked);
  const { threshold } = abstain;
  const doubted =
    answerability >= threshold || best.named !== undefined
      ? undefined
      : meanOfBest(scoresOf(retrieved, reranked)) >= threshold
        ? 'unhealthy'
        : 'unanswerable';
  return { applied, abstained: floored ?? doubted, abstention: { answerability, threshold } };
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

/** The scores that the ranking began with, failing tools included, best first. */
function scoresOf(
  retrieved: readonly Retrieved[],
  reranked: RerankedRequest | undefined,
): readonly number[] {
  if (reranked === undefined) return retrieved.map(({ score }) => score);
  return reranked.record.order.flatMap(({ probability }) => probability ?? []);
}
