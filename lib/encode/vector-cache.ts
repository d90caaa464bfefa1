import { createHash } from 'node:crypto';
import { aString, refuse } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { EvictionQueue, type Place } from '../eviction-queue.js';
import type { EncodeKind } from './encoder.js';

/** What makes two encodings the same vector. */
export interface VectorKey {
  model: string;
  dimension: number;
  kind: EncodeKind;
  text: string;
}

// Above this many characters a text is kept as its SHA-256: the key stays small and equality stays certain.
const longText = 128;
// The Map entry, the place in the queue, the objects' heads and the string's, on V8 and rounded up.
const entryOverhead = 320;

/** The cache's own name for a text. */
export function vectorKey({ model, dimension, kind, text }: VectorKey): string {
  const place = `${model}\0${dimension}\0${kind}\0`;
  return text.length <= longText
    ? `${place}=${text}`
    : `${place}#${createHash('sha256').update(text).digest('base64')}`;
}

/** Vectors by key, the least recently used dropped first, bounded by bytes. May be shared by several encoders. */
export class VectorCache {
  readonly maxBytes: number;
  #bytes = 0;
  #evictions = 0;
  readonly #entries = new Map<string, { vector: Float32Array; place: Place<string> }>();
  /** The least recently used first. */
  readonly #order = new EvictionQueue<string>();

  /** @param maxBytes vectors, keys and overhead together; default 64 MiB. 0 keeps nothing. */
  constructor(maxBytes = 64 * 1024 * 1024) {
    if (!(Number.isFinite(maxBytes) && maxBytes >= 0)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `maxBytes is ${kindOf(maxBytes)}; expected a number of bytes, 0 or more`,
      );
    }
    this.maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get evictions(): number {
    return this.#evictions;
  }

  /** Copies the vector into `out` at `offset` and says whether there was one. */
  read(key: string, out: Float32Array, offset: number): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    const fits = out instanceof Float32Array && Number.isInteger(offset) && offset >= 0;
    if (!fits || offset + entry.vector.length > out.length) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `out and offset give no room for ${entry.vector.length} numbers; expected a Float32Array and a place in it`,
      );
    }
    this.#order.touch(entry.place);
    out.set(entry.vector, offset);
    return true;
  }

  /** Keeps a copy of `vector`. */
  write(key: string, vector: Float32Array): void {
    aString(key, 'key');
    if (!(vector instanceof Float32Array)) refuse(vector, 'vector', 'a Float32Array');
    this.delete(key);
    const cost = costOf(key, vector.length);
    if (cost > this.maxBytes) return;
    this.#entries.set(key, { vector: vector.slice(), place: this.#order.push(key) });
    this.#bytes += cost;
    while (this.#bytes > this.maxBytes) {
      const { oldest } = this.#order;
      if (oldest === undefined) break;
      this.delete(oldest);
      this.#evictions++;
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#order.remove(entry.place);
    this.#bytes -= costOf(key, entry.vector.length);
  }

  clear(): void {
    this.#entries.clear();
    this.#order.clear();
    this.#bytes = 0;
  }
}

function costOf(key: string, length: number): number {
  return key.length * 2 + length * 4 + entryOverhead;
}
