import { anObject } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import type { RankedList } from './ranked-list.js';

/** How much each feature of a candidate says for keeping it. */
export interface KeepWeights {
  /** Of z_i = (s_i − mean(s)) / sd(s): how far it stands out of its list. */
  readonly standing: number;
  /** Of ln p_i, p = softmax(z): its share of the list's relevance. It falls with every other candidate as good. */
  readonly share: number;
  /** Of max over j < i of cos(e_i, e_j): how near it is to a tool that is kept already. Mostly below 0. */
  readonly similarity: number;
}

/** Chosen on train queries of two datasets by Completeness at equal mean k (docs/cuts.md). */
export const defaultKeepWeights: KeepWeights = { standing: 0.5, share: 1, similarity: -2 };

export function checkWeights(weights: KeepWeights, name: string): void {
  anObject(weights, name);
  for (const key of ['standing', 'share', 'similarity'] as const) {
    const value = weights[key];
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name}.${key} is ${kindOf(value)}; expected a finite number`,
      );
    }
  }
}

/**
 * What the calibrated cut holds against its threshold, one number a candidate: w₁·z_i + w₂·ln softmax(z)_i + w₃·max_(j<i)
 * cos(e_i, e_j). All three are the same for scores on any scale and from any origin, so one set of weights serves cosines,
 * hybrid scores and a reranker's.
 *
 * @param list must have passed checkList
 * @param name how messages call it
 * @returns n numbers, not sorted
 * @throws FinchError FINCH_INVALID_ARGUMENT (embeddings are needed), FINCH_ZERO_VECTOR
 */
export function keepScores(
  { scores, embeddings }: RankedList,
  weights: KeepWeights,
  name = 'list',
): Float64Array {
  const n = scores.length;
  const kept = new Float64Array(n);
  if (n === 0) return kept;
  let mean = 0;
  for (let i = 0; i < n; i++) mean += (scores[i] as number) / n;
  let variance = 0;
  for (let i = 0; i < n; i++) variance += ((scores[i] as number) - mean) ** 2 / n;
  const sd = Math.sqrt(variance);
  // A flat list: rounding alone must not make one candidate stand out.
  const flat = !(sd > 1e-7 * Math.max(Math.abs(scores[0] as number), Math.abs(mean)));
  const z = (i: number) => (flat ? 0 : ((scores[i] as number) - mean) / sd);
  let sum = 0;
  for (let i = 0; i < n; i++) sum += Math.exp(z(i) - z(0));
  const logSum = Math.log(sum) + z(0);
  for (let i = 0; i < n; i++) {
    kept[i] = weights.standing * z(i) + weights.share * (z(i) - logSum);
  }
  if (weights.similarity === 0) return kept;
  if (embeddings === undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${name} has no embeddings, which this calibration needs: it looks at the similarity of candidates. Give them, or calibrate with the weight similarity: 0.`,
    );
  }
  const nearest = nearestBefore(embeddings, n, name);
  for (let i = 1; i < n; i++) {
    kept[i] = (kept[i] as number) + weights.similarity * (nearest[i] as number);
  }
  return kept;
}

/** Element i: the largest cosine of row i with a row before it; 0 for the first. */
function nearestBefore(rows: Float32Array, n: number, name: string): Float64Array {
  const d = rows.length / n;
  const inverse = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let square = 0;
    for (let at = i * d; at < (i + 1) * d; at++) square += (rows[at] as number) ** 2;
    if (!Number.isFinite(square)) {
      throw new FinchError(
        'FINCH_NOT_FINITE',
        `row ${i} of ${name}.embeddings is not finite; expected finite numbers`,
      );
    }
    if (square === 0) {
      throw new FinchError(
        'FINCH_ZERO_VECTOR',
        `row ${i} of ${name}.embeddings is the zero vector, which has no direction`,
      );
    }
    inverse[i] = 1 / Math.sqrt(square);
  }
  const nearest = new Float64Array(n);
  for (let i = 1; i < n; i++) {
    let best = -Infinity;
    for (let j = 0; j < i; j++) {
      // Four sums: one alone waits for itself at every step.
      let dot = 0;
      let dot1 = 0;
      let dot2 = 0;
      let dot3 = 0;
      let a = i * d;
      let b = j * d;
      const end = a + d;
      for (; a + 3 < end; a += 4, b += 4) {
        dot += (rows[a] as number) * (rows[b] as number);
        dot1 += (rows[a + 1] as number) * (rows[b + 1] as number);
        dot2 += (rows[a + 2] as number) * (rows[b + 2] as number);
        dot3 += (rows[a + 3] as number) * (rows[b + 3] as number);
      }
      for (; a < end; a++, b++) dot += (rows[a] as number) * (rows[b] as number);
      dot += dot1 + dot2 + dot3;
      const cosine = dot * (inverse[i] as number) * (inverse[j] as number);
      if (cosine > best) best = cosine;
    }
    nearest[i] = best;
  }
  return nearest;
}

/** Makes values fall along the list, so that a threshold keeps a prefix: element i becomes the largest from i on. */
export function barsOf(values: Float64Array): Float64Array {
  const bars = Float64Array.from(values);
  for (let i = bars.length - 2; i >= 0; i--) {
    if ((bars[i + 1] as number) > (bars[i] as number)) bars[i] = bars[i + 1] as number;
  }
  return bars;
}

/** How many bars reach the threshold; they must fall. */
export function countReaching(bars: Float64Array, threshold: number): number {
  let low = 0;
  let high = bars.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bars[middle] as number) >= threshold) low = middle + 1;
    else high = middle;
  }
  return low;
}
