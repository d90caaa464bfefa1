import { createHash } from 'node:crypto';
import { FinchError } from '../errors.js';
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
// The Map entry, the objects' heads and the string's, measured on V8 and rounded up.
const entryOverhead = 200;

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
  // A Map keeps insertion order, so its first key is the least recently used.
  readonly #entries = new Map<string, Float32Array>();

  /** @param maxBytes vectors, keys and overhead together; default 64 MiB. 0 keeps nothing. */
  constructor(maxBytes = 64 * 1024 * 1024) {
    if (!(Number.isFinite(maxBytes) && maxBytes >= 0)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `maxBytes is ${String(maxBytes)}; expected a number of bytes, 0 or more`,
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
    const vector = this.#entries.get(key);
    if (vector === undefined) return false;
    this.#entries.delete(key);
    this.#entries.set(key, vector);
    out.set(vector, offset);
    return true;
  }

  /** Keeps a copy of `vector`. */
  write(key: string, vector: Float32Array): void {
    this.delete(key);
    const cost = costOf(key, vector.length);
    if (cost > this.maxBytes) return;
    this.#entries.set(key, vector.slice());
    this.#bytes += cost;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.maxBytes) break;
      this.delete(oldest);
      this.#evictions++;
    }
  }

  delete(key: string): void {
    const vector = this.#entries.get(key);
    if (vector === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= costOf(key, vector.length);
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }
}

function costOf(key: string, length: number): number {
  return key.length * 2 + length * 4 + entryOverhead;
}
