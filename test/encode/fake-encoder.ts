import { aborted } from '../../lib/abort.js';
import type { EncodeOptions, Encoder } from '../../lib/encode/encoder.js';
import { FinchError } from '../../lib/errors.js';

/** The unit vector that stands for a text: the same for the same text and kind, different for others. */
export function vectorOf(text: string, dimension: number, kind = 'query'): Float32Array {
  let state = 2166136261;
  for (const unit of `${kind}\0${text}`) {
    state = Math.imul(state ^ (unit.codePointAt(0) ?? 0), 16777619) >>> 0;
  }
  const row = new Float32Array(dimension);
  let square = 0;
  for (let i = 0; i < dimension; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    row[i] = state / 2 ** 31 - 1;
    square += (row[i] as number) ** 2;
  }
  return row.map((value) => value / Math.sqrt(square));
}

/** An encoder whose calls wait until the test lets them go, and can be made to fail. */
export class FakeEncoder implements Encoder {
  readonly model = 'fake@1';
  readonly dimension: number;
  readonly calls: string[][] = [];
  /** Calls wait while set; `release` lets them go. */
  held = false;
  /** Decides whether a call fails, from its texts. */
  fault: ((texts: readonly string[]) => FinchError | undefined) | undefined;
  aborts = 0;
  closed = 0;
  #waiting: Array<() => void> = [];

  constructor(dimension = 8) {
    this.dimension = dimension;
  }

  async encode(texts: readonly string[], options: EncodeOptions = {}): Promise<Float32Array> {
    this.calls.push([...texts]);
    const { signal, kind } = options;
    if (this.held) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push(resolve);
        signal?.addEventListener('abort', () => {
          this.aborts++;
          reject(aborted(signal));
        });
      });
    } else await Promise.resolve();
    const fault = this.fault?.(texts);
    if (fault !== undefined) throw fault;
    const out = new Float32Array(texts.length * this.dimension);
    for (const [i, text] of texts.entries()) {
      out.set(vectorOf(text, this.dimension, kind), i * this.dimension);
    }
    return out;
  }

  release(): void {
    for (const go of this.#waiting.splice(0)) go();
  }

  async close(): Promise<void> {
    this.closed++;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export const failure = new FinchError('FINCH_IO', 'it failed, as the test asked');
