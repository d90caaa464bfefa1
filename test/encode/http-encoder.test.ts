import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpEncoder, type HttpEncoderOptions } from '../../lib/encode/http-encoder.js';
import { type Behaviour, EmbeddingServer, reply, sendJson } from './embedding-server.js';
import { expectCode } from './expect-code.js';
import { vectorOf } from './fake-encoder.js';

const key = 'sk-very-secret-key';
let server: EmbeddingServer;

beforeEach(async () => {
  server = await EmbeddingServer.start();
});
afterEach(() => server[Symbol.asyncDispose]());

function open(more: Partial<HttpEncoderOptions> = {}): Promise<HttpEncoder> {
  const model = 'text-model';
  return HttpEncoder.open({ baseUrl: server.url, model, dimension: 8, backoffMs: 5, ...more });
}

function expectRows(rows: Float32Array, texts: readonly string[], dimension = 8): void {
  expect(rows.length).toBe(texts.length * dimension);
  for (const [i, text] of texts.entries()) {
    const row = vectorOf(text, dimension);
    for (let j = 0; j < dimension; j++) expect(rows[i * dimension + j]).toBeCloseTo(row[j] ?? 0, 6);
  }
}

const status =
  (code: number, body = 'busy', headers: Record<string, string> = {}): Behaviour =>
  (_, response) => {
    response.writeHead(code, headers);
    response.end(body);
  };

const hang: Behaviour = () => new Promise(() => undefined);

describe('a well-behaved endpoint', () => {
  it('gets batches within their limits, and gives unit rows in order', async () => {
    const encoder = await open({ batchSize: 3, apiKey: key, headers: { 'x-team': 'birds' } });
    const texts = Array.from({ length: 10 }, (_, i) => `text ${i}`);
    const rows = await encoder.encode(texts);
    expectRows(rows, texts);
    for (let i = 0; i < texts.length; i++) {
      let square = 0;
      for (const value of rows.subarray(i * 8, i * 8 + 8)) square += value * value;
      expect(square).toBeCloseTo(1, 5);
    }
    expect(server.requests.map(({ body }) => body.input.length).sort()).toEqual([1, 3, 3, 3]);
    const [first] = server.requests;
    expect(first?.path).toBe('/v1/embeddings');
    expect(first?.headers.authorization).toBe(`Bearer ${key}`);
    expect(first?.headers['x-team']).toBe('birds');
    expect(first?.body).toMatchObject({ model: 'text-model' });
    expect(await encoder.encode([])).toEqual(new Float32Array(0));
  });

  it('gets batches within the limit of characters, a longer text alone', async () => {
    const encoder = await open({ batchCharacters: 10, maxConcurrency: 1 });
    const texts = ['aaaa', 'bbbb', 'cccc', 'd'.repeat(50), 'e'];
    expectRows(await encoder.encode(texts), texts);
    expect(server.requests.map(({ body }) => body.input)).toEqual([
      ['aaaa', 'bbbb'],
      ['cccc'],
      ['d'.repeat(50)],
      ['e'],
    ]);
  });

  it('is never asked more than maxConcurrency things at once, over all calls', async () => {
    // The first answer waits for the third question.
    let three: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      three = resolve;
    });
    server.always = async (request, response) => {
      if (server.requests.length >= 3) three();
      await asked;
      await new Promise((resolve) => setTimeout(resolve, 5));
      sendJson(response, reply(request));
    };
    const encoder = await open({ batchSize: 1, maxConcurrency: 3 });
    const calls = Array.from({ length: 6 }, (_, i) =>
      encoder.encode(Array.from({ length: 5 }, (_, j) => `${i}-${j}`)),
    );
    await Promise.all(calls);
    expect(server.requests).toHaveLength(30);
    expect(server.mostConcurrent).toBe(3);
  });

  it('teaches its dimension when none was given', async () => {
    await using encoder = await HttpEncoder.open({ baseUrl: `${server.url}/v1`, model: 'm' });
    expect(encoder.dimension).toBe(8);
    expect(encoder.model).toBe(`m@${new URL(server.url).host}`);
    expect(server.requests).toHaveLength(1);
  });

  it('is asked for a dimension and a format when told so', async () => {
    server.always = (request, response) => sendJson(response, reply(request, 4));
    const dimensions = { dimension: undefined, dimensions: 4 } as const;
    const encoder = await open({ ...dimensions, encodingFormat: 'base64', revision: '7' });
    expectRows(await encoder.encode(['a', 'b']), ['a', 'b'], 4);
    expect(server.requests[0]?.body).toMatchObject({ dimensions: 4, encoding_format: 'base64' });
    expect(encoder.model).toBe('text-model@7');
  });

  it.each([
    ['', '/v1/embeddings'],
    ['/', '/v1/embeddings'],
    ['/v1', '/v1/embeddings'],
    ['/v1/', '/v1/embeddings'],
    ['/api/embeddings', '/api/embeddings'],
    ['/deploy/embeddings?api-version=2', '/deploy/embeddings?api-version=2'],
  ])('at %j is asked at %s', async (path, asked) => {
    const encoder = await open({ baseUrl: server.url + path });
    await encoder.encode(['a']);
    expect(server.requests[0]?.path).toBe(asked);
  });

  it('sees the prefixes of queries and tools', async () => {
    const encoder = await open({ queryPrefix: 'query: ', toolPrefix: 'tool: ' });
    await encoder.encode(['a']);
    await encoder.encode(['a'], { kind: 'tool' });
    expect(server.requests.map(({ body }) => body.input[0])).toEqual(['query: a', 'tool: a']);
  });
});

