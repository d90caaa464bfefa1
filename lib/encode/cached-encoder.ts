import { throwIfAborted, withAbort } from '../abort.js';
import { aFunction, fields, optional } from '../check.js';
import { FinchError } from '../errors.js';
import {
  checkEncodeArguments,
  checkEncoder,
  type EncodeOptions,
  type Encoder,
  encodeChecked,
} from './encoder.js';
import { Lifetime } from './lifetime.js';
import { VectorCache, vectorKey } from './vector-cache.js';

export interface CachedEncoderOptions {
  /** Bytes kept at most; default 64 MiB. Not together with `cache`. */
  maxBytes?: number | undefined;
  /** A cache to share with other encoders. */
  cache?: VectorCache | undefined;
}

export interface CacheStatistics {
  /** Texts answered from the cache. */
  hits: number;
  /** Texts that were encoded. */
  misses: number;
  /** Texts that waited for an encoding already under way, in this call or another. */
  joined: number;
  evictions: number;
  entries: number;
  bytes: number;
}

const anOptions = fields({ cache: optional(fields({ read: aFunction, write: aFunction })) });

/** One call of the inner encoder, and those who wait for it. */
interface Batch {
  readonly rows: ReadonlyMap<string, number>;
  readonly result: Promise<Float32Array>;
  readonly controller: AbortController;
  waiters: number;
}

/**
 * An encoder in front of another that remembers. Equal texts are encoded once, also when asked for at the same time; a
 * caller that aborts leaves the others' encoding alone; failures are not remembered; results are copies.
 */
export class CachedEncoder implements Encoder {
  readonly model: string;
  readonly dimension: number;
  readonly relevanceFloor: number | undefined;
  readonly #inner: Encoder;
  readonly #cache: VectorCache;
  readonly #lifetime = new Lifetime('the encoder');
  readonly #pending = new Map<string, Batch>();
  #hits = 0;
  #misses = 0;
  #joined = 0;

  /** Takes `encoder` over: closing this one closes it. */
  constructor(encoder: Encoder, options: CachedEncoderOptions = {}) {
    checkEncoder(encoder, 'encoder');
    anOptions(options, 'options');
    if (options.cache !== undefined && options.maxBytes !== undefined) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        'both cache and maxBytes were given; a shared cache has its own maxBytes',
      );
    }
    this.#inner = encoder;
    this.model = encoder.model;
    this.dimension = encoder.dimension;
    this.relevanceFloor = encoder.relevanceFloor;
    this.#cache = options.cache ?? new VectorCache(options.maxBytes);
  }

  get statistics(): CacheStatistics {
    return {
      hits: this.#hits,
      misses: this.#misses,
      joined: this.#joined,
      evictions: this.#cache.evictions,
      entries: this.#cache.size,
      bytes: this.#cache.bytes,
    };
  }

  /** As {@link Encoder.encode}; throws what the inner encoder throws. */
  async encode(texts: readonly string[], options: EncodeOptions = {}): Promise<Float32Array> {
    checkEncodeArguments(texts, options);
    return this.#lifetime.run(() => this.#encode([...texts], options));
  }

  close(): Promise<void> {
    return this.#lifetime.close(() => this.#inner.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #encode(texts: readonly string[], options: EncodeOptions): Promise<Float32Array> {
    const { signal, kind = 'query' } = options;
    throwIfAborted(signal);
    const { model, dimension } = this;
    const out = new Float32Array(texts.length * dimension);
    /** Key to the rows of `out` that want it. */
    let wanted = new Map<string, number[]>();
    for (let i = 0; i < texts.length; i++) {
      const key = vectorKey({ model, dimension, kind, text: texts[i] as string });
      const rows = wanted.get(key);
      if (rows !== undefined) {
        rows.push(i);
        this.#joined++;
      } else if (this.#cache.read(key, out, i * dimension)) {
        this.#hits++;
      } else {
        wanted.set(key, [i]);
      }
    }

    // A shared encoding can fail for a reason that is not ours (another text of its batch): what it leaves open is
    // encoded once more, as our own. Each round ends with our own batch's success or its failure, which is the call's.
    for (let round = 0; wanted.size > 0; round++) {
      const shared = new Map<Batch, string[]>();
      const own: string[] = [];
      for (const key of wanted.keys()) {
        const batch = round === 0 ? this.#pending.get(key) : undefined;
        if (batch === undefined) own.push(key);
        else shared.set(batch, [...(shared.get(batch) ?? []), key]);
      }
      for (const keys of shared.values()) this.#joined += keys.length;
      const groups = [...shared];
      if (own.length > 0) {
        this.#misses += own.length;
        const ownTexts = own.map((key) => texts[wanted.get(key)?.[0] ?? 0] as string);
        groups.push([this.#start(own, ownTexts, kind), own]);
      }
      const left = new Map<string, number[]>();
      // Every group is waited for, so that no waiter is left uncounted and no rejection unheard.
      const settled = await Promise.allSettled(
        groups.map(async ([batch, keys]) => {
          const rows = await this.#wait(batch, signal);
          for (const key of keys) {
            const from = (batch.rows.get(key) ?? 0) * dimension;
            for (const i of wanted.get(key) ?? []) {
              out.set(rows.subarray(from, from + dimension), i * dimension);
            }
          }
        }),
      );
      throwIfAborted(signal);
      for (const [i, result] of settled.entries()) {
        if (result.status === 'fulfilled') continue;
        const [batch, keys] = groups[i] as [Batch, string[]];
        if (!shared.has(batch)) throw result.reason;
        for (const key of keys) left.set(key, wanted.get(key) ?? []);
      }
      wanted = left;
    }
    return out;
  }

  #start(keys: readonly string[], texts: readonly string[], kind: 'query' | 'tool'): Batch {
    const controller = new AbortController();
    const encoding = encodeChecked(this.#inner, texts, { signal: controller.signal, kind });
    const result = encoding.then((rows) => {
      for (const [i, key] of keys.entries()) {
        this.#cache.write(key, rows.subarray(i * this.dimension, (i + 1) * this.dimension));
      }
      return rows;
    });
    const batch: Batch = {
      rows: new Map(keys.map((key, i) => [key, i])),
      result,
      controller,
      waiters: 0,
    };
    for (const key of keys) this.#pending.set(key, batch);
    const forget = () => this.#forget(batch);
    result.then(forget, forget);
    return batch;
  }

  async #wait(batch: Batch, signal: AbortSignal | undefined): Promise<Float32Array> {
    batch.waiters++;
    return withAbort(batch.result, signal, () => {
      batch.waiters--;
      if (batch.waiters > 0) return;
      // Nobody wants it any more: later requests must not join what is being stopped.
      this.#forget(batch);
      batch.controller.abort(signal?.reason);
    });
  }

  #forget(batch: Batch): void {
    for (const key of batch.rows.keys()) {
      if (this.#pending.get(key) === batch) this.#pending.delete(key);
    }
  }
}
