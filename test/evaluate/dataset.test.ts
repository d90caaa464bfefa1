import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import { loadDataset, selectQueries } from '../../lib/evaluate/dataset.js';
import { evaluateRanking } from '../../lib/evaluate/evaluate.js';

const demo = fileURLToPath(new URL('../../demo/phone-assistant', import.meta.url));

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolfinch-dataset-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const tools =
  '{"id": "a", "name": "a", "description": "First tool"}\n{"id": "b/x y", "name": "x y", "description": "Second"}\n';
const sound: Record<string, string> = {
  'tools.jsonl': tools,
  'queries.jsonl':
    '{"id": "q1", "text": "one", "kind": "single"}\n{"id": "q2", "text": "two"}\n{"id": "q3", "text": "nil", "kind": "none"}\n',
  'qrels.tsv': 'q1\ta\nq2\ta\t2\nq2\tb/x y\t0.5\n',
  'splits.tsv': 'q1\ttrain\nq2\ttest\nq3\ttest\n',
};

/** Writes the sound files with some replaced; null leaves one out. */
async function write(changes: Record<string, string | Uint8Array | null> = {}): Promise<string> {
  for (const [name, content] of Object.entries({ ...sound, ...changes })) {
    if (content !== null) await writeFile(join(folder, name), content);
  }
  return folder;
}

describe('loadDataset', () => {
  it('reads tools, queries, relevance and splits', async () => {
    const dataset = await loadDataset(await write());
    expect(dataset.name).toBe(basename(folder));
    expect(dataset.tools.map((tool) => tool.id)).toEqual(['a', 'b/x y']);
    expect(dataset.queries).toEqual([
      { id: 'q1', text: 'one', split: 'train', kind: 'single', gold: new Map([['a', 1]]) },
      {
        id: 'q2',
        text: 'two',
        split: 'test',
        gold: new Map([
          ['a', 2],
          ['b/x y', 0.5],
        ]),
      },
    ]);
    expect(dataset.unanswerable).toEqual([
      { id: 'q3', text: 'nil', split: 'test', kind: 'none', gold: new Map() },
    ]);
  });

  it('reads the same from CRLF, a byte order mark, blank lines and no newline at the end', async () => {
    const plain = await loadDataset(await write());
    const rough = Object.fromEntries(
      Object.entries(sound).map(([name, text]) => [
        name,
        `\uFEFF\r\n${text.trimEnd().replaceAll('\n', '\r\n\r\n')}`,
      ]),
    );
    const read = await loadDataset(await write(rough));
    expect({ ...read, tools: [] }).toEqual({ ...plain, tools: [] });
    expect(read.tools.map((tool) => tool.id)).toEqual(plain.tools.map((tool) => tool.id));
  });

  it('takes every query as a test query without splits.tsv', async () => {
    const dataset = await loadDataset(await write({ 'splits.tsv': null }));
    expect(dataset.queries.map(({ split }) => split)).toEqual(['test', 'test']);
  });

  it('counts a query with relevance 0 only as unanswerable', async () => {
    const dataset = await loadDataset(await write({ 'qrels.tsv': 'q1\ta\t0\nq2\ta\n' }));
    expect(dataset.unanswerable.map(({ id }) => id)).toEqual(['q1', 'q3']);
  });

  it('reads the demonstration catalogue', async () => {
    const dataset = await loadDataset(demo);
    expect(dataset.name).toBe('phone-assistant');
    expect(dataset.warnings).toEqual([]);
    expect(dataset.tools.length).toBe(249);
    expect(dataset.queries.length).toBe(125);
    expect(dataset.unanswerable.length).toBe(25);
    expect(dataset.unanswerable.every(({ kind }) => kind === 'none')).toBe(true);
    expect(dataset.queries.reduce((sum, { gold }) => sum + gold.size, 0)).toBe(169);
    const test = selectQueries(dataset, { split: 'test' });
    expect([test.queries.length, test.unanswerable.length]).toEqual([83, 17]);
    expect(selectQueries(dataset, { split: 'train', kind: 'multi' }).queries.length).toBe(12);
    // The gold tools first: a ranking that knows the answers must reach 1.
    const perfect = await evaluateRanking(dataset.queries, ({ gold }) => [...gold.keys()]);
    expect(perfect.ndcg.mean).toBe(1);
    expect(perfect.completeness.mean).toBe(1);
  });

  it('refuses a split or kind that no query has, naming those there are', async () => {
    const dataset = await loadDataset(await write());
    const refused = { code: 'FINCH_INVALID_ARGUMENT' };
    expect(() => selectQueries(dataset, { split: 'dev' })).toThrow(
      expect.objectContaining(refused),
    );
    expect(() => selectQueries(dataset, { kind: 'multi' })).toThrow(
      'kinds: single, none given, none',
    );
  });
});