describe('an endpoint that recovers', () => {
  it.each([
    ['a 500', [status(500)]],
    ['a 503, then a 429', [status(503), status(429)]],
    ['a 408', [status(408)]],
    ['a connection reset', [(_, __, socket) => void socket.resetAndDestroy()]],
    [
      'a body broken off',
      [
        (request, response, socket) => {
          response.writeHead(200, { 'content-length': '100000' });
          response.write(JSON.stringify(reply(request)).slice(0, 100), () => socket.destroy());
        },
      ],
    ],
    [
      'a body cut short',
      [(request, response) => void response.end(JSON.stringify(reply(request)).slice(0, -20))],
    ],
    ['an HTML page with status 200', [(_, response) => void response.end('<html>hello</html>')]],
    ['a 200 without a body', [(_, response) => void response.end()]],
  ] as Array<[string, Behaviour[]]>)('is asked again after %s', async (_, script) => {
    server.script = [...script];
    const encoder = await open();
    expectRows(await encoder.encode(['a', 'b']), ['a', 'b']);
    expect(server.requests).toHaveLength(script.length + 1);
  });

  it('is given up after the retries, with the last failure', async () => {
    server.always = status(500, 'out of order');
    const encoder = await open({ retries: 2 });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain('status 500: out of order');
    expect(error.message).toContain('3 tries');
    expect(server.requests).toHaveLength(3);
  });

  it('is waited for as Retry-After says, in seconds or until a date', async () => {
    server.script = [status(429, 'later', { 'retry-after': '1' })];
    const encoder = await open();
    await encoder.encode(['a']);
    const [first = 0, second = 0] = server.times;
    expect(second - first).toBeGreaterThanOrEqual(990);

    // An HTTP date has whole seconds: between one and two seconds are left of it.
    const date = new Date(Date.now() + 2000).toUTCString();
    server.script = [status(503, 'later', { 'retry-after': date })];
    await encoder.encode(['a']);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(date) - 10);
    expect(server.requests).toHaveLength(4);
  });

  it('that asks to wait past the deadline is not waited for', async () => {
    server.script = [status(429, 'slow down', { 'retry-after': '3600' })];
    const encoder = await open({ deadlineMs: 5000 });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain('deadlineMs');
    expect(server.requests).toHaveLength(1);
  });
});

