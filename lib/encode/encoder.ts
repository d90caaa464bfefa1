import { aSignal, fields, optional, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';

/** What a text is: some models mark queries and documents with different prefixes. */
export type EncodeKind = 'query' | 'tool';

export interface EncodeOptions {
  /** Stops the call: it rejects with FINCH_ABORTED, whose `cause` is `signal.reason`. */
  signal?: AbortSignal | undefined;
  /** Default `'query'`. */
  kind?: EncodeKind | undefined;
}

/**
 * Text to unit vectors. Every encoder of the library has this face, and the rest of the library asks for nothing more:
 * an encoder of your own needs only these members.
 */
export interface Encoder {
  /** `name@revision`. Vectors of equal `model` and `dimension` may be compared, cached and kept in one index. */
  readonly model: string;
  /** Length of every vector. */
  readonly dimension: number;
  /** The cosine below which this model's best match is usually none, -1 to 1; left out where nobody has measured it. */
  readonly relevanceFloor?: number | undefined;
  /**
   * Encodes `texts`, in order.
   *
   * @returns float32, `texts.length` x `dimension`, row-major, every row of length 1; the caller's own to change.
   * @throws FinchError FINCH_ABORTED, FINCH_CLOSED, FINCH_INVALID_ARGUMENT, and what the encoder documents.
   */
  encode(texts: readonly string[], options?: EncodeOptions): Promise<Float32Array>;
  /** Ends the encoder: calls in flight settle first, later ones are FINCH_CLOSED. Twice is fine. */
  close(): Promise<void>;
}

/**
 * What `encoder` gives for the texts, checked: a wrong encoder is named as such, before its vectors reach anything else.
 *
 * @throws FinchError FINCH_DIMENSION when it returns another number of floats than texts × dimension; what it throws
 */
export async function encodeChecked(
  encoder: Encoder,
  texts: readonly string[],
  options: EncodeOptions,
): Promise<Float32Array> {
  const vectors: unknown = await encoder.encode(texts, options);
  const wanted = texts.length * encoder.dimension;
  if (vectors instanceof Float32Array && vectors.length === wanted) return vectors;
  const got = vectors instanceof Float32Array ? `${vectors.length} floats` : `a ${typeof vectors}`;
  throw new FinchError(
    'FINCH_DIMENSION',
    `the encoder ${encoder.model} returned ${got} for ${texts.length} texts; expected a Float32Array of ${wanted} (${encoder.dimension} a text)`,
  );
}

/** NaN would be above every cosine: nothing would ever be chosen. */
export const aCosineFloor = rule(
  (value) => typeof value === 'number' && value >= -1 && value <= 1,
  'a cosine from -1 to 1, or left out',
);

/** Refuses what is no encoder, saying what is missing. */
export function checkEncoder(
  encoder: unknown,
  name = 'options.encoder',
): asserts encoder is Encoder {
  const { encode, dimension, model, relevanceFloor } = (encoder ?? {}) as Partial<Encoder>;
  if (typeof encode === 'function' && Number.isInteger(dimension) && typeof model === 'string') {
    optional(aCosineFloor)(relevanceFloor, `${name}.relevanceFloor`);
    return;
  }
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${name} is no encoder; expected { model: string, dimension: integer, encode(texts), close() }, such as await defaultEncoder()`,
  );
}

const anOptions = fields({ signal: optional(aSignal) });

/** Refuses anything but an array of strings and known options, naming the first offender. */
export function checkEncodeArguments(texts: readonly string[], options: EncodeOptions): void {
  if (!Array.isArray(texts)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `texts is ${texts === null ? 'null' : typeof texts}; expected an array of strings`,
    );
  }
  for (let i = 0; i < texts.length; i++) {
    if (typeof texts[i] !== 'string') {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `texts[${i}] is ${texts[i] === null ? 'null' : typeof texts[i]}; expected a string`,
      );
    }
  }
  anOptions(options, 'options');
  const kind: unknown = options.kind;
  if (kind !== undefined && kind !== 'query' && kind !== 'tool') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `kind is ${kindOf(kind)}; expected 'query' or 'tool'`,
    );
  }
}
