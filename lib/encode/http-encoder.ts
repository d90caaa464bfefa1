import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { aborted, throwIfAborted } from '../abort.js';
import { aNumber, aSignal, aString, fields, optional, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { checkEncodeArguments, type EncodeOptions, type Encoder } from './encoder.js';
import { BadReply, excerpt, parseEmbeddings, readBody, retryAfter } from './http-response.js';
import { Lifetime } from './lifetime.js';

export interface HttpEncoderOptions {
  /**
   * The endpoint: `https://host` (then `/v1/embeddings` is asked), `https://host/v1`, or the whole path ending in
   * `/embeddings`. A query string is kept.
   */
  baseUrl: string;
  model: string;
  /** Sent as `Authorization: Bearer`; appears in no error. */
  apiKey?: string | undefined;
  /** Names the model's version for caches and files; default the endpoint's host. */
  revision?: string | undefined;
  /** Length the vectors must have; learnt from one request when left out. */
  dimension?: number | undefined;
  /** Asks for vectors of this length (OpenAI's `dimensions`) and expects it. */
  dimensions?: number | undefined;
  /** OpenAI's `encoding_format`; either kind of reply is accepted. Not sent when left out. */
  encodingFormat?: 'float' | 'base64' | undefined;
  /** Texts per request, 1 to 2,048; default 64. */
  batchSize?: number | undefined;
  /** Characters per request (a longer text goes alone); default 100,000. */
  batchCharacters?: number | undefined;
  /** Requests at a time, over all calls; default 4. */
  maxConcurrency?: number | undefined;
  /** Milliseconds for one try, headers and body; default 30,000. */
  timeoutMs?: number | undefined;
  /** Milliseconds for a whole `encode`, waiting and retries included; default 120,000. */
  deadlineMs?: number | undefined;
  /** Further tries after the first; default 3. */
  retries?: number | undefined;
  /** First wait before a retry, doubled each time up to 8 s, with jitter; default 250. */
  backoffMs?: number | undefined;
  /** Bytes of a reply at most; default 64 MiB. */
  maxResponseBytes?: number | undefined;
  /** Further headers; their values appear in no error. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The cosine below which this model's best match is usually none, if you measured it. */
  relevanceFloor?: number | undefined;
  queryPrefix?: string | undefined;
  toolPrefix?: string | undefined;
  signal?: AbortSignal | undefined;
}

const longestBackoff = 8000;
const retried = new Set([
  408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529,
]);

/** Why a try failed, whether another may help, and how long the endpoint asks to wait. */
interface Failure {
  error: FinchError;
  retry: boolean;
  after?: number | undefined;
}

/** An encoder behind an OpenAI-compatible `/v1/embeddings` endpoint. */
export class HttpEncoder implements Encoder {
  readonly model: string;
  readonly relevanceFloor: number | undefined;
  readonly #options: HttpEncoderOptions;
  readonly #url: URL;
  readonly #headers: Headers;
  readonly #secrets: readonly string[];
  readonly #limits: Limits;
  readonly #lifetime = new Lifetime('the encoder');
  readonly #waiting: Array<() => void> = [];
  #running = 0;
  #dimension: number | undefined;

  private constructor(options: HttpEncoderOptions) {
    checkOptions(options);
    this.#options = { ...options };
    this.relevanceFloor = options.relevanceFloor;
    this.#limits = limitsOf(options);
    this.#url = endpointOf(options.baseUrl);
    const { model, apiKey, headers = {} } = options;
    if (typeof model !== 'string' || model === '') {
      throw new FinchError('FINCH_INVALID_ARGUMENT', 'model is missing; expected a model name');
    }
    this.model = `${model}@${options.revision ?? this.#url.host}`;
    this.#secrets = [apiKey ?? '', ...Object.values(headers)].filter((value) => value.length > 3);
    try {
      this.#headers = new Headers({ ...headers, 'content-type': 'application/json' });
      if (apiKey !== undefined) this.#headers.set('authorization', `Bearer ${apiKey}`);
    } catch {
      // The cause would repeat the value, which may be a key.
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        'apiKey or headers hold a character that HTTP headers cannot carry (a line break?)',
      );
    }
    this.#headers.set('accept', 'application/json');
    this.#dimension = options.dimensions ?? options.dimension;
  }

  /**
   * Checks the options and, when no dimension is given, asks the endpoint for one vector.
   *
   * @throws FinchError FINCH_INVALID_ARGUMENT, and as {@link HttpEncoder.encode}.
   */
  static async open(options: HttpEncoderOptions): Promise<HttpEncoder> {
    const encoder = new HttpEncoder(options);
    if (encoder.#dimension === undefined) {
      await encoder.encode(['dimension'], { signal: options.signal });
    }
    return encoder;
  }

  get dimension(): number {
    return this.#dimension ?? 0;
  }

  /**
   * Encodes texts in batches. All succeed or the call fails; the other batches are then stopped.
   *
   * @returns float32, `texts.length` x `dimension`, unit rows in the texts' order.
   * @throws FinchError FINCH_IO (network, status, time; with the status and the start of the body), FINCH_DIMENSION,
   *   FINCH_CORRUPT (not an embeddings reply, cut short, too long), FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_ABORTED,
   *   FINCH_CLOSED, FINCH_INVALID_ARGUMENT.
   */
  async encode(texts: readonly string[], options: EncodeOptions = {}): Promise<Float32Array> {
    checkEncodeArguments(texts, options);
    return this.#lifetime.run(async () => {
      const { signal } = options;
      throwIfAborted(signal);
      if (texts.length === 0) return new Float32Array(0);
      const prefix =
        (options.kind === 'tool' ? this.#options.toolPrefix : this.#options.queryPrefix) ?? '';
      const batches = this.#split(prefix === '' ? [...texts] : texts.map((text) => prefix + text));

      const stop = new AbortController();
      // One listener for each batch that waits: many, and no leak.
      setMaxListeners(0, stop.signal);
      const onAbort = () => stop.abort();
      signal?.addEventListener('abort', onAbort, { once: true });
      const { deadlineMs } = this.#limits;
      const deadline = Date.now() + deadlineMs;
      try {
        const parts = await Promise.all(
          batches.map((batch) =>
            this.#encodeBatch(batch, stop.signal, deadline).catch((error: unknown) => {
              // The first rejection is what the caller gets; the rest stop for it.
              stop.abort();
              throw error;
            }),
          ),
        );
        const out = new Float32Array(texts.length * this.dimension);
        let offset = 0;
        for (const part of parts) {
          out.set(part, offset);
          offset += part.length;
        }
        return out;
      } catch (error) {
        if (signal?.aborted) throw aborted(signal);
        throw error;
      } finally {
        signal?.removeEventListener('abort', onAbort);
      }
    });
  }

  close(): Promise<void> {
    return this.#lifetime.close(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #split(texts: readonly string[]): string[][] {
    const { batchSize, batchCharacters } = this.#limits;
    const batches: string[][] = [];
    let batch: string[] = [];
    let characters = 0;
    for (const text of texts) {
      const full = batch.length >= batchSize || characters + text.length > batchCharacters;
      if (batch.length > 0 && full) {
        batches.push(batch);
        batch = [];
        characters = 0;
      }
      batch.push(text);
      characters += text.length;
    }
    batches.push(batch);
    return batches;
  }

  async #encodeBatch(
    texts: readonly string[],
    stop: AbortSignal,
    deadline: number,
  ): Promise<Float32Array> {
    await this.#takeTurn(stop);
    try {
      const { retries, backoffMs, deadlineMs } = this.#limits;
      for (let attempt = 0; ; attempt++) {
        if (stop.aborted) throw new FinchError('FINCH_ABORTED', 'the request was stopped');
        const left = deadline - Date.now();
        if (left <= 0) throw this.#error(`no answer within deadlineMs (${deadlineMs} ms)`);
        const failure = await this.#try(texts, stop, left);
        if (!('error' in failure)) return failure.rows;
        if (stop.aborted || !failure.retry || attempt >= retries) {
          throw attempt === 0 ? failure.error : afterTries(failure.error, attempt + 1);
        }
        // Full jitter: clients that failed together come back apart.
        const backoff = Math.min(longestBackoff, backoffMs * 2 ** attempt);
        const wait = failure.after ?? backoff * (0.5 + 0.5 * Math.random());
        if (Date.now() + wait >= deadline) {
          throw afterTries(
            failure.error,
            attempt + 1,
            `; waiting ${Math.round(wait)} ms more would pass deadlineMs (${deadlineMs} ms)`,
          );
        }
        await sleep(wait, undefined, { signal: stop }).catch(() => undefined);
      }
    } finally {
      this.#endTurn();
    }
  }

  async #takeTurn(stop: AbortSignal): Promise<void> {
    if (this.#running < this.#limits.maxConcurrency) {
      this.#running++;
      return;
    }
    // Whoever ends a turn hands it on, so `running` does not change in between.
    await new Promise<void>((resolve, reject) => {
      const take = () => {
        stop.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(new FinchError('FINCH_ABORTED', 'the request was stopped'));
      };
      this.#waiting.push(take);
      if (stop.aborted) leave();
      else stop.addEventListener('abort', leave, { once: true });
    });
  }

  #endTurn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }

  async #try(
    texts: readonly string[],
    stop: AbortSignal,
    left: number,
  ): Promise<{ rows: Float32Array } | Failure> {
    const { timeoutMs, maxResponseBytes } = this.#limits;
    const time = Math.min(timeoutMs, left);
    const controller = new AbortController();
    const onStop = () => controller.abort();
    stop.addEventListener('abort', onStop, { once: true });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, time);
    let response: Response | undefined;
    try {
      const { model, dimensions, encodingFormat } = this.#options;
      response = await fetch(this.#url, {
        method: 'POST',
        headers: this.#headers,
        // A redirect would carry the headers, keys among them, to a host that nobody named.
        redirect: 'manual',
        signal: controller.signal,
        body: JSON.stringify({
          model,
          input: texts,
          ...(dimensions === undefined ? {} : { dimensions }),
          ...(encodingFormat === undefined ? {} : { encoding_format: encodingFormat }),
        }),
      });
      if (!response.ok) return await this.#refusal(response);
      const { text, whole } = await readBody(response, maxResponseBytes);
      if (!whole) {
        const error = this.#error(
          `the reply is longer than maxResponseBytes (${maxResponseBytes})`,
          'FINCH_CORRUPT',
        );
        return { error, retry: false };
      }
      const { rows, dimension } = parseEmbeddings(
        text,
        texts.length,
        this.#dimension,
        this.#secrets,
      );
      this.#dimension ??= dimension;
      return { rows };
    } catch (cause) {
      if (cause instanceof BadReply) {
        return {
          error: this.#error(cause.error.message, cause.error.code, cause.error.cause),
          retry: cause.retry,
        };
      }
      if (stop.aborted) {
        return { error: new FinchError('FINCH_ABORTED', 'the request was stopped'), retry: false };
      }
      if (timedOut) {
        const part = response === undefined ? 'no answer' : 'the reply was not complete';
        return { error: this.#error(`${part} within ${time} ms`), retry: true };
      }
      if (response !== undefined) {
        const error = this.#error(
          `the reply broke off (${reasonOf(cause)})`,
          'FINCH_CORRUPT',
          cause,
        );
        return { error, retry: true };
      }
      return {
        error: this.#error(`no connection (${reasonOf(cause)})`, 'FINCH_IO', cause),
        retry: true,
      };
    } finally {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    }
  }

  async #refusal(response: Response): Promise<Failure> {
    const { status } = response;
    const location = response.headers.get('location');
    if (status >= 300 && status < 400 && location !== null) {
      await response.body?.cancel();
      const error = this.#error(
        `status ${status}, a redirect to ${excerpt(location, this.#secrets)}; set baseUrl to the final address`,
      );
      return { error, retry: false };
    }
    const { text } = await readBody(response, 4096);
    const advice =
      status === 401 || status === 403
        ? '. Check apiKey'
        : status === 404
          ? '. Check baseUrl and model'
          : '';
    const body = excerpt(text, this.#secrets);
    return {
      error: this.#error(`status ${status}${body === '' ? '' : `: ${body}`}${advice}`),
      retry: retried.has(status),
      after: retryAfter(response.headers.get('retry-after'), Date.now()),
    };
  }

  #error(message: string, code: FinchError['code'] = 'FINCH_IO', cause?: unknown): FinchError {
    // The query string may hold a key: only the path is shown.
    const place = `${this.#url.origin}${this.#url.pathname}`;
    return new FinchError(code, `embeddings from ${place}: ${message}`, { cause });
  }
}

