import { FinchError } from '../errors.js';

const maxIdBytes = 4096;
const loneSurrogate = /\p{Surrogate}/u;

function invalid(message: string): FinchError {
  return new FinchError('FINCH_INVALID_ARGUMENT', message);
}

/** A feedback folder's path. */
export function checkFolder(value: unknown): asserts value is string {
  if (typeof value === 'string' && value !== '') return;
  const found = value === '' ? 'empty' : value === null ? 'null' : typeof value;
  throw invalid(`folder is ${found}; expected the path of a folder as a non-empty string`);
}

/** Named arguments. */
export function checkFields(value: unknown, name: string, expected: string): void {
  if (typeof value === 'object' && value !== null) return;
  throw invalid(`${name} is ${value === null ? 'null' : typeof value}; expected ${expected}`);
}

/** `now`, refusing what is no time before anything is done with it. */
export function checkedClock(now: () => number): () => number {
  if (typeof now !== 'function') {
    throw invalid(`options.now is ${now === null ? 'null' : typeof now}; expected a function`);
  }
  return () => {
    const time: unknown = now();
    if (typeof time === 'number' && Number.isFinite(time)) return time;
    throw invalid(
      `options.now() gave ${typeof time === 'number' ? time : typeof time}; expected Unix milliseconds, a finite number`,
    );
  };
}

/** An id as the core takes it: well-formed text of 1 to 4,096 UTF-8 bytes. */
export function checkId(value: unknown, name: string): asserts value is string {
  if (typeof value !== 'string' || value === '') {
    throw invalid(
      `${name} is ${value === '' ? 'empty' : value === null ? 'null' : typeof value}; expected a non-empty string`,
    );
  }
  if (Buffer.byteLength(value) > maxIdBytes) {
    throw invalid(`${name} has ${Buffer.byteLength(value)} bytes; expected at most ${maxIdBytes}`);
  }
  if (loneSurrogate.test(value)) {
    throw invalid(`${name} holds half a surrogate pair; expected well-formed text`);
  }
}

/** Distinct ids. */
export function checkIds(value: unknown, name: string): asserts value is readonly string[] {
  if (!Array.isArray(value)) throw invalid(`${name} is not an array; expected ids`);
  const seen = new Set<string>();
  for (const [i, id] of value.entries()) {
    checkId(id, `${name}[${i}]`);
    if (seen.has(id)) {
      throw new FinchError('FINCH_DUPLICATE_ID', `${name} has ${JSON.stringify(id)} twice`);
    }
    seen.add(id);
  }
}

/** A direction: `dimension` finite numbers, not all 0. */
export function checkContext(value: unknown, dimension: number): asserts value is Float32Array {
  if (!(value instanceof Float32Array)) throw invalid('x is not a Float32Array');
  if (value.length !== dimension) {
    throw new FinchError(
      'FINCH_DIMENSION',
      `x has ${value.length} numbers; expected the bandit's dimension, ${dimension}`,
    );
  }
  let square = 0;
  for (let i = 0; i < value.length; i++) square += (value[i] as number) ** 2;
  if (!Number.isFinite(square)) {
    throw new FinchError('FINCH_NOT_FINITE', 'x holds NaN or infinity; expected finite numbers');
  }
  if (square === 0) {
    throw new FinchError('FINCH_ZERO_VECTOR', 'x is all 0; expected a direction');
  }
}

/** One r in [0, 1] for each of `count` tools. */
export function checkPriors(value: unknown, count: number): asserts value is Float32Array {
  if (!(value instanceof Float32Array)) throw invalid('priors is not a Float32Array');
  if (value.length !== count) {
    throw new FinchError(
      'FINCH_DIMENSION',
      `priors has ${value.length} numbers; expected one for each of the ${count} tools`,
    );
  }
  for (const [i, prior] of value.entries()) {
    if (!(prior >= 0 && prior <= 1)) throw invalid(`priors[${i}] is ${prior}; expected 0 to 1`);
  }
}

export function checkTime(value: unknown, name: string): asserts value is number {
  if (typeof value !== 'number') throw invalid(`${name} is ${typeof value}; expected a number`);
  if (!Number.isFinite(value)) {
    throw new FinchError('FINCH_NOT_FINITE', `${name} is ${value}; expected a finite number`);
  }
}
