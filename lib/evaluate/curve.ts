import { aList, aNumber } from '../check.js';
import { FinchError } from '../errors.js';

/** Means over queries for k = 1 … depth: element k − 1 belongs to k. Both rise with k. */
export interface RankingCurve {
  readonly recall: readonly number[];
  readonly completeness: readonly number[];
}

/**
 * Recall@k and Completeness@k for k = 1 … depth, from the positions of the gold tools.
 *
 * @param rows per query the ascending 1-based gold positions and the size of its gold set (>= 1)
 */
export function rankingCurve(
  rows: readonly { readonly positions: readonly number[]; readonly gold: number }[],
  depth: number,
): RankingCurve {
  const recall = new Array<number>(depth).fill(0);
  const completeness = new Array<number>(depth).fill(0);
  for (const { positions, gold } of rows) {
    let found = 0;
    for (let k = 1; k <= depth; k++) {
      while (found < positions.length && (positions[found] as number) <= k) found += 1;
      recall[k - 1] = (recall[k - 1] as number) + found / gold;
      if (found === gold) completeness[k - 1] = (completeness[k - 1] as number) + 1;
    }
  }
  // Dividing the sums, not the terms, keeps a full curve at 1 exactly.
  const mean = (sum: number): number => sum / rows.length;
  return { recall: recall.map(mean), completeness: completeness.map(mean) };
}

/**
 * The value of a curve at a mean k that is no integer: linear between its neighbours, which is what a fixed cut would
 * give that keeps ⌊k⌋ tools for some queries and ⌈k⌉ for the others, at random, with mean k. Use it to hold a cut
 * that chooses k itself against a fixed one at equal mean k. The curve is 0 at k = 0.
 *
 * @param values element k − 1 belongs to k
 * @param k from 0 to values.length
 * @throws FinchError FINCH_INVALID_ARGUMENT when k is outside the curve
 */
export function curveAt(values: readonly number[], k: number): number {
  aList(aNumber)(values, 'curveAt: values');
  aNumber(k, 'curveAt: k');
  if (!(k >= 0 && k <= values.length)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `curveAt: k is ${k}, the curve reaches from 0 to ${values.length}; evaluate with a larger depth`,
    );
  }
  const at = (i: number): number => (i === 0 ? 0 : (values[i - 1] as number));
  const low = Math.floor(k);
  const high = Math.ceil(k);
  return at(low) + (at(high) - at(low)) * (k - low);
}

/** How often each value occurs: element k is the number of queries with k, up to the largest. */
export function countEach(ks: readonly number[]): number[] {
  const counts: number[] = [];
  for (const k of ks) {
    while (counts.length <= k) counts.push(0);
    counts[k] = (counts[k] as number) + 1;
  }
  return counts;
}
