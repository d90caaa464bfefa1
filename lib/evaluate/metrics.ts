import { aList, aString, fields, refuse, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';

/**
 * What is right for one query: the set of gold tool ids, or a map from tool id to its relevance (0 = judged and not
 * relevant, larger = better; 0 to {@link maxRelevance}). A set counts as relevance 1 for each member.
 */
export type Gold = ReadonlyMap<string, number> | ReadonlySet<string>;

/** Refuses what is neither a set nor a map, in this or another realm. */
export const aGold = rule(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { has?: unknown }).has === 'function' &&
    Symbol.iterator in value,
  'a Set of tool ids, or a Map from tool id to relevance',
);
const aSelection = fields({ kept: aList(aString), gold: aGold });

/** The largest relevance: gains 2^rel − 1 stay exact sums in float64 far below overflow. */
export const maxRelevance = 32;

/**
 * NDCG@k = DCG@k / IDCG@k with DCG@k = Σ_(i=1..k) (2^rel_i − 1) / log2(i + 1); IDCG@k is the DCG@k of the gold tools in
 * descending relevance, so a gold set larger than k can still reach 1. In [0, 1].
 *
 * Source: MagicSelector, equation 4; Burges et al. 2005 (the exponential gain).
 *
 * @param ranking tool ids, best first, none twice; only the first k count, a shorter one is padded with misses
 * @param k an integer >= 1
 * @throws FinchError FINCH_DUPLICATE_ID (an id twice in the ranking), FINCH_INVALID_ARGUMENT (k, a relevance, or no
 * tool of relevance > 0: such a query has no right answer and belongs out of the mean)
 */
export function ndcgAtK(ranking: readonly string[], gold: Gold, k: number): number {
  checkK(k);
  const relevance = relevanceOf(gold);
  checkUnique(ranking);
  let dcg = 0;
  for (let i = 0; i < ranking.length && i < k; i++) {
    dcg += gain(relevance.get(ranking[i] as string) ?? 0) * discount(i + 1);
  }
  const ideal = [...relevance.values()].sort((a, b) => b - a);
  let idcg = 0;
  for (let i = 0; i < ideal.length && i < k; i++)
    idcg += gain(ideal[i] as number) * discount(i + 1);
  return dcg / idcg;
}

/**
 * Recall@k = |gold ∩ top k| / |gold|, in [0, 1]. The divisor is the whole gold set: with more gold tools than k the
 * most that can be reached is k / |gold|.
 *
 * @param ranking as for {@link ndcgAtK}
 * @throws FinchError as {@link ndcgAtK}
 */
export function recallAtK(ranking: readonly string[], gold: Gold, k: number): number {
  checkK(k);
  const relevance = relevanceOf(gold);
  return countUpTo(positionsIn(ranking, relevance), k) / relevance.size;
}

/**
 * Completeness@k = 1 when every gold tool is among the first k, else 0. With more gold tools than k it is 0: k tools
 * cannot do the task.
 *
 * Source: COLT (Qu et al. 2024), COMP@K.
 *
 * @param ranking as for {@link ndcgAtK}
 * @throws FinchError as {@link ndcgAtK}
 */
export function completenessAtK(ranking: readonly string[], gold: Gold, k: number): 0 | 1 {
  checkK(k);
  const relevance = relevanceOf(gold);
  return countUpTo(positionsIn(ranking, relevance), k) === relevance.size ? 1 : 0;
}

/**
 * 1 / (position of the first gold tool), 0 when none is among the first k; its mean over queries is MRR@k. In [0, 1].
 *
 * @param ranking as for {@link ndcgAtK}
 * @param k default: the whole ranking
 * @throws FinchError as {@link ndcgAtK}
 */
export function reciprocalRank(ranking: readonly string[], gold: Gold, k?: number): number {
  if (k !== undefined) checkK(k);
  const first = positionsIn(ranking, relevanceOf(gold))[0];
  return first !== undefined && (k === undefined || first <= k) ? 1 / first : 0;
}

/** One decision of a method that chooses k itself. */
export interface KeptTools {
  /** The tools it kept; may be empty. */
  readonly kept: readonly string[];
  readonly gold: Gold;
}

