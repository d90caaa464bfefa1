import { setMaxListeners } from 'node:events';
import { aborted, onAbort, throwIfAborted } from '../abort.js';
import { aFunction, aString, fields, optional, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
import { Lifetime } from '../encode/lifetime.js';
import { FinchError } from '../errors.js';
import {
  BadReply,
  excerpt,
  type Fetch,
  HttpEndpoint,
  longestBackoff,
  numbersOf,
  parseReply,
} from '../http-endpoint.js';
import {
  aBudget,
  aProbabilityFloor,
  checkRerankArguments,
  type Reranked,
  type Reranker,
  type RerankOptions,
  type RerankScoreKind,
  rankScores,
} from './reranker.js';

export interface HttpRerankerOptions {
  /**
   * The endpoint: `https://host` (then `/v1/rerank` is asked), `https://host/v2`, or the whole path ending in `/rerank`. A
   * query string is kept, and its values appear in no error.
   */
  baseUrl: string;
  model: string;
  /** Sent as `Authorization: Bearer`; appears in no error. */
  apiKey?: string | undefined;
  /** Names the model's version; default the endpoint's host. */
  revision?: string | undefined;
  /**
   * What the endpoint's `relevance_score` is; default `'probability'`, as Cohere and Jina give it. A score outside [0, 1] is
   * then refused.
   */
  scoreKind?: RerankScoreKind | undefined;
  /** Documents per request, 1 to 10,000; default 500. */
  batchSize?: number | undefined;
  /** Requests at a time, over all calls; default 4. */
  maxConcurrency?: number | undefined;
  /** Milliseconds for one try, headers and body; default 15,000. */
  timeoutMs?: number | undefined;
  /** Milliseconds for a whole `rerank`, waiting and retries included: then it fails with FINCH_IO; default 30,000. */
  deadlineMs?: number | undefined;
  /** The default of {@link RerankOptions.budgetMs}: then it returns with what is there. */
  budgetMs?: number | undefined;
  /** Further tries after the first; default 2. */
  retries?: number | undefined;
  /** First wait before a retry, doubled each time up to 8 s, with jitter; default 250. */
  backoffMs?: number | undefined;
  /** Bytes of a reply at most; default 16 MiB. */
  maxResponseBytes?: number | undefined;
  /** Further headers; their values appear in no error. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The probability below which this model's best match is usually none, 0 to 1, if you measured it. */
  relevanceFloor?: number | undefined;
  /** Used instead of the global `fetch`, such as one with a proxy. */
  fetch?: Fetch | undefined;
}

/** A reranker behind an endpoint that takes what Cohere's and Jina's `/rerank` take. */
export class HttpReranker implements Reranker {
  readonly model: string;
  readonly scoreKind: RerankScoreKind;
  readonly keepsBudget = true;
  readonly relevanceFloor: number | undefined;
  readonly #name: string;
  readonly #endpoint: HttpEndpoint;
  readonly #limits: Limits;
  readonly #budgetMs: number | undefined;
  readonly #lifetime = new Lifetime('the reranker');

  /** @throws FinchError FINCH_INVALID_ARGUMENT. Nothing is sent before the first `rerank`. */
  constructor(options: HttpRerankerOptions) {
    anOptions(options, 'options');
    const { model, baseUrl, apiKey, headers } = options;
    if (typeof model !== 'string' || model === '') {
      throw new FinchError('FINCH_INVALID_ARGUMENT', 'model is missing; expected a model name');
    }
    this.#limits = numbersOf(limits, options);
    this.#endpoint = new HttpEndpoint({
      what: 'rerank scores',
      baseUrl,
      path: 'rerank',
      apiKey,
      headers,
      limits: this.#limits,
      fetch: options.fetch,
    });
    this.#name = model;
    this.model = `${model}@${options.revision ?? this.#endpoint.host}`;
    this.scoreKind = options.scoreKind ?? 'probability';
    this.relevanceFloor = options.relevanceFloor;
    this.#budgetMs = options.budgetMs;
  }

  /**
   * Scores the documents, a request per batch, all at once. A batch fails, and so does the call; a batch whose answer is not
   * there when `budgetMs` is over leaves its documents without a score.
   *
   * @throws FinchError FINCH_IO (network, status, time; with the status and the start of the body), FINCH_CORRUPT (no
   *   rerank reply, an index twice or missing, cut short, too long), FINCH_NOT_FINITE, FINCH_ABORTED, FINCH_CLOSED,
   *   FINCH_INVALID_ARGUMENT.
   */
  async rerank(
    query: string,
    documents: readonly string[],
    options: RerankOptions = {},
  ): Promise<Reranked> {
    checkRerankArguments(query, documents, options);
    return this.#lifetime.run(async () => {
      const { signal, budgetMs = this.#budgetMs ?? Number.POSITIVE_INFINITY } = options;
      throwIfAborted(signal);
      const scores = new Float64Array(documents.length).fill(Number.NaN);
      if (documents.length === 0 || budgetMs === 0) return rankScores(scores, this.scoreKind);

      const { batchSize, deadlineMs } = this.#limits;
      const deadline = Date.now() + deadlineMs;
      const stop = new AbortController();
      // One listener for each batch that waits: many, and no leak.
      setMaxListeners(0, stop.signal);
      const forget = signal && onAbort(signal, () => stop.abort());
      let isOver = false;
      const timer =
        budgetMs < deadlineMs
          ? setTimeout(() => {
              isOver = true;
              stop.abort();
            }, budgetMs)
          : undefined;
      const batches: Array<Promise<void>> = [];
      for (let first = 0; first < documents.length; first += batchSize) {
        const batch = documents.slice(first, first + batchSize);
        batches.push(
          this.#score(query, batch, stop.signal, deadline).then(
            (part) => scores.set(part, first),
            (error: unknown) => {
              if (isOver && !signal?.aborted) return;
              // The first rejection is what the caller gets; the rest stop for it.
              stop.abort();
              throw error;
            },
          ),
        );
      }
      try {
        await Promise.all(batches);
        return rankScores(scores, this.scoreKind);
      } catch (error) {
        if (signal?.aborted) throw aborted(signal);
        throw error;
      } finally {
        clearTimeout(timer);
        forget?.();
      }
    });
  }

  close(): Promise<void> {
    return this.#lifetime.close(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #score(
    query: string,
    documents: readonly string[],
    stop: AbortSignal,
    deadline: number,
  ): Promise<Float64Array> {
    // `top_n` is asked for in full: where it is left out, some endpoints return only a few.
    const body = { model: this.#name, query, documents, top_n: documents.length };
    return this.#endpoint.post(
      body,
      (text) => parseScores(text, documents.length, this.scoreKind, this.#endpoint.secrets),
      stop,
      deadline,
    );
  }
}