describe('loadDataset refuses', () => {
  const query = '{"id": "q1", "text": "one"}\n';
  const cases: [string, Record<string, string | Uint8Array | null>, string, string][] = [
    ['no tools', { 'tools.jsonl': null }, 'FINCH_IO', 'tools.jsonl nor tools.json'],
    ['no queries', { 'queries.jsonl': null }, 'FINCH_IO', 'queries.jsonl is missing'],
    ['no qrels', { 'qrels.tsv': null }, 'FINCH_IO', 'qrels.tsv is missing'],
    ['two files of tools', { 'tools.json': '{"tools": []}' }, 'FINCH_INVALID_ARGUMENT', 'both'],
    ['an empty file of tools', { 'tools.jsonl': '\n' }, 'FINCH_INVALID_ARGUMENT', 'tools.jsonl'],
    [
      'a tool that is broken',
      { 'tools.jsonl': `${tools}{"id": 3,` },
      'FINCH_INVALID_ARGUMENT',
      'tools.jsonl, line 3',
    ],
    ['a tool twice', { 'tools.jsonl': tools + tools }, 'FINCH_DUPLICATE_ID', 'tools.jsonl'],
    [
      'an empty file of queries',
      { 'queries.jsonl': ' \n' },
      'FINCH_INVALID_ARGUMENT',
      'queries.jsonl holds no query',
    ],
    [
      'a query that is broken',
      { 'queries.jsonl': `\n${query}{"id": "q` },
      'FINCH_INVALID_ARGUMENT',
      'queries.jsonl, line 3',
    ],
    [
      'a query that is no object',
      { 'queries.jsonl': '["q1", "one"]' },
      'FINCH_INVALID_ARGUMENT',
      'queries.jsonl, line 1',
    ],
    [
      'a query without an id',
      { 'queries.jsonl': '{"text": "one"}' },
      'FINCH_INVALID_ARGUMENT',
      'line 1: id is missing',
    ],
    [
      'a query with a number as id',
      { 'queries.jsonl': '{"id": 7, "text": "one"}' },
      'FINCH_INVALID_ARGUMENT',
      'the number 7',
    ],
    [
      'a query without text',
      { 'queries.jsonl': '{"id": "q1", "text": " "}' },
      'FINCH_INVALID_ARGUMENT',
      'line 1: text is',
    ],
    [
      'a kind that is no string',
      { 'queries.jsonl': '{"id": "q1", "text": "x", "kind": 1}' },
      'FINCH_INVALID_ARGUMENT',
      'line 1: kind is',
    ],
    [
      'a query twice',
      { 'queries.jsonl': sound['queries.jsonl'] + query },
      'FINCH_DUPLICATE_ID',
      'line 4: the query id',
    ],
    [
      'one column in qrels',
      { 'qrels.tsv': 'q1\ta\nq2 a\n' },
      'FINCH_INVALID_ARGUMENT',
      'qrels.tsv, line 2: found one column',
    ],
    [
      'four columns in qrels',
      { 'qrels.tsv': 'q1\t0\ta\t1\n' },
      'FINCH_INVALID_ARGUMENT',
      'qrels.tsv, line 1: found 4 columns',
    ],
    [
      'a header in qrels',
      { 'qrels.tsv': 'query\ttool\nq1\ta\n' },
      'FINCH_UNKNOWN_ID',
      'no header line',
    ],
    [
      'an unknown query in qrels',
      { 'qrels.tsv': 'q1\ta\nq9\ta\n' },
      'FINCH_UNKNOWN_ID',
      "qrels.tsv, line 2: there is no query 'q9'",
    ],
    ['an unknown tool in qrels', { 'qrels.tsv': 'q1\tA\n' }, 'FINCH_UNKNOWN_ID', "no tool 'A'"],
    [
      'a pair twice in qrels',
      { 'qrels.tsv': 'q1\ta\nq1\ta\t2\n' },
      'FINCH_DUPLICATE_ID',
      'line 2: the pair',
    ],
    ['a relevance in words', { 'qrels.tsv': 'q1\ta\thigh\n' }, 'FINCH_INVALID_ARGUMENT', "'high'"],
    [
      'a negative relevance',
      { 'qrels.tsv': 'q1\ta\t-1\n' },
      'FINCH_INVALID_ARGUMENT',
      'from 0 to 32',
    ],
    [
      'a relevance too large',
      { 'qrels.tsv': 'q1\ta\t33\n' },
      'FINCH_INVALID_ARGUMENT',
      'from 0 to 32',
    ],
    [
      'an empty relevance',
      { 'qrels.tsv': 'q1\ta\t\n' },
      'FINCH_INVALID_ARGUMENT',
      'qrels.tsv, line 1: the relevance',
    ],
    [
      'a tool for a query of kind none',
      { 'qrels.tsv': 'q3\ta\n' },
      'FINCH_INVALID_ARGUMENT',
      'kind none',
    ],
    [
      'an unknown query in splits',
      { 'splits.tsv': `${sound['splits.tsv']}q4\ttest\n` },
      'FINCH_UNKNOWN_ID',
      'splits.tsv, line 4',
    ],
    [
      'a query twice in splits',
      { 'splits.tsv': 'q1\ttest\nq1\ttrain\n' },
      'FINCH_DUPLICATE_ID',
      'splits.tsv, line 2',
    ],
    ['an empty split', { 'splits.tsv': 'q1\t\n' }, 'FINCH_INVALID_ARGUMENT', 'splits.tsv, line 1'],
    [
      'a query without a split',
      { 'splits.tsv': 'q1\ttest\nq3\ttest\n' },
      'FINCH_INVALID_ARGUMENT',
      "no line for the query 'q2'",
    ],
    [
      'bytes that are not UTF-8',
      { 'qrels.tsv': Uint8Array.of(0x71, 0xff, 0x0a) },
      'FINCH_INVALID_ARGUMENT',
      'not UTF-8',
    ],
  ];
  it.each(cases)('%s', async (_, changes, code, part) => {
    const error: unknown = await loadDataset(await write(changes)).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(FinchError);
    expect(error).toMatchObject({ code });
    expect((error as FinchError).message).toContain(part);
  });

  it('a folder that is not there, a file as a folder, a folder as a file', async () => {
    const refused = { code: 'FINCH_IO' };
    await expect(loadDataset(join(folder, 'absent'))).rejects.toMatchObject(refused);
    await expect(loadDataset(join(demo, 'tools.json'))).rejects.toMatchObject(refused);
    await write({ 'qrels.tsv': null });
    await mkdir(join(folder, 'qrels.tsv'));
    await expect(loadDataset(folder)).rejects.toMatchObject(refused);
  });
});