/** Means over selections. Neither figure means anything without the other: keeping everything is always complete. */
export interface AdaptiveCompleteness {
  /** Mean over queries of 1[gold ⊆ kept], in [0, 1]. */
  readonly completeness: number;
  /** Mean over queries of |kept|, >= 0. */
  readonly meanK: number;
}

/**
 * Adaptive completeness: the share of queries whose kept tools hold every gold tool, with the mean number kept.
 *
 * Compare methods at equal mean k (see `curveAt`).
 *
 * @throws FinchError as {@link ndcgAtK}; FINCH_INVALID_ARGUMENT without selections
 */
export function adaptiveCompleteness(selections: Iterable<KeptTools>): AdaptiveCompleteness {
  let queries = 0;
  let complete = 0;
  let kept = 0;
  if (typeof selections?.[Symbol.iterator] !== 'function') {
    refuse(selections, 'adaptiveCompleteness: selections', 'an array, or another iterable');
  }
  for (const selection of selections) {
    aSelection(selection, `adaptiveCompleteness: selection ${queries}`);
    queries += 1;
    kept += selection.kept.length;
    const relevance = relevanceOf(selection.gold);
    if (positionsIn(selection.kept, relevance).length === relevance.size) complete += 1;
  }
  if (queries === 0) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'adaptiveCompleteness: there are no selections; a mean needs one or more',
    );
  }
  return { completeness: complete / queries, meanK: kept / queries };
}

/**
 * The 1-based positions of the gold tools in a ranking, ascending: every metric but NDCG follows from them.
 *
 * @throws FinchError as {@link ndcgAtK}
 */
export function goldPositions(ranking: readonly string[], gold: Gold): number[] {
  return positionsIn(ranking, relevanceOf(gold));
}

/** How many tools have a relevance above 0; 0 for a query that no tool answers. */
export function goldSize(gold: Gold): number {
  let size = 0;
  for (const [, value] of entriesOf(gold)) if (value > 0) size += 1;
  return size;
}

function gain(relevance: number): number {
  return 2 ** relevance - 1;
}

function discount(position: number): number {
  return 1 / Math.log2(position + 1);
}

function countUpTo(positions: readonly number[], k: number): number {
  let count = 0;
  while (count < positions.length && (positions[count] as number) <= k) count += 1;
  return count;
}

function positionsIn(ranking: readonly string[], relevance: ReadonlyMap<string, number>): number[] {
  checkUnique(ranking);
  const positions: number[] = [];
  for (const [i, id] of ranking.entries()) if (relevance.has(id)) positions.push(i + 1);
  return positions;
}

function* entriesOf(gold: Gold): Generator<[string, number]> {
  aGold(gold, 'gold');
  if ('get' in gold) yield* gold;
  else for (const id of gold) yield [id, 1];
}

/** The relevances above 0, checked. */
function relevanceOf(gold: Gold): Map<string, number> {
  const relevance = new Map<string, number>();
  for (const [id, value] of entriesOf(gold)) {
    aString(id, 'an id of gold');
    if (typeof value !== 'number' || !(value >= 0 && value <= maxRelevance)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `the relevance of '${id}' is ${kindOf(value)}; expected a number from 0 to ${maxRelevance}`,
      );
    }
    if (value > 0) relevance.set(id, value);
  }
  if (relevance.size === 0) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'the gold set is empty; leave queries that no tool answers out of ranking metrics and count abstention for them',
    );
  }
  return relevance;
}

function checkUnique(ranking: readonly string[]): void {
  aList(aString)(ranking, 'the ranking');
  if (new Set(ranking).size === ranking.length) return;
  const seen = new Set<string>();
  for (const [i, id] of ranking.entries()) {
    if (seen.has(id)) {
      throw new FinchError(
        'FINCH_DUPLICATE_ID',
        `'${id}' stands at positions ${ranking.indexOf(id) + 1} and ${i + 1} of one ranking; each tool may occur once`,
      );
    }
    seen.add(id);
  }
}

function checkK(k: unknown): void {
  if (!Number.isInteger(k) || (k as number) < 1) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `k is ${kindOf(k)}; expected an integer of 1 or more`,
    );
  }
}
