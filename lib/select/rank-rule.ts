import type { NativeRankOptions } from '../native.js';
import { type CutRule, nativeCut } from '../truncate/cut-rule.js';

/** Weights of RATED's fusion: semantic + bandit + prior = 1. */
export interface FusionWeights {
  readonly semantic: number;
  readonly bandit: number;
  readonly prior: number;
  /** How far an unavailable tool falls, in [0, 1]; 0 is RATED's fusion as written. */
  readonly outage: number;
}

/**
 * Chosen on validation queries of four datasets (docs/reliability.md). RATED's are 0.75, 0.15 and 0.10: there the prior counts
 * twice, since it is also what the bandit says of a tool without feedback.
 */
export const defaultWeights: FusionWeights = {
  semantic: 0.8,
  bandit: 0.2,
  prior: 0,
  outage: 0.5,
};

/** A tool less available than this is not offered: about its second failure in a row, until its trial is due. */
export const unhealthyBelow = 0.5;

/** What of a Selector's settings the native ranking takes. */
export interface RankSettings {
  readonly weights?: FusionWeights | undefined;
  readonly explore?: boolean | undefined;
  readonly cut?: CutRule | undefined;
  /** Default {@link unhealthyBelow}. */
  readonly minAvailability?: number | undefined;
  /** Bound the bandit's part to [0, 1]; default true. `false` with `outage: 0` is RATED's fusion as written. */
  readonly clamp?: boolean | undefined;
}

/** How candidates are ranked at `now`. */
export function rankRule(settings: RankSettings, now: number): NativeRankOptions {
  const { weights = defaultWeights, explore = true, cut, minAvailability, clamp = true } = settings;
  return {
    now,
    explore,
    minAvailability: minAvailability ?? unhealthyBelow,
    weights: { ...weights, clamp },
    cut: nativeCut(cut ?? { rule: 'dynamic' }),
  };
}
