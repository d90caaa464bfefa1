import { parseDocument as parseYamlDocument } from 'yaml';
import { anObject, aString } from '../check.js';
import { excerpt, kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { toolFromElement } from './define-tool.js';
import {
  type ImportContext,
  shapeOf,
  type ToolElement,
  type ToolShape,
} from './importers/element.js';
import { toolsFromOpenApi } from './importers/openapi.js';
import { arraySlices } from './json-slices.js';
import { assertUniqueIds } from './merge-tools.js';
import { isRecord, own, type Tool } from './tool.js';

/** What a file of tools can be. */
export const importFormats = ['mcp', 'openai', 'anthropic', 'openapi', 'jsonl', 'record'] as const;

/**
 * `mcp`: saved `tools/list` results; `openai`, `anthropic`: the `tools` of a request; `openapi`: an OpenAPI 3 document,
 * JSON or YAML; `jsonl`: one tool a line, any shape; `record`: Toolfinch's own layout, an array of `{ id, name, … }`.
 */
export type ImportFormat = (typeof importFormats)[number];

export interface ImportOptions {
  /** Default `auto`: told from the content, never from a file's name. A named format refuses anything else. */
  readonly format?: ImportFormat | 'auto';
  /** Namespace of these tools: becomes their group and the prefix of every id the source does not spell out. */
  readonly group?: string;
  /** Provenance for the metadata prior, where the source does not name one. */
  readonly source?: string;
  /** How to call this text in messages, such as a file's path. Default `input`. */
  readonly origin?: string;
  /** Accept a source that holds no tool. Default false: an empty catalogue is nearly always a mistake. */
  readonly allowEmpty?: boolean;
}

export interface ImportResult {
  readonly format: ImportFormat;
  /** In source order, ids unique. */
  readonly tools: readonly Tool[];
  /** What was left out and why, one sentence each: tools the provider hosts, references into other files, missing pages. */
  readonly warnings: readonly string[];
}

const known =
  'Known shapes: a saved MCP tools/list (bare result, JSON-RPC response, an array or lines of pages), OpenAI tools ' +
  '(nested or flat), Anthropic tools (input_schema), an OpenAPI 3.0/3.1 document (JSON or YAML), JSONL or a JSON array ' +
  'of { id, name, description, parameters }.';

/**
 * Reads tools from the text of a file. Every tool's `definition` is the exact slice of the text it was read from (from
 * YAML: JSON text of the operation).
 *
 * @param input JSON, JSONL or YAML text, or its UTF-8 bytes; a byte order mark is dropped
 * @throws FinchError FINCH_INVALID_ARGUMENT for an unknown shape, a malformed tool or a source without tools;
 *   FINCH_DUPLICATE_ID when two tools have the same id
 */
export function importTools(input: string | Uint8Array, options: ImportOptions = {}): ImportResult {
  anObject(options, 'options');
  const { format = 'auto', origin = 'input', allowEmpty = false } = options;
  if (format !== 'auto' && !importFormats.includes(format)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `format is ${kindOf(format)}, expected auto or one of ${importFormats.join(', ')}`,
    );
  }
  for (const key of ['group', 'source', 'origin'] as const) {
    const value = options[key];
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${key} is ${kindOf(value)}, expected a string that is not empty, or nothing`,
      );
    }
  }
  const context = { group: options.group, source: options.source };
  const document = readDocument(decode(input, origin), origin, format);
  const reading = new Reading(document, format, origin, context);
  const result = reading.result();
  if (result.tools.length === 0 && !allowEmpty) {
    const why = result.warnings.length === 0 ? '' : ` (${result.warnings.slice(0, 3).join('; ')})`;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${origin}: read as ${result.format}, but it holds no tools${why}; pass allowEmpty if that is meant`,
    );
  }
  assertUniqueIds(result.tools, origin);
  return result;
}

/**
 * The format of a text, by its content.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT when it is none that is known
 */
export function detectFormat(input: string | Uint8Array, origin = 'input'): ImportFormat {
  aString(origin, 'origin');
  const document = readDocument(decode(input, origin), origin, 'auto');
  return new Reading(document, 'auto', origin, {}).format();
}

type Document =
  | { readonly kind: 'json'; readonly text: string; readonly value: unknown }
  | { readonly kind: 'jsonl'; readonly text: string }
  | { readonly kind: 'yaml'; readonly value: unknown };

/** Walks a document once and gathers its tools in order. */
class Reading {
  readonly #tools: Tool[] = [];
  readonly #warnings: string[] = [];
  #shape: ImportFormat | undefined;

  constructor(
    readonly document: Document,
    readonly wanted: ImportFormat | 'auto',
    readonly origin: string,
    readonly context: ImportContext,
  ) {}

  format(): ImportFormat {
    const { document } = this;
    if (document.kind === 'jsonl') return 'jsonl';
    if (isOpenApi(document.value)) return 'openapi';
    return this.result().format;
  }

