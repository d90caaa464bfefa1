import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const folder = new URL('../../demo/phone-assistant/', import.meta.url);
const text = (file: string): string => readFileSync(new URL(file, folder), 'utf8');

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isStringList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

interface Tool {
  name: string;
  description: string;
  inputSchema: unknown;
  group: string;
}

interface Query {
  id: string;
  text: string;
  kind: string;
}

function readTools(): Tool[] {
  const root: unknown = JSON.parse(text('tools.json'));
  if (!isObject(root) || !Array.isArray(root.tools)) throw new Error('tools.json: no tools');
  return root.tools.map((tool: unknown, at) => {
    if (!isObject(tool)) throw new Error(`tools.json: tool ${at} is not an object`);
    const meta = tool._meta;
    return {
      name: String(tool.name),
      description: String(tool.description ?? ''),
      inputSchema: tool.inputSchema,
      group: isObject(meta) ? String(meta.group ?? '') : '',
    };
  });
}

function readQueries(): Query[] {
  return text('queries.jsonl')
    .trimEnd()
    .split('\n')
    .map((line) => {
      const query: unknown = JSON.parse(line);
      if (!isObject(query)) throw new Error(`queries.jsonl: not an object: ${line}`);
      return {
        id: String(query.id),
        text: String(query.text ?? ''),
        kind: String(query.kind),
      };
    });
}

function readPairs(file: string): [string, string][] {
  return text(file)
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [left, right, ...rest] = line.split('\t');
      if (!left || !right || rest.length > 0) throw new Error(`${file}: not two columns: ${line}`);
      return [left, right];
    });
}

const TYPES = new Set(['string', 'integer', 'number', 'boolean', 'array', 'object']);
const FORMATS = new Set(['date', 'date-time', 'time', 'email']);

