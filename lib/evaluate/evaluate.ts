import { aFunction, aList, anObject, aString, fields } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { type BootstrapOptions, bootstrapMeans, type Estimate } from './bootstrap.js';
import { countEach, type RankingCurve, rankingCurve } from './curve.js';
import { aGold, type Gold, goldPositions, goldSize, ndcgAtK } from './metrics.js';
import { type RunOptions, runQueries } from './run-queries.js';

/** What an evaluation needs of a query. */
export interface LabelledQuery {
  readonly id: string;
  /** The right tools; none of relevance > 0 for a query that no tool answers. */
  readonly gold: Gold;
}

const someQueries = aList(fields({ id: aString, gold: aGold }));
const someIds = aList(aString);

export interface RankingOptions extends RunOptions, BootstrapOptions {
  /** The k of NDCG, recall and completeness, an integer >= 1. Default 10. */
  readonly k?: number | undefined;
  /** Where rankings are cut before anything is computed, an integer >= k; the curve ends here. Default 50. */
  readonly depth?: number | undefined;
}

/** One query's figures, each in [0, 1]. */
export interface RankingResult {
  readonly id: string;
  readonly ndcg: number;
  readonly recall: number;
  readonly completeness: 0 | 1;
  /** Within the depth. */
  readonly reciprocalRank: number;
  /** 1-based positions of the gold tools within the depth, ascending. */
  readonly positions: readonly number[];
  /** Size of the gold set. */
  readonly gold: number;
}

/** Means over the answerable queries, with confidence intervals (95 % unless set otherwise). */
export interface RankingEvaluation {
  readonly k: number;
  readonly depth: number;
  /** Number of queries in the means. */
  readonly queries: number;
  /** Number of queries left out because no tool answers them. */
  readonly unanswerable: number;
  readonly ndcg: Estimate;
  readonly recall: Estimate;
  readonly completeness: Estimate;
  /** MRR@depth. */
  readonly reciprocalRank: Estimate;
  readonly curve: RankingCurve;
  readonly perQuery: readonly RankingResult[];
}

/**
 * Ranks every answerable query and averages NDCG@k, Recall@k, Completeness@k and MRR (definitions in metrics.ts).
 *
 * Queries without gold are left out, and the callback is not called for them. Rankings longer than `depth` are cut to
 * it, so that methods which return different lengths stay comparable; have the callback return at least that many.
 *
 * @param rank gives tool ids, best first, none twice
 * @throws FinchError FINCH_INVALID_ARGUMENT (no answerable query, options), FINCH_DUPLICATE_ID (in a ranking; names the
 * query), FINCH_ABORTED; whatever `rank` throws
 */
export async function evaluateRanking<Q extends LabelledQuery>(
  queries: readonly Q[],
  rank: (query: Q) => readonly string[] | Promise<readonly string[]>,
  options: RankingOptions = {},
): Promise<RankingEvaluation> {
  someQueries(queries, 'queries');
  aFunction(rank, 'rank');
  anObject(options, 'options');
  const { k = 10 } = options;
  if (!Number.isInteger(k) || k < 1) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `k is ${kindOf(k)}; expected an integer of 1 or more`,
    );
  }
  const { depth = Math.max(50, k) } = options;
  if (!Number.isInteger(depth) || depth < k) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `depth is ${kindOf(depth)}; expected an integer of at least k = ${k}`,
    );
  }
  const answerable = queries.filter((query) => goldSize(query.gold) > 0);
  if (answerable.length === 0) throw noQueries(queries.length);
  const perQuery = await runQueries(
    answerable,
    async (query): Promise<RankingResult> => {
      const given = await rank(query);
      about(query, () => someIds(given, 'what rank gave'));
      const ranking = given.slice(0, depth);
      return about(query, () => {
        const positions = goldPositions(ranking, query.gold);
        const gold = goldSize(query.gold);
        const found = positions.filter((position) => position <= k).length;
        return {
          id: query.id,
          ndcg: ndcgAtK(ranking, query.gold, k),
          recall: found / gold,
          completeness: found === gold ? 1 : 0,
          reciprocalRank: positions[0] === undefined ? 0 : 1 / positions[0],
          positions,
          gold,
        };
      });
    },
    options,
  );
  const [ndcg, recall, completeness, reciprocalRank] = bootstrapMeans(
    [
      perQuery.map((result) => result.ndcg),
      perQuery.map((result) => result.recall),
      perQuery.map((result) => result.completeness),
      perQuery.map((result) => result.reciprocalRank),
    ],
    options,
  ) as [Estimate, Estimate, Estimate, Estimate];
  return {
    k,
    depth,
    queries: answerable.length,
    unanswerable: queries.length - answerable.length,
    ndcg,
    recall,
    completeness,
    reciprocalRank,
    curve: rankingCurve(perQuery, depth),
    perQuery,
  };
}

