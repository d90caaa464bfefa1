import { aList, aString, refuse } from '../check.js';
import { excerpt, kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';

/** A JSON Schema given as an object. The boolean schema `true` is carried as `{}`. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What is known of a tool's past runs before Toolfinch has seen any. */
export interface ToolReliability {
  /** Number of calls observed, a finite number >= 0. */
  readonly uses: number;
  /** Share of those calls that succeeded, in [0, 1]; absent when only the count is known. */
  readonly successRate?: number;
}

/** One tool of a catalogue. Objects made by this package are frozen. */
export interface Tool {
  /** Opaque, compared byte for byte, 1 to 4,096 UTF-8 bytes, unique within a catalogue. */
  readonly id: string;
  /** The name the host calls it by; never changed, 1 to 4,096 UTF-8 bytes. */
  readonly name: string;
  /** What it does; empty when its host wrote nothing. */
  readonly description: string;
  /** A name for people. */
  readonly title?: string;
  /** Namespace: an MCP server, an OpenAPI tag, a category. */
  readonly group?: string;
  /** What the group is for, when its host says so. */
  readonly groupDescription?: string;
  /** Where the definition comes from (`official`, `langchain`, a registry): looked up by the metadata prior. */
  readonly source?: string;
  /** Its publisher is the maker of the service it drives; the metadata prior then reads the source as `official`. */
  readonly official?: boolean;
  readonly tags?: readonly string[];
  /** Input schema. */
  readonly parameters?: JsonSchema;
  /** OpenAPI only: method and path (`GET /users/{id}`), which the bytes of an operation do not tell. */
  readonly endpoint?: string;
  /** Its host asks not to use it any more. */
  readonly deprecated?: boolean;
  /** The host's own etag or version: replaces the content hash as the sign that the tool has changed. */
  readonly version?: string;
  readonly reliability?: ToolReliability;
  /** The tool exactly as its host wrote it: the bytes of its source. Hand this to a model, never something rebuilt. */
  readonly definition: string;
}

/** The most UTF-8 bytes an id or a name may have. */
export const maxIdBytes = 4096;

const optionalStrings = [
  'title',
  'group',
  'groupDescription',
  'source',
  'endpoint',
  'version',
] as const;

/** @throws FinchError FINCH_INVALID_ARGUMENT for what is no {@link Tool} */
export function checkTool(value: unknown, name: string): asserts value is Tool {
  if (!isRecord(value)) refuse(value, name, aTool);
  for (const field of ['id', 'name', 'description', 'definition'] as const) {
    if (typeof value[field] !== 'string') refuse(value[field], `${name}.${field}`, aToolString);
  }
  for (const field of optionalStrings) {
    const held = value[field];
    if (held !== undefined && typeof held !== 'string') {
      refuse(held, `${name}.${field}`, aToolString);
    }
  }
  if (value.tags !== undefined) aList(aString)(value.tags, `${name}.tags`);
}

const aTool =
  "a Tool; make one of your host's object with defineTool, or of a file's text with importTools";
const aToolString = `a string, as ${aTool.slice(2)}`;

/** The fields of a {@link Tool} before they have been checked. */
export interface ToolFields {
  readonly id: unknown;
  readonly name: unknown;
  readonly definition: string;
  readonly description?: unknown;
  readonly title?: unknown;
  readonly group?: unknown;
  readonly groupDescription?: unknown;
  readonly source?: unknown;
  readonly official?: unknown;
  readonly tags?: unknown;
  readonly parameters?: unknown;
  readonly endpoint?: unknown;
  readonly deprecated?: unknown;
  readonly version?: unknown;
  readonly reliability?: unknown;
}

/**
 * Checks fields and makes a frozen {@link Tool} of them. `undefined` and `null` mean absent for every optional field.
 *
 * @param where names the tool in an error, such as `tools.json, tools[3]`
 * @throws FinchError FINCH_INVALID_ARGUMENT naming the field, what it holds and what was expected
 */
export function makeTool(fields: ToolFields, where: string): Tool {
  const name = identifier(fields.name, 'name', where);
  const at = `${where} (${excerpt(name)})`;
  const tool: { -readonly [K in keyof Tool]: Tool[K] } = {
    id: identifier(fields.id, 'id', at),
    name,
    description: optionalString(fields.description, 'description', at) ?? '',
    definition: fields.definition,
  };
  for (const field of optionalStrings) {
    const value = optionalString(fields[field], field, at);
    if (value !== undefined && value !== '') tool[field] = value;
  }
  for (const field of ['official', 'deprecated'] as const) {
    const value = fields[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'boolean') throw wrong(field, value, 'true or false', at);
    if (value) tool[field] = true;
  }
  const tags = optionalTags(fields.tags, at);
  if (tags !== undefined) tool.tags = tags;
  const parameters = optionalSchema(fields.parameters, at);
  if (parameters !== undefined) tool.parameters = parameters;
  const reliability = optionalReliability(fields.reliability, at);
  if (reliability !== undefined) tool.reliability = reliability;
  return Object.freeze(tool);
}

/** True for an object that is neither an array nor null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field of `value` that belongs to the object itself, so that a name like `constructor` finds nothing. */
export function own(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

function identifier(value: unknown, field: string, where: string): string {
  if (typeof value !== 'string') throw wrong(field, value, 'a string', where);
  if (value === '') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: ${field} is empty; every tool needs a ${field} of 1 to ${maxIdBytes} UTF-8 bytes`,
    );
  }
  if (/\p{Surrogate}/u.test(value)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: ${field} holds half of a surrogate pair, so it has no UTF-8 form; mend the text where it was cut`,
    );
  }
  // A UTF-16 unit takes at most 3 bytes of UTF-8, so short strings need no counting.
  if (value.length * 3 > maxIdBytes) {
    const bytes = Buffer.byteLength(value, 'utf8');
    if (bytes > maxIdBytes) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${where}: ${field} has ${bytes} UTF-8 bytes, at most ${maxIdBytes} are allowed`,
      );
    }
  }
  return value;
}

function optionalString(value: unknown, field: string, where: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw wrong(field, value, 'a string', where);
  return value;
}

function optionalTags(value: unknown, where: string): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw wrong('tags', value, 'an array of strings', where);
  const tags: string[] = [];
  for (const tag of value) {
    if (typeof tag !== 'string') throw wrong(`tags[${tags.length}]`, tag, 'a string', where);
    tags.push(tag);
  }
  return tags.length === 0 ? undefined : Object.freeze(tags);
}

function optionalSchema(value: unknown, where: string): JsonSchema | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === true) return {};
  if (!isRecord(value)) throw wrong('the input schema', value, 'a JSON Schema object', where);
  return value;
}

function optionalReliability(value: unknown, where: string): ToolReliability | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) {
    throw wrong('reliability', value, 'an object { uses, successRate? }', where);
  }
  const { uses, successRate } = value;
  if (typeof uses !== 'number' || !Number.isFinite(uses) || uses < 0) {
    throw wrong('reliability.uses', uses, 'a finite number >= 0', where);
  }
  if (successRate === undefined || successRate === null) return Object.freeze({ uses });
  if (typeof successRate !== 'number' || !(successRate >= 0 && successRate <= 1)) {
    throw wrong('reliability.successRate', successRate, 'a number from 0 to 1', where);
  }
  return Object.freeze({ uses, successRate });
}

function wrong(field: string, value: unknown, expected: string, where: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${where}: ${field} is ${kindOf(value)}, expected ${expected}`,
  );
}
