import { FinchError } from '../errors.js';
import { BadReply, excerpt, parseReply } from '../http-endpoint.js';

function fromBase64(text: string, where: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0) {
    throw new BadReply(
      new FinchError(
        'FINCH_CORRUPT',
        `${where} is base64 of ${bytes.length} bytes; expected little-endian float32`,
      ),
      false,
    );
  }
  const row = new Float32Array(bytes.length / 4);
  for (let i = 0; i < row.length; i++) row[i] = bytes.readFloatLE(4 * i);
  return row;
}

function rowOf(value: unknown, where: string): ArrayLike<unknown> {
  if (typeof value === 'string') return fromBase64(value, where);
  if (Array.isArray(value) && value.length > 0) return value;
  throw new BadReply(
    new FinchError(
      'FINCH_CORRUPT',
      `${where} is ${Array.isArray(value) ? 'empty' : typeof value}; expected numbers or base64`,
    ),
    false,
  );
}

/**
 * The rows of an OpenAI embeddings reply, in the order of the request, each normalised into `count` x dimension.
 *
 * @param expected the dimension every row must have; the first row's when undefined.
 * @throws BadReply with FINCH_CORRUPT (not that shape, wrong count, index twice), FINCH_DIMENSION, FINCH_NOT_FINITE,
 *   FINCH_ZERO_VECTOR.
 */
export function parseEmbeddings(
  text: string,
  count: number,
  expected: number | undefined,
  secrets: readonly string[],
): { rows: Float32Array; dimension: number } {
  const reply = parseReply(text, secrets);
  const fault = (code: 'FINCH_CORRUPT' | 'FINCH_DIMENSION', message: string) =>
    new BadReply(new FinchError(code, message), false);
  const data = (reply as { data?: unknown } | null)?.data;
  if (!Array.isArray(data)) {
    throw fault(
      'FINCH_CORRUPT',
      `the reply has no data array; expected an OpenAI embeddings reply, got ${excerpt(text, secrets)}`,
    );
  }
  if (data.length !== count) {
    throw fault('FINCH_CORRUPT', `the reply has ${data.length} vectors for ${count} texts`);
  }
  let dimension = expected;
  let rows: Float32Array | undefined;
  const seen = new Uint8Array(count);
  for (const [place, item] of data.entries()) {
    const { index = place, embedding } = (item ?? {}) as { index?: unknown; embedding?: unknown };
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= count) {
      throw fault(
        'FINCH_CORRUPT',
        `data[${place}].index is ${String(index)}; expected 0 to ${count - 1}`,
      );
    }
    const i = index as number;
    if (seen[i] === 1) throw fault('FINCH_CORRUPT', `the reply has index ${i} twice`);
    seen[i] = 1;
    const row = rowOf(embedding, `data[${place}].embedding`);
    dimension ??= row.length;
    rows ??= new Float32Array(count * dimension);
    if (row.length !== dimension) {
      throw fault(
        'FINCH_DIMENSION',
        `the vector of text ${i} has ${row.length} numbers; expected ${dimension}. Set dimension to what the model gives`,
      );
    }
    normaliseInto(rows.subarray(i * dimension, (i + 1) * dimension), row, i);
  }
  return { rows: rows ?? new Float32Array(0), dimension: dimension ?? 0 };
}

function normaliseInto(out: Float32Array, row: ArrayLike<unknown>, text: number): void {
  let square = 0;
  for (let j = 0; j < row.length; j++) {
    const value = row[j];
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new BadReply(
        new FinchError(
          'FINCH_NOT_FINITE',
          `the vector of text ${text} has ${JSON.stringify(value)} at ${j}; expected finite numbers`,
        ),
        false,
      );
    }
    square += value * value;
  }
  const norm = Math.sqrt(square);
  if (norm === 0 || !Number.isFinite(norm)) {
    throw new BadReply(
      new FinchError(
        norm === 0 ? 'FINCH_ZERO_VECTOR' : 'FINCH_NOT_FINITE',
        `the vector of text ${text} has length ${norm}; a direction needs a finite length above 0`,
      ),
      false,
    );
  }
  for (let j = 0; j < row.length; j++) out[j] = (row[j] as number) / norm;
}
