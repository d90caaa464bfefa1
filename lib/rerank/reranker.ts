import { withAbort } from '../abort.js';
import { aFunction, aList, aNumber, aSignal, aString, fields, optional, rule } from '../check.js';
import { FinchError } from '../errors.js';

/** What a score is. A logit is any real number and no probability: a threshold for the one is wrong for the other. */
export type RerankScoreKind = 'logit' | 'probability';

export interface RerankOptions {
  /** Stops the call: it rejects with FINCH_ABORTED, whose `cause` is `signal.reason`. */
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds from the call, 0 or more; no limit when left out. Documents whose scoring has not begun by then come
   * back without a score; the call does not fail for it.
   */
  budgetMs?: number | undefined;
}

export interface RerankedDocument {
  /** The place of the document in the call's array. */
  readonly index: number;
  /** What the model gave, of the reranker's {@link Reranker.scoreKind}; absent when the budget was over before. */
  readonly score?: number;
  /** In [0, 1]: the sigmoid of a logit, or the score itself. Present when `score` is. */
  readonly probability?: number;
}

export interface Reranked {
  /**
   * Every document once: those with a score best first, equal scores in the order given; behind them those without one,
   * in the order given.
   */
  readonly documents: readonly RerankedDocument[];
  /** How many have a score. */
  readonly scored: number;
}

/**
 * Scores documents for a query, reading both together. Every reranker of the library has this face, and the rest of the
 * library asks for nothing more: a reranker of your own needs only these members.
 */
export interface Reranker {
  /** `name@revision`. */
  readonly model: string;
  readonly scoreKind: RerankScoreKind;
  /** The probability below which this model's best match is usually none; left out where nobody has measured it. */
  readonly relevanceFloor?: number | undefined;
  /**
   * Ranks `documents`, each of which is scored by itself: its score depends on no other.
   *
   * @throws FinchError FINCH_ABORTED, FINCH_CLOSED, FINCH_INVALID_ARGUMENT, and what the reranker documents.
   */
  rerank(query: string, documents: readonly string[], options?: RerankOptions): Promise<Reranked>;
  /** Ends the reranker: calls in flight settle first, later ones are FINCH_CLOSED. Twice is fine. */
  close(): Promise<void>;
}

/** 1 / (1 + e^-x), exact at both ends. */
export function sigmoid(x: number): number {
  aNumber(x, 'x');
  if (x >= 0) return 1 / (1 + Math.exp(-x));
  const e = Math.exp(x);
  return e / (1 + e);
}

/** Ranks by score; NaN stands for no score. */
export function rankScores(scores: ArrayLike<number>, kind: RerankScoreKind): Reranked {
  const places = Array.from(scores, (_, index) => index);
  const at = (index: number) => scores[index] as number;
  const scored = places.filter((index) => !Number.isNaN(at(index)));
  // Array.prototype.sort is stable: ties stay in the order given.
  scored.sort((a, b) => at(b) - at(a));
  const documents = scored.map((index): RerankedDocument => {
    const score = at(index);
    return { index, score, probability: kind === 'logit' ? sigmoid(score) : score };
  });
  const rest = places.filter((index) => Number.isNaN(at(index)));
  return {
    documents: [...documents, ...rest.map((index) => ({ index }))],
    scored: scored.length,
  };
}

const aReranker = fields({
  rerank: aFunction,
  model: aString,
  scoreKind: rule(
    (value) => value === 'logit' || value === 'probability',
    "'logit' or 'probability'",
  ),
});

/** Refuses what is no reranker, saying what is missing. */
export function checkReranker(
  reranker: unknown,
  name = 'options.reranker',
): asserts reranker is Reranker {
  aReranker(reranker, name);
}

/** 0 or more, and a number. */
export const aBudget = rule(
  (value) => typeof value === 'number' && value >= 0,
  'a number of milliseconds, 0 or more',
);

const anOptions = fields({ signal: optional(aSignal), budgetMs: optional(aBudget) });
const strings = aList(aString);

/** Refuses anything but a query, an array of strings and known options, naming the first offender. */
export function checkRerankArguments(
  query: string,
  documents: readonly string[],
  options: RerankOptions,
): void {
  aString(query, 'query');
  strings(documents, 'documents');
  anOptions(options, 'options');
}

/**
 * What `reranker` gives for the documents, checked: a wrong reranker is named as such, before its order reaches anything
 * else.
 *
 * @throws FinchError FINCH_CORRUPT when it does not return each document once, best first, with a usable probability;
 * FINCH_ABORTED; what it throws
 */
export async function rerankChecked(
  reranker: Reranker,
  query: string,
  documents: readonly string[],
  options: RerankOptions,
): Promise<Reranked> {
  const reranked: unknown = await withAbort(
    Promise.resolve(reranker.rerank(query, documents, options)),
    options.signal,
  );
  const list = (reranked as Partial<Reranked> | null | undefined)?.documents;
  const seen = new Set<number>();
  let scored = 0;
  let last = Number.POSITIVE_INFINITY;
  for (const each of Array.isArray(list) ? (list as unknown[]) : []) {
    const { index, score, probability } = (each ?? {}) as Partial<RerankedDocument>;
    if (typeof index !== 'number' || !(index in documents)) break;
    if (score !== undefined) {
      const isProbability = typeof probability === 'number' && probability >= 0 && probability <= 1;
      if (!isProbability || typeof score !== 'number' || !(score <= last)) break;
      scored++;
    }
    last = score ?? Number.NEGATIVE_INFINITY;
    seen.add(index);
  }
  if (Array.isArray(list) && list.length === documents.length && seen.size === list.length) {
    return { documents: list as RerankedDocument[], scored };
  }
  throw new FinchError(
    'FINCH_CORRUPT',
    `the reranker ${reranker.model} did not return its ${documents.length} documents; expected { documents }, each index once: first those with a score and a probability in [0, 1], best score first, then those with neither`,
  );
}