  result(): ImportResult {
    const { document, wanted, origin } = this;
    if (document.kind === 'jsonl') {
      if (wanted === 'openapi') throw this.#unknown('several lines of JSON', wanted);
      this.#lines(document.text);
      const format = wanted === 'auto' ? 'jsonl' : wanted;
      return { format, tools: this.#tools, warnings: this.#warnings };
    }
    if (isOpenApi(document.value) || wanted === 'openapi') {
      if (!isRecord(document.value) || (wanted !== 'auto' && wanted !== 'openapi')) {
        throw this.#unknown(kindOf(document.value), wanted);
      }
      const json = document.kind === 'json' ? document.text : undefined;
      const source = { root: document.value, json, origin };
      const tools = toolsFromOpenApi(source, this.context, this.#warnings);
      return { format: 'openapi', tools, warnings: this.#warnings };
    }
    if (document.kind === 'yaml')
      throw this.#unknown(`YAML holding ${kindOf(document.value)}`, wanted);
    this.#value(document.value, () => document.text.trim(), origin, false);
    const format = wanted === 'auto' ? (this.#shape ?? 'mcp') : wanted;
    return { format, tools: this.#tools, warnings: this.#warnings };
  }

  #lines(text: string): void {
    let number = 0;
    for (const line of text.split('\n')) {
      number += 1;
      const raw = line.trim();
      if (raw === '') continue;
      const where = `${this.origin}, line ${number}`;
      this.#value(parseJson(raw, where), () => raw, where, true);
    }
  }

  /**
   * One value of JSON: a tool, a page of tools, or a list of either.
   *
   * @param inLog a line among others, where a JSON-RPC message of another kind is passed over with a warning
   */
  #value(value: unknown, raw: () => string, where: string, inLog: boolean): void {
    if (Array.isArray(value)) {
      if (value.length > 0 || this.wanted === 'auto') this.#elements(value, raw(), [], where);
      return;
    }
    if (!isRecord(value)) throw this.#unknown(kindOf(value), this.wanted, where);
    const page = pageOf(value);
    if (page !== undefined) {
      this.#page(page, raw, where);
      return;
    }
    const shape = shapeOf(value);
    if (shape !== undefined) {
      this.#tool(shape, { value, raw: raw(), where });
      return;
    }
    if (own(value, 'jsonrpc') !== undefined) {
      const error = own(value, 'error');
      const what = isRecord(error)
        ? `a JSON-RPC error response: ${excerpt(String(own(error, 'message')))} (code ${String(own(error, 'code'))})`
        : 'a JSON-RPC message without a list of tools';
      if (!inLog || isRecord(error)) {
        throw new FinchError(
          'FINCH_INVALID_ARGUMENT',
          `${where}: it is ${what}; save the response of tools/list instead`,
        );
      }
      this.#warnings.push(`${where}: ${what}; passed over`);
      return;
    }
    throw this.#unknown(kindOf(value), this.wanted, where, hintFor(value));
  }

  #page(page: Page, raw: () => string, where: string): void {
    this.#shape ??= page.jsonRpc ? 'mcp' : undefined;
    this.#elements(page.tools, raw(), page.path, where);
    if (page.nextCursor !== undefined) this.#warnings.push(`${where}: ${lastPageWarning}`);
    else this.#dropWarning();
  }

  /** A page that follows a cursor answers the warning about it; only the last page's may stand. */
  #dropWarning(): void {
    const at = this.#warnings.findIndex((warning) => warning.endsWith(lastPageWarning));
    if (at >= 0) {
      const kept = this.#warnings.filter((warning) => !warning.endsWith(lastPageWarning));
      this.#warnings.splice(0, this.#warnings.length, ...kept);
    }
  }

  #elements(values: readonly unknown[], raw: string, path: readonly string[], where: string): void {
    const slices = arraySlices(raw, path);
    values.forEach((value, index) => {
      const text = slices[index]?.text;
      if (text === undefined)
        throw new FinchError('FINCH_INTERNAL', `${where}: slice ${index} lost`);
      const label =
        path.length === 0 ? `${where}[${index}]` : `${where}, ${path.join('.')}[${index}]`;
      // Only the root array may hold pages; a page inside a page is no shape anyone writes.
      if (path.length === 0 && isRecord(value) && pageOf(value) !== undefined) {
        this.#value(value, () => text, label, false);
        return;
      }
      const shape = shapeOf(value);
      if (shape === undefined) {
        const hint = isRecord(value) ? hintFor(value) : undefined;
        throw this.#unknown(kindOf(value), this.wanted, label, hint);
      }
      this.#tool(shape, { value: value as Record<string, unknown>, raw: text, where: label });
    });
  }

