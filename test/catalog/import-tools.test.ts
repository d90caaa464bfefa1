import { describe, expect, it } from 'vitest';
import { detectFormat, type ImportOptions, importTools } from '../../lib/catalog/index.js';
import { fixture, refused } from './fixture.js';

describe('importTools', () => {
  it('reads a saved tools/list and keeps every byte of each tool', () => {
    const text = fixture('mcp-tools-list.json');
    const { tools, format, warnings } = importTools(text);
    expect([format, warnings]).toEqual(['mcp', []]);
    expect(tools.map((tool) => tool.id)).toEqual(['read_note', 'searchNotes', 'delete.note']);
    expect(tools.map((tool) => tool.title)).toEqual(['Read a note', undefined, 'Delete a note']);
    expect(tools.map((tool) => tool.group)).toEqual([undefined, 'search', undefined]);
    expect(tools[1]).toMatchObject({ description: '', tags: ['find', 'text'] });
    let at = 0;
    for (const tool of tools) {
      const found = text.indexOf(tool.definition, at);
      expect(found).toBeGreaterThan(at);
      at = found + tool.definition.length;
      expect(JSON.parse(tool.definition).name).toBe(tool.name);
    }
    expect(tools[1]?.definition).toMatch(/"maximum": ?1e2/);
    expect(tools[2]?.definition).toMatch(/"vendorField": ?\[1\.0, ?2(e0)?, ?"\\\\"\]/);
    expect(tools[2]?.definition).toContain('\\ud83d\\uddd1\\ufe0f 🗑️');
  });

  it('keeps bytes that no formatter would write', () => {
    const given = [
      '{ "name" :"a" ,\r\n\t"inputSchema":{"maximum":1.0e2 ,"x":"}]\\"\\\\"}}',
      '{"description":"\\u00e9\\ud83d\\ude00 😀 \u2028","name":"\\u0062","inputSchema":{},"inputSchema":{"type":"object"}}',
    ];
    const text = `\uFEFF{ "tools" :[0], "to\\u006fls" : [\n${given.join(' ,\n\n')} ] }\n`;
    const { tools } = importTools(new TextEncoder().encode(text));
    expect(tools.map((tool) => tool.definition)).toEqual(given);
    expect(tools.map((tool) => tool.name)).toEqual(['a', 'b']);
    expect(tools[1]?.parameters).toEqual({ type: 'object' });
  });

  it('gives ids and groups a namespace when asked', () => {
    const { tools } = importTools(fixture('mcp-tools-list.json'), {
      group: 'notes',
      source: 'official',
    });
    expect(tools[1]).toMatchObject({
      id: 'notes/searchNotes',
      name: 'searchNotes',
      group: 'notes',
      source: 'official',
      tags: ['search', 'find', 'text'],
    });
  });

  it('reads a JSON-RPC response and several pages', () => {
    const response = importTools(fixture('mcp-jsonrpc.json'));
    expect([response.format, response.tools.length]).toEqual(['mcp', 2]);
    const pages = importTools(fixture('mcp-pages.json'));
    expect(pages.tools.map((tool) => tool.name)).toEqual(['first', 'second', 'third']);
    expect(pages.warnings).toEqual([]);
    const cut = importTools('{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"x"}');
    expect(cut.warnings.join()).toContain('nextCursor');
  });

  it('reads both forms of OpenAI tools, wrapper kept', () => {
    const nested = importTools(fixture('openai-nested.json'));
    expect(nested.format).toBe('openai');
    expect(nested.tools.map((tool) => tool.name)).toEqual(['book_table', 'ping', 'run_sql']);
    expect(nested.tools[0]?.definition).toMatch(
      /^\{\s*"type": ?"function",\s*"function": ?\{[\s\S]*"strict": ?true\s*\}\s*\}$/,
    );
    expect(nested.tools[0]?.parameters).toMatchObject({ required: ['restaurant'] });
    const flat = importTools(fixture('openai-flat.json'), { group: 'eat' });
    expect(flat.tools.map((tool) => tool.id)).toEqual(['eat/book_table', 'eat/patch']);
    expect(flat.warnings.join()).toContain('web_search');
  });

  it('reads Anthropic tools', () => {
    const { format, tools, warnings } = importTools(fixture('anthropic.json'));
    expect(format).toBe('anthropic');
    expect(tools.map((tool) => tool.name)).toEqual(['lookup_order', 'refund']);
    expect(tools[0]?.definition).toContain('"cache_control"');
    expect(warnings).toHaveLength(1);
  });

  it('reads lines of any shape', () => {
    const text = fixture('records.jsonl');
    const { format, tools, warnings } = importTools(text, { origin: 'r.jsonl' });
    expect(format).toBe('jsonl');
    expect(tools.map((tool) => tool.id)).toEqual([
      'exchange/convert',
      '42',
      'plain',
      'nested_in_lines',
      'paged_in_lines',
    ]);
    expect(tools[0]).toMatchObject({
      group: 'exchange',
      source: 'exchange',
      reliability: { uses: 120, successRate: 0.97 },
    });
    expect(tools[0]?.parameters?.required).toEqual(['from']);
    expect(tools[1]).toMatchObject({
      official: true,
      groupDescription: 'Food facts.',
      reliability: { uses: 3 },
    });
    expect(tools[1]?.reliability).not.toHaveProperty('successRate');
    expect(tools[2]?.version).toBe('v7');
    expect(warnings.join()).toContain('line 6');
    const lines = text.split('\n').map((line) => line.trim());
    for (const tool of tools.slice(0, 4)) expect(lines).toContain(tool.definition);
  });

  it('writes tools out and reads the same tools again', () => {
    const tools = [
      ...importTools(fixture('records.jsonl')).tools,
      ...importTools(fixture('openapi.json'), { group: 'lib' }).tools,
    ];
    const again = importTools(tools.map((tool) => JSON.stringify(tool)).join('\n'));
    expect(again.tools).toEqual(tools);
  });

  it('takes bytes, byte order marks, CRLF and a single tool', () => {
    const bytes = new TextEncoder().encode(`\uFEFF${fixture('mcp-jsonrpc.json')}`);
    expect(importTools(bytes).tools).toHaveLength(2);
    expect(importTools(`\uFEFF${fixture('mcp-jsonrpc.json')}`).tools).toHaveLength(2);
    const lines = fixture('records.jsonl').replaceAll('\n', '\r\n');
    expect(importTools(lines).tools[0]?.definition).not.toContain('\r');
    const one = ' {"name":"a","description":"one tool alone"}\n';
    expect(importTools(one).tools[0]?.definition).toBe(one.trim());
    expect(importTools(one, { format: 'jsonl' }).format).toBe('jsonl');
  });

  it('tells formats apart', () => {
    const expected = {
      'mcp-tools-list.json': 'mcp',
      'mcp-pages.json': 'mcp',
      'openai-nested.json': 'openai',
      'openai-flat.json': 'openai',
      'anthropic.json': 'anthropic',
      'records.jsonl': 'jsonl',
      'openapi.json': 'openapi',
      'openapi.yaml': 'openapi',
    };
    for (const [name, format] of Object.entries(expected)) {
      expect([name, detectFormat(fixture(name))]).toEqual([name, format]);
      expect(importTools(fixture(name), { format: format as 'mcp' }).tools.length).toBeGreaterThan(
        0,
      );
    }
    expect(detectFormat('---\n# a comment\n"openapi": 3.0.0\npaths: {}\n')).toBe('openapi');
    expect(detectFormat('[{"id":"1","name":"a","parameters":{}}]')).toBe('record');
  });

  it('takes no tools for an answer only when told so', () => {
    for (const text of ['{"tools":[]}', '[]', '{"openapi":"3.1.0","paths":{}}']) {
      refused(
        () => importTools(text, { origin: 'e.json' }),
        'FINCH_INVALID_ARGUMENT',
        'e.json',
        'no tools',
        'allowEmpty',
      );
      expect(importTools(text, { allowEmpty: true }).tools).toEqual([]);
    }
    refused(() => importTools('[{"type":"web_search"}]'), 'FINCH_INVALID_ARGUMENT', 'web_search');
  });

  it('names both places of an id that occurs twice', () => {
    const text =
      '[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{}},{"name":"a","inputSchema":{}}]';
    refused(
      () => importTools(text, { origin: 't.json' }),
      'FINCH_DUPLICATE_ID',
      "'a'",
      't.json',
      '0 and 2',
    );
  });

  const bad: [string, string | Uint8Array, ImportOptions, string[]][] = [
    ['an empty text', '', {}, ['empty']],
    ['white space only', ' \n\t', {}, ['empty']],
    ['prose', 'Dear tools,', {}, ['Dear tools', 'Known shapes']],
    ['a number', '12', {}, ['the number 12']],
    ['null', 'null', {}, ['null']],
    ['a string', '"tools"', {}, ["the string 'tools'"]],
    ['broken JSON', '{"tools": [\n  {"name": "a",}\n]}', {}, ['does not parse', 'line 2']],
    ['JSON cut short', '{"tools": [{"name": "a"', {}, ['does not parse']],
    ['a broken line', '{"name":"a","id":"1"}\n{"name":', {}, ['line 2', 'does not parse']],
    ['a line that is no tool', '{"name":"a","id":"1"}\n[1]', {}, ['line 2[0]', 'the number 1']],
    ['an unknown object', '{"foo": 1, "bar": 2}', {}, ["'foo', 'bar'", 'Known shapes']],
    ['tools that are no array', '{"tools": {"a": {}}}', {}, ["'tools' is an object"]],
    [
      'a tool without a name',
      '{"tools":[{"inputSchema":{}}]}',
      {},
      ['tools[0]', 'name is missing'],
    ],
    ['a name without anything', '[{"name":"a"}]', {}, ["beside its 'name'"]],
    [
      'an element that is no tool',
      '{"tools":[{"name":"a","inputSchema":{}},null]}',
      {},
      ['tools[1]', 'null'],
    ],
    ['a bad schema', '{"tools":[{"name":"a","inputSchema":"x"}]}', {}, ["('a')", 'schema']],
    ['a server configuration', '{"mcpServers":{"a":{"command":"x"}}}', {}, ['readMcpConfig']],
    [
      'an error response',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
      {},
      ['-32601', "'no'"],
    ],
    ['another JSON-RPC message', '{"jsonrpc":"2.0","id":1,"result":{}}', {}, ['tools/list']],
    [
      'an error response among lines',
      '{"id":"1","name":"a"}\n{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}',
      {},
      ['line 2'],
    ],
    ['Swagger 2', '{"swagger":"2.0","paths":{}}', {}, ['Swagger 2.0', 'convert']],
    ['Swagger 2 in YAML', 'swagger: "2.0"\npaths: {}\n', {}, ['YAML']],
    ['OpenAPI 4', '{"openapi":"4.0.0","paths":{}}', {}, ["'4.0.0'", '3.0 or 3.1']],
    ['OpenAPI of no version', '{"openapi":3.1,"paths":{}}', {}, ['3.1']],
    ['paths that are no object', '{"openapi":"3.1.0","paths":[]}', {}, ['paths']],
    [
      'a path item that is no object',
      '{"openapi":"3.1.0","paths":{"/a":3}}',
      {},
      ['/a', 'path item'],
    ],
    [
      'an operation that is no object',
      '{"openapi":"3.1.0","paths":{"/a":{"get":true}}}',
      {},
      ['GET /a'],
    ],
    [
      'parameters that are no array',
      '{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":{}}}}}',
      {},
      ['parameters'],
    ],
    [
      'a parameter without a place',
      '{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":[{"name":"x"}]}}}}',
      {},
      ["'in'"],
    ],
    ['broken YAML', 'openapi: 3.0.0\npaths: {a: [}\n', {}, ['YAML does not parse']],
    [
      'a YAML bomb',
      `openapi: 3.0.0\na: &a [1,1,1,1,1,1,1,1,1,1]\n${Array.from({ length: 8 }, (_, i) => `${'bcdefghi'[i]}: &${'bcdefghi'[i]} [${Array(10).fill(`*${'abcdefgh'[i]}`).join(',')}]`).join('\n')}\n`,
      {},
      ['YAML does not parse'],
    ],
    ['bytes that are no UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), {}, ['UTF-8']],
    ['UTF-16', new Uint8Array([0xff, 0xfe, 0x7b, 0x00]), {}, ['UTF-8']],
    ['no text', 5 as unknown as string, {}, ['the number 5']],
    ['an unknown format', '[]', { format: 'xml' as 'mcp' }, ["'xml'", 'anthropic']],
    ['an empty group', '[]', { group: '' }, ['group']],
    [
      'another format than asked for',
      '[{"name":"a","input_schema":{}}]',
      { format: 'mcp' },
      ['anthropic', 'mcp'],
    ],
    ['a list where OpenAPI was asked for', '[]', { format: 'openapi' }, ['openapi']],
    [
      'OpenAPI where MCP was asked for',
      '{"openapi":"3.1.0","paths":{}}',
      { format: 'mcp' },
      ['mcp'],
    ],
  ];
  for (const [what, text, options, parts] of bad) {
    it(`refuses ${what}`, () => {
      refused(() => importTools(text, options), 'FINCH_INVALID_ARGUMENT', ...parts);
    });
  }
});