/**
 * The scores of a Cohere or Jina rerank reply, in the order of the request.
 *
 * @throws BadReply with FINCH_CORRUPT (not that shape, wrong count, an index twice or out of range, a score that is no
 *   probability where one is expected), FINCH_NOT_FINITE.
 */
export function parseScores(
  text: string,
  count: number,
  kind: RerankScoreKind,
  secrets: readonly string[],
): Float64Array {
  const reply = parseReply(text, secrets);
  const fault = (message: string, code: 'FINCH_CORRUPT' | 'FINCH_NOT_FINITE' = 'FINCH_CORRUPT') =>
    new BadReply(new FinchError(code, message), false);
  const results = (reply as { results?: unknown } | null)?.results;
  if (!Array.isArray(results)) {
    throw fault(
      `the reply has no results array; expected { results: [{ index, relevance_score }] }, got ${excerpt(text, secrets)}`,
    );
  }
  if (results.length !== count) {
    throw fault(
      `the reply has ${results.length} scores for ${count} documents; lower batchSize if the endpoint has a limit`,
    );
  }
  const scores = new Float64Array(count).fill(Number.NaN);
  for (const [place, item] of results.entries()) {
    const { index, relevance_score: score } = (item ?? {}) as {
      index?: unknown;
      relevance_score?: unknown;
    };
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
      throw fault(`results[${place}].index is ${kindOf(index)}; expected 0 to ${count - 1}`);
    }
    if (!Number.isNaN(scores[index])) throw fault(`the reply has index ${index} twice`);
    if (typeof score !== 'number' || !Number.isFinite(score)) {
      throw fault(
        `results[${place}].relevance_score is ${kindOf(score)}; expected a finite number`,
        'FINCH_NOT_FINITE',
      );
    }
    if (kind === 'probability' && (score < 0 || score > 1)) {
      throw fault(
        `results[${place}].relevance_score is ${score}, no probability; set scoreKind: 'logit' if the endpoint gives raw scores`,
      );
    }
    scores[index] = score;
  }
  return scores;
}

const anOptions = fields({
  revision: optional(aString),
  scoreKind: optional(
    rule((value) => value === 'logit' || value === 'probability', "'logit' or 'probability'"),
  ),
  relevanceFloor: optional(aProbabilityFloor),
  budgetMs: optional(aBudget),
  fetch: optional(aFunction),
});

const limits = {
  batchSize: { fallback: 500, least: 1, most: 10_000 },
  maxConcurrency: { fallback: 4, least: 1, most: 1024 },
  // setTimeout's own limit: longer times would fire at once.
  timeoutMs: { fallback: 15_000, least: 1, most: 2 ** 31 - 1 },
  deadlineMs: { fallback: 30_000, least: 1, most: 2 ** 31 - 1 },
  retries: { fallback: 2, least: 0, most: 100 },
  backoffMs: { fallback: 250, least: 0, most: longestBackoff },
  maxResponseBytes: { fallback: 16 * 1024 * 1024, least: 1, most: Number.MAX_SAFE_INTEGER },
} as const;

type Limits = Record<keyof typeof limits, number>;