describe('an endpoint that refuses', () => {
  it.each([400, 401, 403, 404, 413, 422])('with %i is not asked again', async (code) => {
    server.always = status(code, `no: ${key} ${'long '.repeat(500)}`);
    const encoder = await open({ apiKey: key });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain(`status ${code}`);
    expect(error.message).not.toContain(key);
    expect(error.message.length).toBeLessThan(400);
    expect(server.requests).toHaveLength(1);
  });

  it('by a redirect is not followed: the key would go along', async () => {
    server.always = status(302, '', { location: 'http://elsewhere.example/v1/embeddings' });
    const error = await expectCode((await open({ apiKey: key })).encode(['a']), 'FINCH_IO');
    expect(error.message).toContain('http://elsewhere.example');
    expect(server.requests).toHaveLength(1);
  });

  it('tells no secret of a header or query string either', async () => {
    server.always = (request, response) =>
      status(400, JSON.stringify(request.headers))(request, response, response.socket as never);
    const encoder = await open({
      baseUrl: `${server.url}/v1?key=hidden-in-query`,
      headers: { 'api-key': 'hidden-in-header' },
    });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).not.toContain('hidden');
  });

  it('tells no value of a query string that it repeats, encoded or not', async () => {
    server.always = (request, response) => {
      const url = new URL(request.path, server.url);
      const told = [url.search, url.searchParams.get('key'), request.headers.authorization];
      void status(400, told.join(' ').replace('Bearer ', ''))(
        request,
        response,
        response.socket as never,
      );
    };
    const encoder = await open({
      baseUrl: `${server.url}/v1?key=hidden%2Fin%20query&v=hidden&debug`,
      headers: { Authorization: 'Bearer hidden-token' },
    });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain('status 400');
    expect(inspect(error)).not.toContain('hidden');
    expect(error.message).not.toContain('token');
    expect(error.message).not.toContain('in%20query');
  });

  it('tells no query string, user or password of a redirect', async () => {
    for (const [location, shown] of [
      [
        'http://user:hidden-too@elsewhere.example/v1?key=hidden-in-query',
        'http://elsewhere.example/v1',
      ],
      ['/v2/embeddings?key=hidden-in-query#hidden', '/v2/embeddings'],
      ['http://[hidden', 'no URL'],
    ] as const) {
      server.always = status(307, '', { location });
      const encoder = await open({ baseUrl: `${server.url}/v1?key=hidden-in-query` });
      const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
      expect(error.message).toContain(shown);
      expect(inspect(error)).not.toContain('hidden');
    }
  });

  it.each([
    'http://s3cr3t@host/v1',
    'http://user:s3cr3t@host/v1',
    's3cr3t:password@host/v1',
    'host/v1?key=s3cr3t',
    'http://[host?key=s3cr3t',
  ])('is not asked at %s, which the refusal does not repeat', async (baseUrl) => {
    const error = await expectCode(open({ baseUrl }), 'FINCH_INVALID_ARGUMENT');
    expect(inspect(error)).not.toContain('s3cr3t');
  });

  it('stops the other batches of the call', async () => {
    server.always = async (request, response) => {
      if (request.body.input.includes('bad'))
        return status(400)(request, response, response.socket as never);
      // The others get no answer: only the refusal can end the call.
      await hang(request, response, response.socket as never);
    };
    const encoder = await open({ batchSize: 1, maxConcurrency: 2 });
    const texts = ['bad', ...Array.from({ length: 50 }, (_, i) => `t${i}`)];
    await expectCode(encoder.encode(texts), 'FINCH_IO');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.requests.length).toBeLessThanOrEqual(2);
    server.always = (request, response) => sendJson(response, reply(request));
    expectRows(await encoder.encode(['fine']), ['fine']);
  });
});