function fits(value: unknown, type: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

/** Every fault of a schema, each with the path to it; empty when there is none. */
function faults(schema: unknown, path: string): string[] {
  if (!isObject(schema)) return [`${path}: not an object`];
  const found: string[] = [];
  const type = schema.type;
  if (typeof type !== 'string' || !TYPES.has(type)) found.push(`${path}: type ${String(type)}`);
  if ('description' in schema && !schema.description) found.push(`${path}: empty description`);
  if ('format' in schema && !FORMATS.has(String(schema.format))) found.push(`${path}: format`);

  const options = schema.enum;
  if (options !== undefined) {
    if (!Array.isArray(options) || options.length === 0) found.push(`${path}: enum`);
    else if (new Set(options).size !== options.length) found.push(`${path}: enum repeats`);
    else if (!options.every((option) => fits(option, type))) found.push(`${path}: enum type`);
  }
  const fallback = schema.default;
  if (fallback !== undefined) {
    if (!fits(fallback, type)) found.push(`${path}: default type`);
    if (Array.isArray(options) && !options.includes(fallback)) found.push(`${path}: default`);
    const { minimum, maximum } = schema;
    if (typeof fallback === 'number') {
      if (typeof minimum === 'number' && fallback < minimum) found.push(`${path}: default low`);
      if (typeof maximum === 'number' && fallback > maximum) found.push(`${path}: default high`);
    }
  }
  for (const [low, high] of [
    ['minimum', 'maximum'],
    ['minLength', 'maxLength'],
    ['minItems', 'maxItems'],
  ] as const) {
    const a = schema[low];
    const b = schema[high];
    if (typeof a === 'number' && typeof b === 'number' && a > b) found.push(`${path}: ${low}`);
  }

  if (type === 'array') found.push(...faults(schema.items, `${path}[]`));
  if (type === 'object') {
    const properties = schema.properties;
    const required = schema.required ?? [];
    if (!isObject(properties) || Object.keys(properties).length === 0) {
      found.push(`${path}: no properties`);
    } else {
      for (const [name, property] of Object.entries(properties)) {
        found.push(...faults(property, `${path}.${name}`));
      }
      if (!isStringList(required)) found.push(`${path}: required`);
      else {
        if (new Set(required).size !== required.length) found.push(`${path}: required repeats`);
        for (const name of required) {
          if (!(name in properties)) found.push(`${path}: required ${name} is no property`);
        }
      }
    }
  }
  return found;
}

const tools = readTools();
const queries = readQueries();
const qrels = readPairs('qrels.tsv');
const splits = readPairs('splits.tsv');
const names = new Set(tools.map((tool) => tool.name));
const gold = new Map<string, string[]>();
for (const [query, tool] of qrels) gold.set(query, [...(gold.get(query) ?? []), tool]);

describe('the phone assistant catalogue', () => {
  it('has 235 to 250 tools with unique snake_case names', () => {
    expect(tools.length).toBeGreaterThanOrEqual(235);
    expect(tools.length).toBeLessThanOrEqual(250);
    expect(names.size).toBe(tools.length);
    expect(tools.filter((tool) => !/^[a-z]+(_[a-z0-9]+)+$/.test(tool.name))).toEqual([]);
  });

  it('spans at least 22 groups, each with several tools', () => {
    const sizes = new Map<string, number>();
    for (const tool of tools) sizes.set(tool.group, (sizes.get(tool.group) ?? 0) + 1);
    expect(sizes.has('')).toBe(false);
    expect(sizes.size).toBeGreaterThanOrEqual(22);
    expect([...sizes].filter(([, size]) => size < 3)).toEqual([]);
  });

  it('describes every tool in words of its own', () => {
    expect(tools.filter((tool) => tool.description.trim().length < 15)).toEqual([]);
    expect(new Set(tools.map((tool) => tool.description)).size).toBe(tools.length);
  });

  it('gives every tool a sound input schema', () => {
    const found = tools.flatMap((tool) => {
      const root = tool.inputSchema;
      const type = isObject(root) ? root.type : undefined;
      return [
        ...(type === 'object' ? [] : [`${tool.name}: root type ${String(type)}`]),
        ...faults(root, tool.name),
      ];
    });
    expect(found).toEqual([]);
  });

  it('refers in descriptions only to tools and arguments that exist', () => {
    const unknown = tools.flatMap((tool) => {
      const root = tool.inputSchema;
      const own: Json = isObject(root) && isObject(root.properties) ? root.properties : {};
      const mentioned: string[] = tool.description.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [];
      return (
        mentioned
          .filter((word) => !names.has(word) && !Object.hasOwn(own, word))
          // A neighbour's argument may be named when the neighbour is named too.
          .filter((word) => {
            const neighbours = tools.filter((other) => mentioned.includes(other.name));
            return !neighbours.some((other) => JSON.stringify(other.inputSchema).includes(word));
          })
          .map((word) => `${tool.name}: ${word}`)
      );
    });
    expect(unknown).toEqual([]);
  });

  it('finds the faults it looks for', () => {
    expect(faults({ type: 'object' }, 't')).toEqual(['t: no properties']);
    expect(
      faults({ type: 'object', properties: { a: { type: 'text' } }, required: ['b'] }, 't'),
    ).toEqual(['t.a: type text', 't: required b is no property']);
    expect(faults({ type: 'array', items: { type: 'integer', default: 1.5 } }, 't')).toEqual([
      't[]: default type',
    ]);
    expect(faults({ type: 'string', enum: ['a', 'b'], default: 'c' }, 't')).toEqual(['t: default']);
  });
});

describe('the queries over it', () => {
  it('are 150, unique, of three kinds', () => {
    const count = (kind: string): number => queries.filter((query) => query.kind === kind).length;
    expect(queries.length).toBe(150);
    expect(new Set(queries.map((query) => query.id)).size).toBe(150);
    expect(new Set(queries.map((query) => query.text.toLowerCase())).size).toBe(150);
    expect(queries.filter((query) => query.text.trim().length < 8)).toEqual([]);
    expect([count('single'), count('multi'), count('none')]).toEqual([90, 35, 25]);
  });

  it('are judged with tools and queries that exist, none twice', () => {
    const ids = new Set(queries.map((query) => query.id));
    expect(qrels.filter(([query, tool]) => !ids.has(query) || !names.has(tool))).toEqual([]);
    expect(new Set(qrels.map((pair) => pair.join('\t'))).size).toBe(qrels.length);
  });

  it('have as many gold tools as their kind says', () => {
    const wrong = queries.filter((query) => {
      const size = gold.get(query.id)?.length ?? 0;
      if (query.kind === 'none') return size !== 0;
      if (query.kind === 'single') return size !== 1;
      return size < 2 || size > 4;
    });
    expect(wrong).toEqual([]);
  });

  it('have gold tools in every group', () => {
    const groupOf = new Map(tools.map((tool) => [tool.name, tool.group]));
    const reached = new Set(qrels.map(([, tool]) => groupOf.get(tool)));
    expect([...new Set(tools.map((tool) => tool.group))].filter((g) => !reached.has(g))).toEqual(
      [],
    );
  });

  it('never name their gold tool by its identifier', () => {
    const named = queries.filter((query) =>
      (gold.get(query.id) ?? []).some((tool) => query.text.includes(tool)),
    );
    expect(named).toEqual([]);
  });

  it('are each in one split, a third of every kind for training', () => {
    const split = new Map(splits);
    expect(splits.length).toBe(150);
    expect(queries.filter((query) => !split.has(query.id))).toEqual([]);
    expect([...new Set(split.values())].sort()).toEqual(['test', 'train']);
    for (const kind of ['single', 'multi', 'none']) {
      const own = queries.filter((query) => query.kind === kind);
      const train = own.filter((query) => split.get(query.id) === 'train').length;
      expect(Math.abs(train - own.length / 3)).toBeLessThan(1);
    }
  });
});

describe('the example task state', () => {
  it('has an instruction, actions of known tools and an observation', () => {
    const state: unknown = JSON.parse(text('state.json'));
    if (!isObject(state)) throw new Error('state.json: not an object');
    expect(Object.keys(state).sort()).toEqual(['actions', 'instruction', 'observation']);
    expect(state.instruction).toMatch(/\w/);
    expect(state.observation).toMatch(/\w/);
    const actions = state.actions;
    if (!isStringList(actions)) throw new Error('state.json: actions is not a list of strings');
    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((action) => !names.has(action.split('(')[0] ?? ''))).toEqual([]);
  });
});

describe('the README of the catalogue', () => {
  it('states the counts that the files have', () => {
    const readme = text('README.md');
    const rows = [...readme.matchAll(/^\| `([a-z_]+)` \| (\d+) \| (\d+) \|$/gm)];
    const groupOf = new Map(tools.map((tool) => [tool.name, tool.group]));
    const stated = rows.map(([, group, size, asked]) => [group, Number(size), Number(asked)]);
    const actual = [...new Set(tools.map((tool) => tool.group))].map((group) => [
      group,
      tools.filter((tool) => tool.group === group).length,
      new Set(qrels.filter(([, tool]) => groupOf.get(tool) === group).map(([id]) => id)).size,
    ]);
    expect(stated).toEqual(actual);
    expect(readme).toContain(`${tools.length} tools in ${actual.length} groups`);
    expect(readme).toContain(
      `${qrels.length} judgements on ${new Set(qrels.map(([, tool]) => tool)).size} different`,
    );
  });
});
