import { binding, type CutSignal } from '../native.js';

export type { CutSignal };

/** Where a ranked list was cut. Positions are 1-based: k = 3 keeps the first three. */
export interface Cut {
  readonly k: number;
  /** Position of the largest gap between neighbouring scores; 0 when there is none. */
  readonly kScore: number;
  /** Position of the largest drop between neighbouring similarities; 0 when there is none. */
  readonly kSimilarity: number;
  /** Which signals set k; empty when a bound or another rule did. */
  readonly signals: readonly CutSignal[];
  readonly gapScore: number;
  readonly gapSimilarity: number;
  /** How many the rule looked at. */
  readonly n: number;
}

export interface CutOptions {
  /** Never keep fewer (when there are as many). Default: no bound. */
  minK?: number;
  /** Never keep more. Default: no bound. */
  maxK?: number;
  /** Default: both. */
  signals?: readonly CutSignal[];
  /** `before` (the paper's): cut after t_i; `after`: after t_(i+1), the last tool that still belongs to the cluster. */
  boundary?: 'before' | 'after';
}

/**
 * Dynamic top-k (MagicSelector, algorithm 2): K_score = argmax_i (s_i − s_(i+1)); sim_i = cos(e_i, e_(i+1)), K_sim =
 * argmax_i (sim_i − sim_(i+1)); K = the larger. Ties take the smallest i. n = 0 keeps 0, n = 1 keeps 1, n = 2 uses the
 * scores alone.
 *
 * @param scores n numbers, descending.
 * @param embeddings n × d, in the same order, any length but zero; null with the score signal alone.
 * @returns The cut and the n − 1 similarities of neighbours.
 * @throws FinchError FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_DIMENSION, FINCH_INVALID_ARGUMENT (not sorted, options)
 */
export function dynamicCut(
  scores: Float32Array,
  embeddings: Float32Array | null,
  options: CutOptions = {},
): { cut: Cut; similarities: Float32Array } {
  return binding().truncate(scores, embeddings, options);
}

/**
 * {@link dynamicCut} over ragged lists in one call: list j is rows offsets[j] … offsets[j + 1] − 1.
 *
 * @param offsets lists + 1 numbers, ascending from 0 to scores.length.
 */
export function dynamicCutBatch(
  scores: Float32Array,
  embeddings: Float32Array | null,
  offsets: Float64Array,
  options: CutOptions = {},
): Cut[] {
  return binding().truncateBatch(scores, embeddings, offsets, options);
}