  #tool(shape: ToolShape | 'hosted', element: ToolElement): void {
    if (shape === 'hosted') {
      const type = excerpt(String(own(element.value, 'type')));
      this.#warnings.push(
        `${element.where}: ${type} is run by the model's provider and has no schema; left out`,
      );
      return;
    }
    // A tool with neither schema nor id reads as a record; an explicit format knows better and may take it.
    if (this.wanted !== 'auto' && this.wanted !== 'jsonl' && shape !== this.wanted) {
      const mayLackSchema = this.wanted !== 'record' && shape === 'record';
      if (!mayLackSchema) {
        throw this.#unknown(`a tool of shape ${shape}`, this.wanted, element.where);
      }
    }
    this.#shape ??= shape;
    this.#tools.push(toolFromElement(shape, element, this.context));
  }

  #unknown(seen: string, wanted: string, where = this.origin, hint = ''): FinchError {
    const expected = wanted === 'auto' ? known : `The format asked for is ${wanted}. ${known}`;
    return new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: found ${seen}, not a tool or a list of tools. ${hint}${expected}`,
    );
  }
}

const lastPageWarning =
  'the page ends with a nextCursor, so tools are missing; save the following pages too';

interface Page {
  readonly tools: readonly unknown[];
  readonly path: readonly string[];
  readonly nextCursor: unknown;
  readonly jsonRpc: boolean;
}

/** A list of tools with something around it: a result, a response, a request's body. */
function pageOf(value: Record<string, unknown>): Page | undefined {
  const result = own(value, 'result');
  const held = isRecord(result) ? result : value;
  for (const key of held === value ? ['tools', 'functions'] : ['tools']) {
    const tools = own(held, key);
    if (!Array.isArray(tools)) continue;
    const cursor = own(held, 'nextCursor');
    return {
      tools,
      path: held === value ? [key] : ['result', key],
      nextCursor: cursor === null || cursor === '' ? undefined : cursor,
      jsonRpc: held !== value,
    };
  }
  return undefined;
}

function isOpenApi(value: unknown): boolean {
  return isRecord(value) && own(value, 'openapi') !== undefined && pageOf(value) === undefined;
}

function hintFor(value: Record<string, unknown>): string {
  if (own(value, 'swagger') !== undefined) {
    return 'Swagger 2.0 is not read: convert the document to OpenAPI 3 first. ';
  }
  if (isRecord(own(value, 'mcpServers')) || isRecord(own(value, 'servers'))) {
    return 'This is a configuration of MCP servers, which lists no tools itself: read it with readMcpConfig and importMcpServers. ';
  }
  if (own(value, 'tools') !== undefined) {
    return `Its 'tools' is ${kindOf(own(value, 'tools'))}, expected an array. `;
  }
  if (own(value, 'name') !== undefined) {
    return "A tool needs a description, a schema or an id beside its 'name'. ";
  }
  return '';
}

function decode(input: string | Uint8Array, origin: string): string {
  if (typeof input === 'string') return input.startsWith('\uFEFF') ? input.slice(1) : input;
  if (!(input instanceof Uint8Array)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${origin}: ${kindOf(input)} given, expected a string or a Uint8Array of UTF-8`,
    );
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(input);
  } catch (cause) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${origin}: the bytes are not UTF-8; save the file as UTF-8 text`,
      { cause },
    );
  }
}

function readDocument(text: string, origin: string, format: ImportFormat | 'auto'): Document {
  const trimmed = text.trimStart();
  if (trimmed === '') {
    throw new FinchError('FINCH_INVALID_ARGUMENT', `${origin}: the text is empty. ${known}`);
  }
  if (format === 'jsonl') return { kind: 'jsonl', text };
  let failure: unknown;
  try {
    return { kind: 'json', text, value: JSON.parse(text) };
  } catch (error) {
    failure = error;
  }
  if (/^[[{]/.test(trimmed)) {
    const end = trimmed.indexOf('\n');
    if (end >= 0 && trimmed.slice(end).trim() !== '' && parses(trimmed.slice(0, end))) {
      return { kind: 'jsonl', text };
    }
    throw jsonError(text, origin, failure);
  }
  if (format === 'openapi' || /^["']?(openapi|swagger)["']?[ \t]*:/m.test(trimmed)) {
    return { kind: 'yaml', value: parseYaml(text, origin) };
  }
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${origin}: found text that starts ${excerpt(trimmed, 40)}, neither JSON nor an OpenAPI document. ${known}`,
  );
}

function parses(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw jsonError(text, where, error);
  }
}

function jsonError(text: string, where: string, cause: unknown): FinchError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const position = /at position (\d+)/.exec(reason)?.[1];
  let place = '';
  if (position !== undefined) {
    const before = text.slice(0, Number(position));
    const line = before.split('\n').length;
    place = ` at line ${line}, column ${before.length - before.lastIndexOf('\n')}`;
  }
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${where}: the JSON does not parse${place}: ${excerpt(reason, 120)}`,
    { cause },
  );
}

function parseYaml(text: string, origin: string): unknown {
  try {
    const document = parseYamlDocument(text, {
      merge: true,
      logLevel: 'error',
      prettyErrors: true,
    });
    const problem = document.errors[0];
    if (problem !== undefined) throw problem;
    return document.toJS({ maxAliasCount: 1000 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${origin}: the YAML does not parse: ${excerpt(reason, 160)}`,
      { cause },
    );
  }
}
