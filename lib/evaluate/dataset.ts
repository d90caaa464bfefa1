import { readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { importTools } from '../catalog/import-tools.js';
import { isRecord, own, type Tool } from '../catalog/tool.js';
import { aList, aString, fields, optional } from '../check.js';
import { excerpt, kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { maxRelevance } from './metrics.js';

/** A query with its labels. */
export interface DatasetQuery {
  readonly id: string;
  readonly text: string;
  /** `train`, `test` or another name from splits.tsv; `test` for all when the folder has no such file. */
  readonly split: string;
  /** Tool id to relevance, 1 unless qrels.tsv says otherwise. Holds relevance 0 where it was judged so. */
  readonly gold: ReadonlyMap<string, number>;
  /** What sort of query, in the words of queries.jsonl, such as `single`, `multi`, `none`. */
  readonly kind?: string;
}

/** A catalogue and labelled queries over it. */
export interface Dataset {
  /** The folder's name. */
  readonly name: string;
  readonly tools: readonly Tool[];
  /** The queries that at least one tool answers, in file order: ranking metrics are means over these. */
  readonly queries: readonly DatasetQuery[];
  /** The queries without a tool of relevance > 0: the right answer is to keep none. */
  readonly unanswerable: readonly DatasetQuery[];
  /** What importing the tools left out, one sentence each. */
  readonly warnings: readonly string[];
}

const someQueries = aList(fields({ split: aString, kind: optional(aString) }));
const aDataset = fields({ name: aString, queries: someQueries, unanswerable: someQueries });
const aChoice = fields({ split: optional(aString), kind: optional(aString) });

/**
 * Reads a folder of evaluation data:
 *
 * - `tools.jsonl` (one tool a line) or `tools.json` (a saved MCP `tools/list`, or any other shape importTools reads);
 * - `queries.jsonl`: `{ "id", "text", "kind"? }` a line; other fields are passed over;
 * - `qrels.tsv`: query id, tab, tool id, and optionally tab, relevance (0 to {@link maxRelevance}; 1 when left out);
 * - `splits.tsv`, optional: query id, tab, split; names every query when it is there.
 *
 * Tables have no header. UTF-8 with or without a byte order mark, LF or CRLF, blank lines are passed over. The files
 * are read whole into memory.
 *
 * @throws FinchError FINCH_IO (a file is missing or unreadable), FINCH_INVALID_ARGUMENT (malformed line),
 * FINCH_UNKNOWN_ID (a table names a query or tool that is not there), FINCH_DUPLICATE_ID; the message names file and line
 */
export async function loadDataset(folder: string): Promise<Dataset> {
  aString(folder, 'folder');
  const { tools, warnings } = await readTools(folder);
  const queries = await readQueries(join(folder, 'queries.jsonl'));
  const gold = await readQrels(join(folder, 'qrels.tsv'), queries, tools);
  const splits = await readSplits(join(folder, 'splits.tsv'), queries);
  const answerable: DatasetQuery[] = [];
  const unanswerable: DatasetQuery[] = [];
  for (const { id, text, kind, where } of queries.values()) {
    const own = gold.get(id) ?? new Map<string, number>();
    const isAnswerable = [...own.values()].some((relevance) => relevance > 0);
    if (isAnswerable && kind === 'none') {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${where}: the query ${excerpt(id)} is of kind none, yet qrels.tsv gives it a tool; drop one of the two`,
      );
    }
    const split = splits === undefined ? 'test' : splits.get(id);
    if (split === undefined) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${where}: splits.tsv has no line for the query ${excerpt(id)}; add one, or remove splits.tsv ` +
          'to have every query in the split test',
      );
    }
    const query = { id, text, split, gold: own, ...(kind === undefined ? {} : { kind }) };
    (isAnswerable ? answerable : unanswerable).push(query);
  }
  return {
    name: basename(resolve(folder)),
    tools,
    queries: answerable,
    unanswerable,
    warnings,
  };
}

/**
 * The same tools with the queries of one split, and of one kind when it is given.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT when no query is left, naming the splits and kinds there are
 */
export function selectQueries(
  dataset: Dataset,
  options: { readonly split?: string | undefined; readonly kind?: string | undefined },
): Dataset {
  aDataset(dataset, 'dataset');
  aChoice(options, 'options');
  const { split, kind } = options;
  const fits = (query: DatasetQuery): boolean =>
    (split === undefined || query.split === split) && (kind === undefined || query.kind === kind);
  const queries = dataset.queries.filter(fits);
  const unanswerable = dataset.unanswerable.filter(fits);
  if (queries.length + unanswerable.length === 0) {
    const all = [...dataset.queries, ...dataset.unanswerable];
    const names = (values: readonly (string | undefined)[]): string =>
      [...new Set(values)].map((value) => value ?? 'none given').join(', ');
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${dataset.name} has no query of split ${split ?? 'any'} and kind ${kind ?? 'any'}; ` +
        `splits: ${names(all.map((q) => q.split))}; kinds: ${names(all.map((q) => q.kind))}`,
    );
  }
  return { ...dataset, queries, unanswerable };
}

interface Line {
  readonly text: string;
  /** For messages: `data/qrels.tsv, line 3`. */
  readonly where: string;
}

interface Query {
  readonly id: string;
  readonly text: string;
  readonly kind: string | undefined;
  readonly where: string;
}

async function readTools(
  folder: string,
): Promise<{ tools: readonly Tool[]; warnings: readonly string[] }> {
  const lines = join(folder, 'tools.jsonl');
  const saved = join(folder, 'tools.json');
  const [fromLines, fromSaved] = [await readIfThere(lines), await readIfThere(saved)];
  if (fromLines !== undefined && fromSaved !== undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${folder} holds both tools.jsonl and tools.json; keep the one that qrels.tsv was made for`,
    );
  }
  if (fromLines !== undefined) {
    return importTools(fromLines, { format: 'jsonl', origin: lines });
  }
  if (fromSaved !== undefined) return importTools(fromSaved, { origin: saved });
  throw new FinchError(
    'FINCH_IO',
    `${folder} holds neither tools.jsonl nor tools.json; an evaluation folder has one of them, ` +
      'queries.jsonl and qrels.tsv',
  );
}