describe('an endpoint that answers wrongly', () => {
  const data =
    (change: (rows: Array<Record<string, unknown>>) => unknown): Behaviour =>
    (request, response) =>
      sendJson(response, { data: change(reply(request).data as Array<Record<string, unknown>>) });
  const embedding = (value: unknown) =>
    data((rows) => rows.map((row, i) => (i === 1 ? { ...row, embedding: value } : row)));

  it.each([
    ['another dimension', (q, s) => sendJson(s, reply(q, 16)), 'FINCH_DIMENSION'],
    ['dimensions that differ', embedding([1, 2, 3]), 'FINCH_DIMENSION'],
    [
      'base64 of another dimension',
      embedding(Buffer.alloc(16, 1).toString('base64')),
      'FINCH_DIMENSION',
    ],
    [
      'base64 of no whole floats',
      embedding(Buffer.alloc(31, 1).toString('base64')),
      'FINCH_CORRUPT',
    ],
    ['too few vectors', data((rows) => rows.slice(1)), 'FINCH_CORRUPT'],
    ['too many vectors', data((rows) => [...rows, rows[0]]), 'FINCH_CORRUPT'],
    ['an index twice', data((rows) => rows.map((row) => ({ ...row, index: 0 }))), 'FINCH_CORRUPT'],
    [
      'an index outside',
      data((rows) => rows.map((row) => ({ ...row, index: 5 }))),
      'FINCH_CORRUPT',
    ],
    ['null among numbers', embedding([1, null, 3, 4, 5, 6, 7, 8]), 'FINCH_NOT_FINITE'],
    ['strings among numbers', embedding([1, '2', 3, 4, 5, 6, 7, 8]), 'FINCH_NOT_FINITE'],
    [
      'base64 with NaN',
      embedding(Buffer.from(new Float32Array(8).fill(Number.NaN).buffer).toString('base64')),
      'FINCH_NOT_FINITE',
    ],
    ['zeros', embedding(new Array(8).fill(0)), 'FINCH_ZERO_VECTOR'],
    ['no embedding', embedding(undefined), 'FINCH_CORRUPT'],
    ['an empty embedding', embedding([]), 'FINCH_CORRUPT'],
    ['null for a vector', data((rows) => rows.map(() => null)), 'FINCH_CORRUPT'],
    ['no data', (_, s) => sendJson(s, { error: 'none' }), 'FINCH_CORRUPT'],
    ['null', (_, s) => sendJson(s, null), 'FINCH_CORRUPT'],
  ] as Array<[string, Behaviour, 'FINCH_CORRUPT']>)(
    'with %s is an error, at once',
    async (_, behaviour, code) => {
      server.always = behaviour;
      const encoder = await open();
      await expectCode(encoder.encode(['a', 'b', 'c']), code);
      expect(server.requests).toHaveLength(1);
    },
  );

  it('with NaN in its JSON is FINCH_CORRUPT after the retries', async () => {
    server.always = (_, response) => void response.end('{"data":[{"index":0,"embedding":[NaN]}]}');
    await expectCode((await open({ retries: 1 })).encode(['a']), 'FINCH_CORRUPT');
    expect(server.requests).toHaveLength(2);
  });

  it('in another order is put in order by index', async () => {
    server.always = data((rows) => rows.toReversed());
    const texts = ['a', 'b', 'c', 'd'];
    expectRows(await (await open()).encode(texts), texts);
  });

  it('without indices is taken in order, and may mix formats', async () => {
    server.always = data((rows) =>
      rows.map(({ embedding: row }, i) => ({
        embedding:
          i % 2 ? row : Buffer.from(Float32Array.from(row as number[]).buffer).toString('base64'),
      })),
    );
    expectRows(await (await open()).encode(['a', 'b', 'c']), ['a', 'b', 'c']);
  });

  it('without end is cut off at maxResponseBytes', async () => {
    server.always = (_, response) => {
      const more = () => {
        while (!response.destroyed && response.write('['.repeat(65536)));
      };
      response.on('drain', more);
      more();
    };
    const error = await expectCode(
      (await open({ maxResponseBytes: 100_000 })).encode(['a']),
      'FINCH_CORRUPT',
    );
    expect(error.message).toContain('maxResponseBytes');
    expect(server.requests).toHaveLength(1);
  });
});