/** Tools, training queries, test queries of the public sets, where a folder of TOOLFINCH_DATA has the name of one. */
const counts: Record<string, [number, number, number]> = {
  apibank: [71, 0, 261],
  bfcl: [1990, 0, 3232],
  livemcpbench: [527, 0, 94],
  livemcpbench_xl: [14408, 0, 94],
  mcptoolbenchpp: [62, 0, 706],
  metatool: [199, 16426, 4615],
  sealtools: [4076, 700, 1354],
  toolalpaca: [1507, 0, 209],
  toolbench_g1: [4605, 0, 600],
  toollens: [464, 16893, 1877],
};

describe('every labelled folder', () => {
  const root = process.env.TOOLFINCH_DATA ?? join(demo, '..');
  const folders = readdirSync(root, { withFileTypes: true })
    .map((entry) => join(root, entry.name))
    .filter((path) => existsSync(join(path, 'queries.jsonl')));

  it('is found', () => {
    expect(folders.length).toBeGreaterThan(0);
  });

  it.each(folders)('%s holds what its files hold', async (path) => {
    const dataset = await loadDataset(path);
    const lines = (name: string): number =>
      readFileSync(join(path, name), 'utf8')
        .split('\n')
        .filter((line) => line.trim() !== '').length;
    const all = [...dataset.queries, ...dataset.unanswerable];
    expect(all.length).toBe(lines('queries.jsonl'));
    expect(all.reduce((sum, { gold }) => sum + gold.size, 0)).toBe(lines('qrels.tsv'));
    if (existsSync(join(path, 'tools.jsonl')))
      expect(dataset.tools.length).toBe(lines('tools.jsonl'));
    const known = counts[basename(path)];
    if (known !== undefined) {
      const inSplit = (name: string): number => all.filter(({ split }) => split === name).length;
      expect([dataset.tools.length, inSplit('train'), inSplit('test')]).toEqual(known);
    }
  });
});
