import { describe, expect, it } from 'vitest';
import { defineTool, mergeTools, type ToolInput } from '../../lib/catalog/index.js';
import { refused } from './fixture.js';

const good = { name: 'set_alarm', description: 'Sets an alarm.' } as const;

describe('defineTool', () => {
  it('keeps what it is given and writes the definition down', () => {
    const given: ToolInput = {
      id: 'clock/set_alarm',
      ...good,
      title: 'Set an alarm',
      group: 'clock',
      groupDescription: 'Alarms and timers',
      source: 'langchain',
      official: true,
      tags: ['time'],
      parameters: { type: 'object', properties: { at: { type: 'string' } } },
      deprecated: true,
      version: 'v1',
      reliability: { uses: 10, successRate: 0.5 },
    };
    const tool = defineTool(given);
    expect(tool).toEqual({ ...given, definition: JSON.stringify(given) });
    expect(Object.isFrozen(tool)).toBe(true);
    expect(defineTool(tool)).toEqual(tool);
  });

  it('takes a raw definition, a JSON text, and the shapes of the field', () => {
    expect(defineTool({ ...good, definition: '{ "raw" : 1 }' }).definition).toBe('{ "raw" : 1 }');
    const text = '{ "name":"a",  "inputSchema":{"type":"object"} }';
    expect(defineTool(text).definition).toBe(text);
    const mcp = { name: 'a', inputSchema: { type: 'object' } };
    expect(defineTool(mcp, { group: 'files' })).toMatchObject({ id: 'files/a', group: 'files' });
    const openai = { type: 'function', function: { name: 'b', parameters: { type: 'object' } } };
    expect(defineTool(openai)).toMatchObject({ id: 'b', definition: JSON.stringify(openai) });
    expect(defineTool({ type: 'function', name: 'c', parameters: {} }).name).toBe('c');
    expect(defineTool({ name: 'd', input_schema: true }).parameters).toEqual({});
  });

  it('reads a map of parameters, even with names that mean something elsewhere', () => {
    const parameters = JSON.parse(
      '{"type":{"type":"string","required":true},"properties":{"type":"string","description":"p"},"__proto__":"odd","constructor":{"type":"int"}}',
    ) as Record<string, unknown>;
    const schema = defineTool({ ...good, parameters }).parameters;
    expect(Object.keys(schema?.properties as object)).toEqual([
      'type',
      'properties',
      '__proto__',
      'constructor',
    ]);
    expect(schema?.required).toEqual(['type']);
  });

  it('counts bytes of UTF-8 in ids, not characters', () => {
    expect(defineTool({ ...good, id: '😀'.repeat(1024) }).id).toHaveLength(2048);
    refused(
      () => defineTool({ ...good, id: `${'😀'.repeat(1024)}a` }),
      'FINCH_INVALID_ARGUMENT',
      '4097',
    );
  });

  const cyclic: Record<string, unknown> = { ...good };
  cyclic.self = cyclic;
  const bad: [string, unknown, string][] = [
    ['no object', 7, 'the number 7'],
    ['null', null, 'null'],
    ['an array', [good], 'an array'],
    ['a text that is no JSON', '{"name":', 'not JSON'],
    ['a text of another value', '"name"', 'the string'],
    ['no name', { description: 'x' }, 'name is missing'],
    ['an empty name', { ...good, name: '' }, 'name is empty'],
    ['a name of another type', { ...good, name: 3 }, 'name is the number 3'],
    ['an empty id', { ...good, id: '' }, 'id is empty'],
    ['an id of another type', { ...good, id: 5 }, 'id is the number 5'],
    ['half a surrogate in the id', { ...good, id: 'a\ud800' }, 'surrogate'],
    ['half a surrogate in the name', { ...good, name: '\udc00' }, 'surrogate'],
    ['a name too long', { ...good, name: 'n'.repeat(4097) }, '4097'],
    [
      'a description of another type',
      { ...good, description: {} },
      'description is an empty object',
    ],
    ['a title of another type', { ...good, title: 1 }, 'title'],
    ['a group of another type', { ...good, group: [] }, 'group is an empty array'],
    ['tags that are no array', { ...good, tags: 'a,b' }, 'tags is the string'],
    ['a tag that is no string', { ...good, tags: ['a', 1] }, 'tags[1]'],
    ['a schema that is no object', { ...good, parameters: 'string' }, 'schema is the string'],
    ['the schema false', { name: 'a', inputSchema: false }, 'schema is the boolean false'],
    ['a parameter that is no object', { ...good, parameters: { a: 3 } }, 'parameters.a'],
    ['official of another type', { ...good, official: 'yes' }, 'official'],
    ['reliability of another type', { ...good, reliability: 0.9 }, 'reliability'],
    ['negative uses', { ...good, reliability: { uses: -1 } }, 'uses'],
    [
      'a success rate above 1',
      { ...good, reliability: { uses: 1, successRate: 97 } },
      'successRate',
    ],
    [
      'a NaN success rate',
      { ...good, reliability: { uses: 1, successRate: Number.NaN } },
      'successRate',
    ],
    ['a definition of another type', { ...good, definition: {} }, 'definition'],
    ['a cycle', cyclic, 'cannot be written as JSON'],
    ['a bigint', { ...good, extra: 1n }, 'cannot be written as JSON'],
    ['a hosted tool', { type: 'web_search' }, "model's provider"],
    ['an OpenAI function without a name', { type: 'function', function: {} }, 'name is missing'],
  ];
  for (const [what, given, part] of bad) {
    it(`refuses ${what}`, () => {
      refused(() => defineTool(given as object), 'FINCH_INVALID_ARGUMENT', part);
    });
  }
});

describe('mergeTools', () => {
  it('keeps order and names both sources of an id that occurs twice', () => {
    const [a, b] = [defineTool({ ...good, id: 'a' }), defineTool({ ...good, id: 'b' })];
    const merged = mergeTools([
      { origin: 'one.json', tools: [b] },
      { origin: 'two.json', tools: [a] },
    ]);
    expect(merged).toEqual([b, a]);
    refused(
      () =>
        mergeTools([
          { origin: 'one.json', tools: [a, b] },
          { origin: 'two.json', tools: [b] },
        ]),
      'FINCH_DUPLICATE_ID',
      "'b'",
      'one.json (tool 1)',
      'two.json (tool 0)',
      'group',
    );
    refused(() => mergeTools([{ origin: 'x', tools: [a, a] }]), 'FINCH_DUPLICATE_ID', 'twice in x');
  });
});
