import { describe, expect, it } from 'vitest';
import { LocalRefs } from '../../lib/catalog/importers/local-refs.js';
import { importTools } from '../../lib/catalog/index.js';
import { fixture } from './fixture.js';

describe('OpenAPI', () => {
  const text = fixture('openapi.json');
  const { tools, warnings } = importTools(text, { origin: 'library' });
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const properties = (name: string): Record<string, Record<string, unknown>> =>
    byName.get(name)?.parameters?.properties as Record<string, Record<string, unknown>>;

  it('makes one tool of each operation, named by operationId or method and path', () => {
    expect(tools.map((tool) => [tool.id, tool.endpoint])).toEqual([
      ['getBook', 'GET /books/{bookId}'],
      ['replaceBook', 'PUT /books/{bookId}'],
      ['POST /books', 'POST /books'],
      ['bulkChange', 'PATCH /books'],
      ['shared', 'GET /shared'],
    ]);
    expect(byName.get('getBook')).toMatchObject({
      title: 'Get a book',
      description: 'Returns one book with its author.',
      group: 'books',
      groupDescription: 'Everything on the shelves.',
      tags: ['books', 'read'],
    });
    expect(byName.get('replaceBook')).toMatchObject({
      description: 'Replace a book',
      deprecated: true,
    });
    const prefixed = importTools(text, { group: 'lib' }).tools[0];
    expect(prefixed).toMatchObject({ id: 'lib/getBook', name: 'getBook', group: 'lib' });
  });

  it('merges the parameters of path, path item and operation', () => {
    expect(byName.get('getBook')?.parameters).toEqual({
      type: 'object',
      properties: {
        bookId: { type: 'string', format: 'uuid' },
        lang: { type: 'string', enum: ['en', 'de'], description: 'Language of this answer' },
        filter: { type: 'object', properties: { deep: { type: 'string' } } },
        'X-Trace': { type: 'string' },
      },
      required: ['bookId'],
    });
  });

  it('flattens a request body, keeping names apart', () => {
    expect(Object.keys(properties('replaceBook'))).toEqual([
      'bookId',
      'lang',
      'title',
      'body.bookId',
      'author',
    ]);
    expect(byName.get('replaceBook')?.parameters?.required).toEqual(['bookId', 'title']);
    expect(Object.keys(properties('POST /books'))).toEqual(['title', 'bookId', 'author', 'copies']);
    expect(byName.get('POST /books')?.parameters?.required).toEqual(['title', 'copies']);
    expect(properties('bulkChange').body).toMatchObject({
      type: 'array',
      description: 'A list of changes',
    });
  });

  it('ends where references run in a circle and reports those that lead outside', () => {
    const author = properties('replaceBook').author;
    expect(author).toMatchObject({
      title: 'Author',
      properties: { books: { items: { type: 'object' } } },
    });
    expect(JSON.stringify(author)).not.toContain('$ref');
    expect(warnings).toEqual([expect.stringContaining('other.json#/Change')]);
  });

  it('gives the exact bytes of each operation from JSON', () => {
    for (const tool of tools) expect(text).toContain(tool.definition);
    expect(byName.get('shared')?.definition).toBe(
      '{ "operationId": "shared", "description": "Lives in components.", "responses": {} }',
    );
    expect(JSON.parse(byName.get('getBook')?.definition ?? '')).toEqual(
      JSON.parse(text).paths['/books/{bookId}'].get,
    );
  });

  it('reads YAML, where the definition is JSON of the operation', () => {
    const lamp = importTools(fixture('openapi.yaml'));
    expect(lamp.format).toBe('openapi');
    expect(lamp.tools.map((tool) => tool.name)).toEqual(['setLampState', 'GET /lamps']);
    expect(lamp.tools[0]?.parameters).toEqual({
      type: 'object',
      properties: {
        id: { type: 'string' },
        on: { type: 'boolean' },
        brightness: { type: 'integer', minimum: 0, maximum: 100 },
      },
      required: ['id', 'on'],
    });
    expect(JSON.parse(lamp.tools[0]?.definition ?? '').responses).toEqual({
      200: { description: 'done' },
    });
  });

  it('bounds references that multiply, nest or chain', () => {
    const schemas: Record<string, unknown> = { s0: { type: 'string' } };
    for (let i = 1; i <= 40; i += 1) {
      const ref = { $ref: `#/s/s${i - 1}` };
      schemas[`s${i}`] = { type: 'object', properties: { a: ref, b: ref, c: ref } };
    }
    for (let i = 0; i < 5000; i += 1) schemas[`c${i}`] = { $ref: `#/s/c${i + 1}` };
    schemas.loop = { $ref: '#/s/pool' };
    schemas.pool = { $ref: '#/s/loop' };
    schemas['a/b~c d'] = { type: 'integer' };
    const refs = new LocalRefs({ s: schemas });
    const limits = { maxDepth: 50, maxNodes: 2000 };
    const blown = refs.inline({ $ref: '#/s/s40' }, limits);
    expect(JSON.stringify(blown).length).toBeLessThan(200_000);
    expect(refs.inline({ $ref: '#/s/c0' }, limits)).toEqual({});
    expect(refs.follow({ $ref: '#/s/loop' })).toBeUndefined();
    expect(refs.inline({ $ref: '#/s/loop' }, limits)).toEqual({});
    expect(refs.inline({ $ref: '#/s/a~1b~0c%20d' }, limits)).toEqual({ type: 'integer' });
    expect(refs.inline({ $ref: '#/s/s0', description: 'wins' }, limits)).toEqual({
      type: 'string',
      description: 'wins',
    });
    expect(refs.follow({ $ref: '#/s/constructor' })).toBeUndefined();
    expect(refs.follow({ $ref: '#/s/%ZZ' })).toBeUndefined();
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 100_000; i += 1) deep = { items: deep };
    expect(JSON.stringify(refs.inline(deep, limits)).length).toBeLessThan(1000);
  });
});
