import { aFunction, aString } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { checkTool, type Tool } from './tool.js';

/** Counts the tokens of a text; a host passes its model's own tokenizer. */
export type TokenCounter = (text: string) => number;

/** Tokens that a host's wrapping of each tool takes, beside the tool's own JSON. */
const wrapping = 8;

/**
 * The tokens a tool takes in a prompt, schema included: those of `{ name, description, parameters }` as compact JSON,
 * plus 8 for what a host wraps around it. A whole number >= 1.
 *
 * @param count default {@link countTokens}
 * @throws FinchError FINCH_INVALID_ARGUMENT when `count` returns anything but a finite number >= 0
 */
export function estimateTokens(tool: Tool, count: TokenCounter = countTokens): number {
  checkTool(tool, 'tool');
  aFunction(count, 'count');
  const { name, description, parameters = noArguments } = tool;
  const tokens: unknown = count(compact({ name, description, parameters }) ?? tool.definition);
  if (typeof tokens !== 'number' || !Number.isFinite(tokens) || tokens < 0) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `the token counter returned ${kindOf(tokens)}, expected a finite number >= 0`,
    );
  }
  return Math.ceil(tokens) + wrapping;
}

/** JSON text, or undefined for a schema nested too deep for the engine to write. */
function compact(value: object): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

const noArguments = { type: 'object', properties: {} };

/**
 * An estimate of a text's tokens without a tokenizer: words, groups of up to three digits and runs of punctuation are
 * counted as byte-pair encodings cut them; long words and letters outside the Latin scripts count for more.
 *
 * Fitted to o200k_base and cl100k_base on the JSON of 1,000 tools of seven catalogues: the median tool is 2 to 6 % off,
 * 95 of 100 are within 18 %, a whole catalogue within 5 %. (Bytes / 4 is 10 to 24 % off and always above.) Prose in Latin
 * scripts other than English may come out a third too low.
 */
export function countTokens(text: string): number {
  aString(text, 'text');
  let tokens = 0;
  for (const match of text.matchAll(pieces)) {
    const piece = match[0];
    if (match[1] !== undefined) {
      tokens += 1 + (0.65 / 4) * Math.max(0, piece.length - 8);
    } else if (match[2] !== undefined) {
      tokens += 0.65 * codePoints(piece);
    } else if (match[3] !== undefined) {
      tokens += 1;
    } else {
      tokens += 0.95 * (1 + Math.max(0, piece.length - 3) / 3);
    }
  }
  return tokens;
}

const pieces = /([A-Za-z\u{c0}-\u{24f}]+)|([\p{L}\p{M}]+)|(\p{Nd}{1,3})|[^\p{L}\p{M}\p{Nd}\s]+/gu;

function codePoints(text: string): number {
  let points = 0;
  for (const _ of text) points += 1;
  return points;
}
