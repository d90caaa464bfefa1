import { anObject, aString } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { argumentNames } from './argument-names.js';
import { splitWords } from './split-words.js';
import { checkTool, type Tool } from './tool.js';

export { splitWords } from './split-words.js';

/** What the embedded text of a tool is made of. */
export type IndexTextPart =
  | 'name'
  | 'title'
  | 'group'
  | 'description'
  | 'parameters'
  | 'endpoint'
  | 'tags'
  | 'groupDescription';

/** A recipe for {@link indexText}. Plain data: it can be stored beside an index as JSON. */
export interface IndexTextOptions {
  /** Parts in order. Default: name, title, description, parameters, group. Output schemas are never part of it. */
  readonly parts?: readonly IndexTextPart[];
  /** The most characters (Unicode code points) of the text, 16 to 1,000,000. Default 1,000: an encoder of 256 tokens reads little more. */
  readonly maxCharacters?: number;
  /** Levels of nested arguments that are named, 0 to 64. Default 3. */
  readonly maxDepth?: number;
  /** Argument names that are read, 0 to 10,000. Default 64. */
  readonly maxParameters?: number;
}

/** The version of the recipe's code: raised whenever the same options would give another text. Part of every cache key. */
export const indexTextVersion = 'index-text/1';

const defaults = {
  parts: ['name', 'title', 'description', 'parameters', 'group'],
  maxCharacters: 1000,
  maxDepth: 3,
  maxParameters: 64,
} as const satisfies Required<IndexTextOptions>;

const allParts: ReadonlySet<string> = new Set([
  ...defaults.parts,
  'endpoint',
  'tags',
  'groupDescription',
]);

/** A share of the text that the long parts beside the description may not exceed, so that no part starves the rest. */
const sideShare = 0.35;

/**
 * The text of a tool that is embedded: its name in words, then `title`, description, argument names and group as short
 * labelled sentences. White space is normalised and half surrogates dropped; too long a text is cut between words, the
 * description first. Bounded work whatever the schema: depth, names and visited nodes are limited, `$ref` may recurse.
 *
 * Deterministic: the same tool and options give the same text under one {@link indexTextVersion}.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT for an option out of range
 */
export function indexText(tool: Tool, options: IndexTextOptions = {}): string {
  checkTool(tool, 'tool');
  const recipe = checkRecipe(options);
  const budget = recipe.maxCharacters;
  const side = Math.floor(budget * sideShare);
  const texts = recipe.parts.map((part) => ({ part, text: partText(tool, part, recipe) }));
  // Everything but the description is laid down first; the description gets the room that is left.
  let room = budget;
  const cut = new Map<IndexTextPart, string>();
  for (const { part, text } of texts) {
    if (part === 'description' || text === '') continue;
    const shortened = cutWords(text, Math.min(side, Math.max(0, room - separators)));
    if (shortened !== '') room -= length(shortened) + separators;
    cut.set(part, shortened);
  }
  for (const { part, text } of texts) {
    if (part === 'description') cut.set(part, cutWords(text, Math.max(0, room - separators)));
  }
  const pieces: string[] = [];
  for (const { part } of texts) {
    const text = cut.get(part);
    if (text !== undefined && text !== '') pieces.push((labels[part] ?? '') + endSentence(text));
  }
  // A tool whose name has no letters and that says nothing else is still found by its name as written.
  const text = pieces.join(' ');
  return cutWords(text === '' ? clean(tool.name, budget) : text, budget);
}

/** The recipe as a string for a cache key: the code's version and every option, defaults filled in. */
export function indexTextRecipe(options: IndexTextOptions = {}): string {
  const { parts, maxCharacters, maxDepth, maxParameters } = checkRecipe(options);
  return [indexTextVersion, parts.join('+'), maxCharacters, maxDepth, maxParameters].join(' ');
}

/** The fields a lexical index (BM25) reads. Every one is a string, empty when the tool lacks it. */
export interface LexicalFields {
  /** The leaf name as the host wrote it: what follows `mcp__server__`. */
  readonly name: string;
  /** The leaf name and the title in words. */
  readonly words: string;
  readonly description: string;
  /** Argument names in words. */
  readonly parameters: string;
  /** The group, or the server of an `mcp__server__tool` name, in words. */
  readonly group: string;
}

/** The longest description a lexical index is given, in characters: beyond it a text is data, not a description. */
const longestLexical = 10_000;

export function lexicalFields(tool: Tool): LexicalFields {
  checkTool(tool, 'tool');
  const { leaf, server } = splitToolName(tool.name);
  return {
    name: leaf,
    words: splitWords(`${leaf} ${clean(tool.title ?? '', 1000)}`).join(' '),
    description: clean(tool.description, longestLexical),
    parameters: argumentWords(tool, defaults).join(' '),
    group: splitWords(clean(tool.group ?? server ?? '', 1000)).join(' '),
  };
}