async function readQueries(path: string): Promise<Map<string, Query>> {
  const queries = new Map<string, Query>();
  for (const { text: line, where } of await readLines(path)) {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      const reason = cause instanceof Error ? excerpt(cause.message, 120) : '';
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${where}: the JSON does not parse: ${reason}; expected one object a line`,
        { cause },
      );
    }
    if (!isRecord(value)) throw wrong(where, 'the line', value, '{ "id": …, "text": … }');
    const id = textOf(value, 'id', where);
    const text = textOf(value, 'text', where);
    const kind = own(value, 'kind') ?? undefined;
    if (kind !== undefined && typeof kind !== 'string')
      throw wrong(where, 'kind', kind, 'a string');
    const earlier = queries.get(id);
    if (earlier !== undefined) throw twice(where, `the query id ${excerpt(id)}`, earlier.where);
    queries.set(id, { id, text, kind, where });
  }
  if (queries.size === 0) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${path} holds no query; expected one JSON object a line`,
    );
  }
  return queries;
}

async function readQrels(
  path: string,
  queries: ReadonlyMap<string, Query>,
  tools: readonly Tool[],
): Promise<Map<string, Map<string, number>>> {
  const known = new Set(tools.map((tool) => tool.id));
  const gold = new Map<string, Map<string, number>>();
  const lines = new Map<string, string>();
  for (const { text, where } of await readLines(path)) {
    const columns = text.split('\t');
    const [query = '', tool = '', grade] = columns;
    if (columns.length < 2 || columns.length > 3) {
      throw columnsWrong(
        where,
        columns.length,
        'query id, tab, tool id, and optionally tab, relevance',
      );
    }
    if (!queries.has(query)) throw unknown(where, 'query', query, 'queries.jsonl');
    if (!known.has(tool)) throw unknown(where, 'tool', tool, 'the tools of the folder');
    const relevance = grade === undefined ? 1 : relevanceIn(grade, where);
    const own = gold.get(query) ?? new Map<string, number>();
    const pair = JSON.stringify([query, tool]);
    const earlier = lines.get(pair);
    if (earlier !== undefined) {
      throw twice(where, `the pair of query ${excerpt(query)} and tool ${excerpt(tool)}`, earlier);
    }
    lines.set(pair, where);
    gold.set(query, own.set(tool, relevance));
  }
  return gold;
}

