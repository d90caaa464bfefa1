import type { NativeRanked } from '../native.js';
import type { Snapshot } from '../retrieve/vector-index.js';
import { meanOfBest } from '../truncate/abstention.js';
import {
  type AbstentionCalibration,
  checkSamePipeline,
  type Pipeline,
} from '../truncate/calibration.js';
import {
  type CutRule,
  calibrationOf,
  cutChecked,
  isNativeRule,
  type ListCut,
} from '../truncate/cut-rule.js';

/** Candidates of a list, unless a calibration says otherwise. */
export const defaultShortlist = 10;

/** A calibrated cut looks at as many candidates as it was calibrated on. */
export function shortlistFor(cut: CutRule | undefined, shortlist: number | undefined): number {
  if (shortlist !== undefined) return shortlist;
  return cut?.rule === 'calibrated' ? calibrationOf(cut).pipeline.shortlist : defaultShortlist;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT: a calibration was made for other lists */
export function checkCalibrated(
  cut: CutRule | undefined,
  abstain: AbstentionCalibration | undefined,
  used: Pipeline,
): void {
  if (cut?.rule === 'calibrated') {
    checkSamePipeline(calibrationOf(cut).pipeline, used, 'cut.calibration');
  }
  // It looks at the head of the list alone, which is the same for any shortlist.
  if (abstain !== undefined) {
    checkSamePipeline({ ...abstain.pipeline, shortlist: used.shortlist }, used, 'abstain');
  }
}

/** A cut of ranked candidates, and by key what was held against its threshold. */
export interface AppliedCut extends ListCut {
  readonly valueOf: ReadonlyMap<number, number>;
}

/**
 * Cuts what the native ranking ordered, by a rule that it does not know. How many are kept is a matter of relevance, so the
 * rule sees the retrieval's scores, which calibrations are made from; which ones is for the final score to say.
 */
export function cutRanked(
  ranked: NativeRanked,
  rule: CutRule,
  snapshot: Snapshot,
): AppliedCut | undefined {
  if (isNativeRule(rule)) return undefined;
  const order = bySemantic(ranked);
  const scores = order.map((i) => ranked.semantic[i] as number);
  const keys = order.map((i) => ranked.keys[i] as number);
  const embeddings =
    rule.rule === 'calibrated' ? snapshot.vectors(Float64Array.from(keys)) : undefined;
  const cut = cutChecked({ scores, embeddings }, rule);
  const values = cut.values ?? [];
  return { ...cut, valueOf: new Map(values.map((value, i) => [keys[i] as number, value])) };
}

/** The answerability of the candidates that are not failing. */
export function rankedAnswerability(ranked: NativeRanked): number {
  return meanOfBest(bySemantic(ranked).map((i) => ranked.semantic[i] as number));
}

/** The candidates that the cut sees, by the retrieval's score. */
function bySemantic({ semanticRank, cut }: NativeRanked): number[] {
  return Array.from({ length: cut.n }, (_, i) => i).sort(
    (a, b) => (semanticRank[a] as number) - (semanticRank[b] as number),
  );
}