/** `mcp__server__tool` as hosts show tools of MCP servers: the leaf and the server. Other names are their own leaf. */
export function splitToolName(name: string): { leaf: string; server?: string } {
  aString(name, 'name');
  const match = /^mcp__(.+?)__(.+)$/su.exec(name);
  return match?.[1] === undefined || match[2] === undefined
    ? { leaf: name }
    : { leaf: match[2], server: match[1] };
}

const labels: Partial<Record<IndexTextPart, string>> = {
  parameters: 'Arguments: ',
  group: 'Group: ',
  tags: 'Tags: ',
};

/** Room for a label, a full stop and a space. */
const separators = 13;

function partText(tool: Tool, part: IndexTextPart, recipe: Required<IndexTextOptions>): string {
  const limit = recipe.maxCharacters;
  const { leaf, server } = splitToolName(tool.name);
  switch (part) {
    case 'name':
      return splitWords(leaf).join(' ');
    case 'title': {
      const title = clean(tool.title ?? '', limit);
      // Most titles spell the name once more.
      return splitWords(title).join(' ') === splitWords(leaf).join(' ') ? '' : title;
    }
    case 'description':
      return clean(tool.description, limit);
    case 'parameters':
      return argumentWords(tool, recipe).join(', ');
    case 'group':
      return splitWords(clean(tool.group ?? server ?? '', limit)).join(' ');
    case 'groupDescription':
      return clean(tool.groupDescription ?? '', limit);
    case 'tags':
      return clean((tool.tags ?? []).slice(0, 32).join(', '), limit);
    case 'endpoint':
      return splitWords(tool.endpoint ?? '').join(' ');
  }
}

function argumentWords(tool: Tool, recipe: Required<IndexTextOptions>): string[] {
  const { maxDepth, maxParameters } = recipe;
  const seen = new Set<string>();
  for (const name of argumentNames(tool.parameters, { maxDepth, maxNames: maxParameters })) {
    const words = splitWords(name.slice(0, 256)).join(' ');
    if (words !== '') seen.add(words);
  }
  return [...seen];
}

/** Half surrogates and characters nobody sees: soft hyphen, zero-width space, direction marks, tag characters. */
const invisible =
  /[\p{Surrogate}\u{ad}\u{200b}\u{200e}\u{200f}\u{202a}-\u{202e}\u{2060}\u{2066}-\u{2069}\u{feff}\u{e0000}-\u{e007f}]/gu;

/** One line, single spaces, nothing invisible. Work is bounded by the limit, not by the text. */
function clean(text: string, limit: number): string {
  const bounded = text.length > limit * 8 ? text.slice(0, limit * 8) : text;
  return bounded
    .replace(invisible, '')
    .replace(/[\s\p{Cc}\p{Z}]+/gu, ' ')
    .trim();
}

/** At most `limit` code points, ending after a whole word where one ends in the last quarter. */
function cutWords(text: string, limit: number): string {
  if (text.length <= limit) return text;
  let points = 0;
  let end = 0;
  for (const point of text) {
    if (points === limit) break;
    points += 1;
    end += point.length;
  }
  if (end === text.length) return text;
  const kept = text.slice(0, end);
  if (/\s/.test(text.charAt(end))) return kept.trimEnd();
  const space = kept.lastIndexOf(' ');
  return (space >= end * 0.75 ? kept.slice(0, space) : kept).replace(/[\s,]+$/, '');
}

function length(text: string): number {
  let points = 0;
  for (const _ of text) points += 1;
  return points;
}

function endSentence(text: string): string {
  return /[.!?。！？]$/u.test(text) ? text : `${text}.`;
}

function checkRecipe(options: IndexTextOptions): Required<IndexTextOptions> {
  anObject(options, 'index text: options');
  const parts = options.parts ?? defaults.parts;
  if (!Array.isArray(parts) || parts.length === 0) {
    throw wrong('parts', parts, `an array of ${[...allParts].join(', ')}`);
  }
  for (const part of parts) {
    if (!allParts.has(part)) throw wrong('parts', part, `one of ${[...allParts].join(', ')}`);
  }
  if (new Set(parts).size !== parts.length) throw wrong('parts', parts, 'every part once');
  return {
    parts,
    maxCharacters: whole(options.maxCharacters, 'maxCharacters', 16, 1_000_000),
    maxDepth: whole(options.maxDepth, 'maxDepth', 0, 64),
    maxParameters: whole(options.maxParameters, 'maxParameters', 0, 10_000),
  };
}

function whole(
  value: number | undefined,
  key: 'maxCharacters' | 'maxDepth' | 'maxParameters',
  least: number,
  most: number,
): number {
  if (value === undefined) return defaults[key];
  if (!Number.isInteger(value) || value < least || value > most) {
    throw wrong(key, value, `a whole number from ${least} to ${most}`);
  }
  return value;
}

function wrong(option: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `index text: ${option} is ${kindOf(value)}, expected ${expected}`,
  );
}