describe('time', () => {
  const slowBody: Behaviour = (_, response) => {
    response.writeHead(200);
    response.write('{"data": [');
  };

  it.each([
    ['headers', hang],
    ['a body', slowBody],
  ])('one try does not wait longer than timeoutMs for %s', async (_, behaviour) => {
    server.script = [behaviour];
    const encoder = await open({ timeoutMs: 100 });
    expectRows(await encoder.encode(['a']), ['a']);
    server.always = behaviour;
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain('100 ms');
  });

  it('all tries together do not take longer than deadlineMs', async () => {
    server.always = hang;
    const encoder = await open({ timeoutMs: 50, deadlineMs: 200, retries: 100 });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain('deadlineMs');
    expect(server.requests.length).toBeLessThan(100);
  });

  it('a signal stops a call at once: waiting for an answer, for its turn, or for a retry', async () => {
    const reason = new Error('enough');
    for (const [behaviour, more] of [
      [hang, {}],
      [slowBody, {}],
      [hang, { maxConcurrency: 1, batchSize: 1 }],
      [status(503, '', { 'retry-after': '60' }), {}],
    ] as Array<[Behaviour, object]>) {
      server.always = behaviour;
      const encoder = await open(more);
      const controller = new AbortController();
      const call = encoder.encode(['a', 'b', 'c'], { signal: controller.signal });
      call.catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 30));
      controller.abort(reason);
      expect((await expectCode(call, 'FINCH_ABORTED')).cause).toBe(reason);
      server.always = (request, response) => sendJson(response, reply(request));
      // Turns given up are there for others.
      expectRows(await encoder.encode(['d', 'e']), ['d', 'e']);
    }
    const encoder = await open();
    const count = server.requests.length;
    await expectCode(encoder.encode(['a'], { signal: AbortSignal.abort() }), 'FINCH_ABORTED');
    expect(server.requests).toHaveLength(count);
  });
});

describe('no endpoint', () => {
  it('is FINCH_IO, naming the place and the reason', async () => {
    const { url } = server;
    await server[Symbol.asyncDispose]();
    const encoder = await HttpEncoder.open({
      baseUrl: url,
      model: 'm',
      dimension: 8,
      retries: 1,
      backoffMs: 5,
    });
    const error = await expectCode(encoder.encode(['a']), 'FINCH_IO');
    expect(error.message).toContain(`${url}/v1/embeddings`);
    expect(error.message).toContain('ECONNREFUSED');
    server = await EmbeddingServer.start();
  });
});

describe('close', () => {
  it('lets calls in flight settle and refuses later ones', async () => {
    server.always = async (request, response) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      sendJson(response, reply(request));
    };
    const encoder = await open();
    const inFlight = encoder.encode(['a']);
    const closing = encoder.close();
    await expectCode(encoder.encode(['b']), 'FINCH_CLOSED');
    await closing;
    await encoder.close();
    expectRows(await inFlight, ['a']);
  });
});

describe('options', () => {
  it.each([
    { baseUrl: 'nowhere' },
    { baseUrl: 'ftp://host/v1' },
    { baseUrl: 'http://user:s3cr3t@host/v1' },
    { model: '' },
    { batchSize: 0 },
    { batchSize: 2049 },
    { batchCharacters: 0.5 },
    { maxConcurrency: 0 },
    { timeoutMs: 2 ** 31 },
    { deadlineMs: -1 },
    { retries: Number.NaN },
    { backoffMs: 1e9 },
    { maxResponseBytes: 0 },
    { batchSize: null },
    { deadlineMs: null },
    { dimension: 0 },
    { dimension: null },
    { relevanceFloor: Number.NaN },
    { relevanceFloor: 1.5 },
    { relevanceFloor: null },
    { dimension: undefined, dimensions: 65537 },
    { dimension: 8, dimensions: 16 },
    { apiKey: 'line\nbreak' },
    { headers: { 'x-bad': 'line\nbreak' } },
  ])('%j is FINCH_INVALID_ARGUMENT', async (wrong) => {
    const error = await expectCode(open(wrong), 'FINCH_INVALID_ARGUMENT');
    expect(error.message).not.toContain('s3cr3t');
    expect(error.message).not.toContain('break\n');
    expect(server.requests).toHaveLength(0);
  });
});