function afterTries(error: FinchError, tries: number, more = ''): FinchError {
  const note = `${more} (${tries} ${tries === 1 ? 'try' : 'tries'})`;
  return new FinchError(error.code, `${error.message}${note}`, { cause: error.cause });
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } };
  const inner = cause?.code ?? cause?.message;
  return typeof inner === 'string' ? inner : error instanceof Error ? error.message : String(error);
}

const anOptions = fields({
  revision: optional(aString),
  encodingFormat: optional(
    rule((value) => value === 'float' || value === 'base64', "'float' or 'base64'"),
  ),
  relevanceFloor: optional(aNumber),
  queryPrefix: optional(aString),
  toolPrefix: optional(aString),
  signal: optional(aSignal),
});

function checkOptions(options: HttpEncoderOptions): void {
  anOptions(options, 'options');
  const { apiKey, headers } = options as { apiKey?: unknown; headers?: unknown };
  const isTable = typeof headers === 'object' && headers !== null;
  const areStrings = isTable && Object.values(headers).every((value) => typeof value === 'string');
  if (
    (apiKey !== undefined && typeof apiKey !== 'string') ||
    (headers !== undefined && !areStrings)
  ) {
    // What they hold may be a secret: it is not repeated.
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'apiKey or headers are of another type; expected a string, and an object of strings',
    );
  }
}

