import { FinchError } from '../errors.js';

/** The raw text of one JSON value inside a larger text: `source.slice(start, end) === text`. */
export interface JsonSlice {
  readonly text: string;
  /** Offset of the first UTF-16 unit in the source. */
  readonly start: number;
  /** Offset after the last UTF-16 unit in the source. */
  readonly end: number;
}

/** One member of a JSON object: its decoded key and the raw text of its value. */
export interface JsonMember extends JsonSlice {
  readonly key: string;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/**
 * The raw texts of the elements of the array at `path`, exactly as they stand in `source` (no surrounding white space).
 *
 * `source` must be one valid JSON text, that is, one that `JSON.parse` has accepted; a wrong one is refused or gives
 * slices that do not parse, and never runs past its end. A key that occurs twice means its last value, as in JSON.parse.
 *
 * @param path object keys and array indices from the root
 * @throws FinchError FINCH_INVALID_ARGUMENT when there is no array at the path
 */
export function arraySlices(source: string, path: readonly (string | number)[]): JsonSlice[] {
  const at = valueSlice(source, path);
  if (at === undefined || source.charCodeAt(at.start) !== openArray) {
    throw new FinchError('FINCH_INVALID_ARGUMENT', `no JSON array at ${pathText(path)}`);
  }
  return elementsAt(source, at.start);
}

/**
 * The raw texts of the values of the object at `path`, in source order. Keys that occur twice are all listed.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT when there is no object at the path
 */
export function objectSlices(source: string, path: readonly (string | number)[]): JsonMember[] {
  const at = valueSlice(source, path);
  if (at === undefined || source.charCodeAt(at.start) !== openObject) {
    throw new FinchError('FINCH_INVALID_ARGUMENT', `no JSON object at ${pathText(path)}`);
  }
  return membersAt(source, at.start);
}

/** The raw text of the value at `path`, or undefined when there is none. */
export function valueSlice(
  source: string,
  path: readonly (string | number)[],
): JsonSlice | undefined {
  let start = skipSpace(source, 0);
  for (const step of path) {
    const opening = source.charCodeAt(start);
    let next: JsonSlice | undefined;
    if (typeof step === 'number' && opening === openArray) {
      next = elementsAt(source, start)[step];
    } else if (typeof step === 'string' && opening === openObject) {
      next = membersAt(source, start).findLast((member) => member.key === step);
    }
    if (next === undefined) return undefined;
    start = next.start;
  }
  const end = skipValue(source, start);
  return { text: source.slice(start, end), start, end };
}

function elementsAt(source: string, open: number): JsonSlice[] {
  const slices: JsonSlice[] = [];
  let position = skipSpace(source, open + 1);
  if (source.charCodeAt(position) === closeArray) return slices;
  for (;;) {
    const end = skipValue(source, position);
    slices.push({ text: source.slice(position, end), start: position, end });
    position = skipSpace(source, end);
    const separator = source.charCodeAt(position);
    if (separator === closeArray) return slices;
    if (separator !== comma) throw invalid(position);
    position = skipSpace(source, position + 1);
  }
}

function membersAt(source: string, open: number): JsonMember[] {
  const members: JsonMember[] = [];
  let position = skipSpace(source, open + 1);
  if (source.charCodeAt(position) === closeObject) return members;
  for (;;) {
    if (source.charCodeAt(position) !== quote) throw invalid(position);
    const keyEnd = skipString(source, position);
    const key = decodeKey(source.slice(position, keyEnd), position);
    position = skipSpace(source, keyEnd);
    if (source.charCodeAt(position) !== colon) throw invalid(position);
    position = skipSpace(source, position + 1);
    const end = skipValue(source, position);
    members.push({ key, text: source.slice(position, end), start: position, end });
    position = skipSpace(source, end);
    const separator = source.charCodeAt(position);
    if (separator === closeObject) return members;
    if (separator !== comma) throw invalid(position);
    position = skipSpace(source, position + 1);
  }
}

function decodeKey(raw: string, position: number): string {
  if (!raw.includes('\\')) return raw.slice(1, -1);
  try {
    return JSON.parse(raw) as string;
  } catch {
    throw invalid(position);
  }
}

/** Offset after the value that starts at `start`. Nesting is counted, not recursed into: depth costs no stack. */
function skipValue(source: string, start: number): number {
  const opening = source.charCodeAt(start);
  if (opening === quote) return skipString(source, start);
  if (opening !== openArray && opening !== openObject) return skipLiteral(source, start);
  let depth = 0;
  let position = start;
  while (position < source.length) {
    switch (source.charCodeAt(position)) {
      case quote:
        position = skipString(source, position);
        continue;
      case openArray:
      case openObject:
        depth += 1;
        break;
      case closeArray:
      case closeObject:
        depth -= 1;
        if (depth === 0) return position + 1;
        break;
    }
    position += 1;
  }
  throw invalid(start);
}

function skipString(source: string, start: number): number {
  let from = start + 1;
  for (;;) {
    const end = source.indexOf('"', from);
    if (end < 0) throw invalid(start);
    let slashes = 0;
    while (source.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
    from = end + 1;
  }
}

/** A number, true, false or null. */
function skipLiteral(source: string, start: number): number {
  let position = start;
  while (position < source.length && /[-+.0-9A-Za-z]/.test(source.charAt(position))) position += 1;
  if (position === start) throw invalid(start);
  return position;
}

function skipSpace(source: string, start: number): number {
  let position = start;
  for (;;) {
    const unit = source.charCodeAt(position);
    if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return position;
    position += 1;
  }
}

function pathText(path: readonly (string | number)[]): string {
  return path.length === 0
    ? 'the root'
    : path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
}

function invalid(position: number): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `not a JSON text: unexpected character or end at offset ${position}`,
  );
}
