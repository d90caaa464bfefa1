import { onAbort, throwIfAborted, withAbort } from '../abort.js';
import { aFunction, aList, aNumber, aSignal, aString, fields, optional, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
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
  /** The probability below which this model's best match is usually none, 0 to 1; left out where nobody has measured it. */
  readonly relevanceFloor?: number | undefined;
  /**
   * `true`: once `budgetMs` is over, `rerank` comes back by itself with what is scored, however late. Without it, a `Selector` waits
   * for no more than the budget and 10 ms, then fires the call's signal and goes on with the retrieval's order.
   */
  readonly keepsBudget?: boolean | undefined;
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

/** NaN would be above every score: nothing would ever be chosen. */
export const aProbabilityFloor = rule(
  (value) => typeof value === 'number' && value >= 0 && value <= 1,
  'a probability from 0 to 1, or left out',
);

const aReranker = fields({
  rerank: aFunction,
  model: aString,
  scoreKind: rule(
    (value) => value === 'logit' || value === 'probability',
    "'logit' or 'probability'",
  ),
  relevanceFloor: optional(aProbabilityFloor),
  keepsBudget: optional(rule((value) => typeof value === 'boolean', 'true or false')),
});

/** So much more than its budget a reranker may take to come back with what it has. */
const graceMs = 10;
/** setTimeout's own limit, less the grace: longer times would fire at once. */
const longestTimer = 2 ** 31 - 1 - graceMs;

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
 * else. One that does not keep its budget itself is left when the budget is over, see {@link Reranker.keepsBudget}.
 *
 * @throws FinchError FINCH_CORRUPT when it does not return each document once, best first, with a usable probability;
 * FINCH_ABORTED by its signal, or when the budget was over; what it throws
 */
export async function rerankChecked(
  reranker: Reranker,
  query: string,
  documents: readonly string[],
  options: RerankOptions,
): Promise<Reranked> {
  const { signal, budgetMs } = options;
  throwIfAborted(signal);
  const isLimited =
    reranker.keepsBudget !== true && budgetMs !== undefined && budgetMs < longestTimer;
  const reply: unknown = isLimited
    ? await rerankInTime(reranker, query, documents, { signal, budgetMs })
    : await withAbort(Promise.resolve(reranker.rerank(query, documents, options)), signal);
  return checkedReply(reply, documents.length, reranker.model);
}

/** What a reranker gives within its budget. Whatever it gives or throws later is heard by nobody. */
async function rerankInTime(
  reranker: Reranker,
  query: string,
  documents: readonly string[],
  { signal, budgetMs }: { signal: AbortSignal | undefined; budgetMs: number },
): Promise<unknown> {
  // The reranker is told to stop by its signal when it is no longer waited for.
  const stop = new AbortController();
  const forget = signal && onAbort(signal, () => stop.abort(signal.reason));
  let timer: NodeJS.Timeout | undefined;
  try {
    const work = Promise.resolve(
      reranker.rerank(query, documents, { signal: stop.signal, budgetMs }),
    );
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new FinchError(
          'FINCH_ABORTED',
          `the reranker ${reranker.model} had not answered when its budgetMs (${budgetMs}) was over; make it return what it has scored by then, or give it more time`,
        );
        reject(error);
        stop.abort(error);
      }, budgetMs + graceMs);
    });
    return await withAbort(Promise.race([work, over]), signal);
  } finally {
    clearTimeout(timer);
    forget?.();
  }
}

/** A reply in which each of `count` documents is there once, in order, copied: its maker cannot change it afterwards. */
function checkedReply(reply: unknown, count: number, model: string): Reranked {
  const fault = (what: string) =>
    new FinchError(
      'FINCH_CORRUPT',
      `the reranker ${model} replied wrongly: ${what}; expected { documents } with each of ${count} once by its index: first those with a finite score and a probability in [0, 1], best score first, then those with neither`,
    );
  const list = (reply as Partial<Reranked> | null | undefined)?.documents as unknown;
  if (!Array.isArray(list)) throw fault(`documents is ${kindOf(list)}`);
  if (list.length !== count) throw fault(`documents has ${list.length} of them`);
  const seen = new Set<number>();
  const documents: RerankedDocument[] = [];
  let scored = 0;
  let last = Number.POSITIVE_INFINITY;
  for (const [place, each] of list.entries()) {
    const { index, score, probability } = (each ?? {}) as Partial<RerankedDocument>;
    const at = `documents[${place}]`;
    if (!Number.isInteger(index) || Number(index) < 0 || Number(index) >= count) {
      throw fault(`${at}.index is ${kindOf(index)}`);
    }
    if (seen.has(index as number)) throw fault(`${at}.index is ${index} for the second time`);
    seen.add(index as number);
    if (score === undefined) {
      last = Number.NEGATIVE_INFINITY;
      documents.push({ index: index as number });
      continue;
    }
    if (!Number.isFinite(score)) throw fault(`${at}.score is ${kindOf(score)}`);
    if (!(typeof probability === 'number' && probability >= 0 && probability <= 1)) {
      throw fault(`${at}.probability is ${kindOf(probability)}`);
    }
    if (score > last) throw fault(`${at}.score is ${score}, and the one before it is worse`);
    last = score;
    scored++;
    documents.push({ index: index as number, score, probability });
  }
  return { documents, scored };
}