function endpointOf(baseUrl: string): URL {
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'baseUrl is not a URL; expected one such as https://host/v1',
    );
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `baseUrl begins with ${url.protocol}; expected http: or https:`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'baseUrl holds a user name or password; give them by apiKey or headers',
    );
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (path === '') url.pathname = '/v1/embeddings';
  else url.pathname = path.endsWith('/embeddings') ? path : `${path}/embeddings`;
  url.hash = '';
  return url;
}

const limits = {
  batchSize: { fallback: 64, least: 1, most: 2048 },
  batchCharacters: { fallback: 100_000, least: 1, most: Number.MAX_SAFE_INTEGER },
  maxConcurrency: { fallback: 4, least: 1, most: 1024 },
  // setTimeout's own limit: longer times would fire at once.
  timeoutMs: { fallback: 30_000, least: 1, most: 2 ** 31 - 1 },
  deadlineMs: { fallback: 120_000, least: 1, most: 2 ** 31 - 1 },
  retries: { fallback: 3, least: 0, most: 100 },
  backoffMs: { fallback: 250, least: 0, most: longestBackoff },
  maxResponseBytes: { fallback: 64 * 1024 * 1024, least: 1, most: Number.MAX_SAFE_INTEGER },
} as const;

type Limits = { -readonly [Name in keyof typeof limits]: number };

function limitsOf(options: HttpEncoderOptions): Limits {
  const taken = {} as Limits;
  for (const name of Object.keys(limits) as Array<keyof Limits>) {
    const { fallback, least, most } = limits[name];
    const value = options[name] ?? fallback;
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name} is ${kindOf(value)}; expected a whole number from ${least} to ${most}`,
      );
    }
    taken[name] = value;
  }
  const { dimension, dimensions } = options;
  for (const [name, value] of [
    ['dimension', dimension] as const,
    ['dimensions', dimensions] as const,
  ]) {
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= 65536)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name} is ${kindOf(value)}; expected a whole number from 1 to 65536`,
      );
    }
  }
  if (dimension !== undefined && dimensions !== undefined && dimension !== dimensions) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `dimension is ${dimension} and dimensions ${dimensions}; give one, or both equal`,
    );
  }
  return taken;
}
