import { createHash } from 'node:crypto';
import type { EncodeOptions, Encoder } from '../dist/esm/lib/index.js';

/**
 * A real, tiny encoder for tests: the normalised sum of a pseudo-random vector per word, so that texts sharing words are
 * close. Counts what it encodes.
 */
export class WordEncoder implements Encoder {
  readonly model: string;
  readonly dimension: number;
  readonly encoded: string[] = [];
  delayMs = 0;
  relevanceFloor?: number;

  constructor(dimension = 64, model = 'words@1') {
    this.dimension = dimension;
    this.model = model;
  }

  async encode(texts: readonly string[], options: EncodeOptions = {}): Promise<Float32Array> {
    options.signal?.throwIfAborted();
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    this.encoded.push(...texts);
    const out = new Float32Array(texts.length * this.dimension);
    texts.forEach((text, row) => {
      out.set(this.#vector(text), row * this.dimension);
    });
    return out;
  }

  #vector(text: string): Float32Array {
    const sum = new Float64Array(this.dimension);
    const words = text
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter(Boolean);
    for (const word of words.length > 0 ? words : ['∅']) {
      for (let i = 0; i < this.dimension; i += 8) {
        const bytes = createHash('sha256').update(`${word}:${i}`).digest();
        for (let j = 0; j < 8 && i + j < this.dimension; j += 1) {
          sum[i + j] = (sum[i + j] as number) + bytes.readInt32LE(4 * j) / 2 ** 31;
        }
      }
    }
    const norm = Math.hypot(...sum);
    return Float32Array.from(sum, (value) => value / norm);
  }

  async close(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