/** One query's figures under a method that chooses how many tools to keep. */
export interface CutResult {
  readonly id: string;
  /** Number of tools kept. */
  readonly k: number;
  readonly completeness: 0 | 1;
  /** |gold ∩ kept| / |gold|. */
  readonly recall: number;
  /** |gold ∩ kept| / k; 0 when nothing was kept. */
  readonly precision: number;
}

/** Means over the answerable queries with confidence intervals, and what happened to the others. */
export interface CutEvaluation {
  /** Number of queries in the means. */
  readonly queries: number;
  /** Adaptive completeness; read it with the mean k beside it. */
  readonly completeness: Estimate;
  /** Mean number of tools kept. */
  readonly k: Estimate;
  readonly recall: Estimate;
  readonly precision: Estimate;
  /** Element k is the number of answerable queries for which k tools were kept. */
  readonly distribution: readonly number[];
  /** Share of answerable queries for which nothing was kept, wrongly. */
  readonly abstained: number;
  /** The queries that no tool answers; undefined when there were none. */
  readonly unanswerable:
    | {
        readonly queries: number;
        /** Share for which nothing was kept, rightly. */
        readonly abstained: number;
        readonly meanK: number;
      }
    | undefined;
  readonly perQuery: readonly CutResult[];
}

/**
 * Runs a method that chooses the number of tools itself over all queries, answerable or not.
 *
 * @param select gives the ids of the tools it keeps, none twice; may be empty
 * @throws FinchError as {@link evaluateRanking}
 */
export async function evaluateCut<Q extends LabelledQuery>(
  queries: readonly Q[],
  select: (query: Q) => readonly string[] | Promise<readonly string[]>,
  options: RunOptions & BootstrapOptions = {},
): Promise<CutEvaluation> {
  someQueries(queries, 'queries');
  aFunction(select, 'select');
  anObject(options, 'options');
  if (!queries.some((query) => goldSize(query.gold) > 0)) throw noQueries(queries.length);
  const all = await runQueries(
    queries,
    async (query) => {
      const kept = await select(query);
      about(query, () => someIds(kept, 'what select gave'));
      const gold = goldSize(query.gold);
      if (gold === 0) return { id: query.id, k: kept.length, gold, found: 0 };
      const found = about(query, () => goldPositions(kept, query.gold).length);
      return { id: query.id, k: kept.length, gold, found };
    },
    options,
  );
  const answerable = all.filter((result) => result.gold > 0);
  const others = all.filter((result) => result.gold === 0);
  const perQuery = answerable.map(
    ({ id, k, gold, found }): CutResult => ({
      id,
      k,
      completeness: found === gold ? 1 : 0,
      recall: found / gold,
      precision: k === 0 ? 0 : found / k,
    }),
  );
  const [completeness, k, recall, precision] = bootstrapMeans(
    [
      perQuery.map((result) => result.completeness),
      perQuery.map((result) => result.k),
      perQuery.map((result) => result.recall),
      perQuery.map((result) => result.precision),
    ],
    options,
  ) as [Estimate, Estimate, Estimate, Estimate];
  return {
    queries: perQuery.length,
    completeness,
    k,
    recall,
    precision,
    distribution: countEach(perQuery.map((result) => result.k)),
    abstained: shareOfEmpty(perQuery),
    unanswerable:
      others.length === 0
        ? undefined
        : {
            queries: others.length,
            abstained: shareOfEmpty(others),
            meanK: others.reduce((sum, result) => sum + result.k, 0) / others.length,
          },
    perQuery,
  };
}

function shareOfEmpty(results: readonly { readonly k: number }[]): number {
  return results.filter((result) => result.k === 0).length / results.length;
}

/** Names the query in an error about its ranking or its labels. */
function about<R>(query: LabelledQuery, compute: () => R): R {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof FinchError)) throw error;
    throw new FinchError(error.code, `query '${query.id}': ${error.message}`, { cause: error });
  }
}

function noQueries(given: number): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    given === 0
      ? 'there are no queries; pass at least one with a gold tool'
      : `none of the ${given} queries has a gold tool, so there is nothing to average; check the labels and the split`,
  );
}