async function readSplits(
  path: string,
  queries: ReadonlyMap<string, Query>,
): Promise<Map<string, string> | undefined> {
  const bytes = await readIfThere(path);
  if (bytes === undefined) return undefined;
  const splits = new Map<string, string>();
  const lines = new Map<string, string>();
  for (const { text, where } of linesOf(bytes, path)) {
    const columns = text.split('\t');
    const [query = '', split = ''] = columns;
    if (columns.length !== 2 || split.trim() === '') {
      throw columnsWrong(where, columns.length, 'query id, tab, split such as train or test');
    }
    if (!queries.has(query)) throw unknown(where, 'query', query, 'queries.jsonl');
    const earlier = lines.get(query);
    if (earlier !== undefined) throw twice(where, `the query id ${excerpt(query)}`, earlier);
    lines.set(query, where);
    splits.set(query, split);
  }
  return splits;
}

function relevanceIn(grade: string, where: string): number {
  const relevance = /^\d+(\.\d+)?$/.test(grade) ? Number(grade) : Number.NaN;
  if (!(relevance <= maxRelevance)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: the relevance is ${excerpt(grade)}, expected a decimal number from 0 to ${maxRelevance}`,
    );
  }
  return relevance;
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new FinchError('FINCH_IO', `${path} cannot be read (${String(code ?? cause)})`, {
      cause,
    });
  }
}

async function readLines(path: string): Promise<Line[]> {
  const bytes = await readIfThere(path);
  if (bytes !== undefined) return linesOf(bytes, path);
  throw new FinchError(
    'FINCH_IO',
    `${path} is missing; an evaluation folder has tools.jsonl or tools.json, queries.jsonl, qrels.tsv and ` +
      'optionally splits.tsv',
  );
}

/** The lines that are not blank, numbered from 1. */
function linesOf(bytes: Uint8Array, path: string): Line[] {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${path}: the bytes are not UTF-8; save the file as UTF-8 text`,
      { cause },
    );
  }
  const lines: Line[] = [];
  for (const [i, raw] of text.split('\n').entries()) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line.trim() !== '') lines.push({ text: line, where: `${path}, line ${i + 1}` });
  }
  return lines;
}

function textOf(value: Record<string, unknown>, field: string, where: string): string {
  const text = own(value, field);
  if (typeof text !== 'string' || text.trim() === '') {
    throw wrong(where, field, text, 'a string that is not blank');
  }
  return text;
}

function wrong(where: string, what: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${where}: ${what} is ${kindOf(value)}, expected ${expected}`,
  );
}

function columnsWrong(where: string, count: number, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${where}: found ${count === 1 ? 'one column' : `${count} columns`}, expected ${expected}`,
  );
}

function unknown(where: string, what: string, id: string, place: string): FinchError {
  const header = where.endsWith(', line 1') ? ' (tables have no header line)' : '';
  return new FinchError(
    'FINCH_UNKNOWN_ID',
    `${where}: there is no ${what} ${excerpt(id)} in ${place}${header}; ids are compared byte for byte`,
  );
}

function twice(where: string, what: string, earlier: string): FinchError {
  return new FinchError(
    'FINCH_DUPLICATE_ID',
    `${where}: ${what} already stands at ${earlier}; keep one`,
  );
}
