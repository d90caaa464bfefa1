import { setMaxListeners } from 'node:events';
import { aborted, onAbort, throwIfAborted } from '../abort.js';
import { aSignal, aString, fields, optional, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { HttpEndpoint, longestBackoff, numbersOf } from '../http-endpoint.js';
import { aCosineFloor, checkEncodeArguments, type EncodeOptions, type Encoder } from './encoder.js';
import { parseEmbeddings } from './http-response.js';
import { Lifetime } from './lifetime.js';

export interface HttpEncoderOptions {
  /**
   * The endpoint: `https://host` (then `/v1/embeddings` is asked), `https://host/v1`, or the whole path ending in
   * `/embeddings`. A query string is kept, and its values appear in no error.
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
  /** The cosine below which this model's best match is usually none, -1 to 1, if you measured it. */
  relevanceFloor?: number | undefined;
  queryPrefix?: string | undefined;
  toolPrefix?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** An encoder behind an OpenAI-compatible `/v1/embeddings` endpoint. */
export class HttpEncoder implements Encoder {
  readonly model: string;
  readonly relevanceFloor: number | undefined;
  readonly #options: HttpEncoderOptions;
  readonly #endpoint: HttpEndpoint;
  readonly #limits: Limits;
  readonly #lifetime = new Lifetime('the encoder');
  #dimension: number | undefined;

  private constructor(options: HttpEncoderOptions) {
    checkOptions(options);
    this.#options = { ...options };
    this.relevanceFloor = options.relevanceFloor;
    this.#limits = limitsOf(options);
    const { model, apiKey, headers, baseUrl } = options;
    this.#endpoint = new HttpEndpoint({
      what: 'embeddings',
      baseUrl,
      path: 'embeddings',
      apiKey,
      headers,
      limits: this.#limits,
    });
    if (typeof model !== 'string' || model === '') {
      throw new FinchError('FINCH_INVALID_ARGUMENT', 'model is missing; expected a model name');
    }
    this.model = `${model}@${options.revision ?? this.#endpoint.host}`;
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
      const forget = signal && onAbort(signal, () => stop.abort());
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
    const { model, dimensions, encodingFormat } = this.#options;
    const body = {
      model,
      input: texts,
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(encodingFormat === undefined ? {} : { encoding_format: encodingFormat }),
    };
    const parse = (text: string) => {
      const { secrets } = this.#endpoint;
      const { rows, dimension } = parseEmbeddings(text, texts.length, this.#dimension, secrets);
      this.#dimension ??= dimension;
      return rows;
    };
    return this.#endpoint.post(body, parse, stop, deadline);
  }
}

const anOptions = fields({
  revision: optional(aString),
  encodingFormat: optional(
    rule((value) => value === 'float' || value === 'base64', "'float' or 'base64'"),
  ),
  relevanceFloor: optional(aCosineFloor),
  queryPrefix: optional(aString),
  toolPrefix: optional(aString),
  signal: optional(aSignal),
});

function checkOptions(options: HttpEncoderOptions): void {
  anOptions(options, 'options');
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

type Limits = Record<keyof typeof limits, number>;

function limitsOf(options: HttpEncoderOptions): Limits {
  const taken = numbersOf(limits, options);
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
