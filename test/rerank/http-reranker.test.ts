import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { HttpReranker, type HttpRerankerOptions } from '../../lib/rerank/http-reranker.js';
import { expectCode } from '../encode/expect-code.js';

interface Asked {
  path: string;
  headers: IncomingMessage['headers'];
  body: { model: string; query: string; documents: string[]; top_n: number };
}
type Behaviour = (asked: Asked, response: ServerResponse) => void;

const json = (response: ServerResponse, value: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
};
/** Scores by length, in an order of its own, as Cohere does: best first. */
const results = ({ body }: Asked) => ({
  id: 'x',
  results: body.documents
    .map((document, index) => ({ index, relevance_score: document.length / 100, document }))
    .sort((a, b) => b.relevance_score - a.relevance_score),
});
const well: Behaviour = (asked, response) => json(response, results(asked));

/** A rerank endpoint on the loopback: one behaviour per request, then `well`. */
async function served(script: Behaviour[], use: (url: string, asked: Asked[]) => Promise<void>) {
  const seen: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Asked['body'];
    const asked = { path: request.url ?? '', headers: request.headers, body };
    seen.push(asked);
    (script.shift() ?? well)(asked, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const options = (
  baseUrl: string,
  more: Partial<HttpRerankerOptions> = {},
): HttpRerankerOptions => ({
  baseUrl,
  model: 'rerank-v3.5',
  backoffMs: 1,
  ...more,
});

describe('a rerank endpoint', () => {
  it('is asked for all documents, and ranks them', async () => {
    await served([], async (url, asked) => {
      const reranker = new HttpReranker(options(url, { apiKey: 'secret-key' }));
      const reranked = await reranker.rerank('q', ['aa', 'aaaa', 'a']);
      expect(reranked).toEqual({
        documents: [
          { index: 1, score: 0.04, probability: 0.04 },
          { index: 0, score: 0.02, probability: 0.02 },
          { index: 2, score: 0.01, probability: 0.01 },
        ],
        scored: 3,
      });
      expect(asked[0]?.path).toBe('/v1/rerank');
      expect(asked[0]?.headers.authorization).toBe('Bearer secret-key');
      expect(asked[0]?.body).toEqual({
        model: 'rerank-v3.5',
        query: 'q',
        documents: ['aa', 'aaaa', 'a'],
        top_n: 3,
      });
      expect(reranker.model).toMatch(/^rerank-v3\.5@127\.0\.0\.1:/);
      expect(await reranker.rerank('q', [])).toEqual({ documents: [], scored: 0 });
      expect(asked).toHaveLength(1);
    });
  });

  it.each([
    ['/v2', '/v2/rerank'],
    ['/v2/rerank', '/v2/rerank'],
    ['/x/rerank/?key=1', '/x/rerank?key=1'],
    ['', '/v1/rerank'],
  ])('is at %j', async (given, path) => {
    await served([], async (url, asked) => {
      await new HttpReranker(options(url + given)).rerank('q', ['a']);
      expect(asked[0]?.path).toBe(path);
    });
  });

  it('gets batches, and the ranking is over all of them', async () => {
    await served([], async (url, asked) => {
      const documents = Array.from({ length: 25 }, (_, i) => 'x'.repeat((i * 7) % 25));
      const reranked = await new HttpReranker(options(url, { batchSize: 10 })).rerank(
        'q',
        documents,
      );
      expect(asked.map(({ body }) => body.documents.length).sort()).toEqual([10, 10, 5]);
      expect(reranked.documents.map(({ score }) => score)).toEqual(
        Array.from({ length: 25 }, (_, i) => (24 - i) / 100),
      );
    });
  });

  it('may give raw scores, when it is said so', async () => {
    const raw: Behaviour = (_, response) =>
      json(response, {
        results: [
          { index: 0, relevance_score: -3 },
          { index: 1, relevance_score: 5 },
        ],
      });
    await served([raw, raw], async (url) => {
      await expect(new HttpReranker(options(url)).rerank('q', ['a', 'b'])).rejects.toMatchObject({
        code: 'FINCH_CORRUPT',
        message: expect.stringContaining("scoreKind: 'logit'") as string,
      });
      const reranker = new HttpReranker(options(url, { scoreKind: 'logit' }));
      const { documents } = await reranker.rerank('q', ['a', 'b']);
      expect(documents[0]).toMatchObject({ index: 1, score: 5 });
      expect(documents[1]?.probability).toBeCloseTo(0.0474, 4);
    });
  });

  it.each<[string, unknown, string]>([
    ['no results', { data: [] }, 'FINCH_CORRUPT'],
    ['null', null, 'FINCH_CORRUPT'],
    ['too few', { results: [{ index: 0, relevance_score: 0.1 }] }, 'FINCH_CORRUPT'],
    [
      'an index twice',
      {
        results: [
          { index: 0, relevance_score: 0.1 },
          { index: 0, relevance_score: 0.2 },
        ],
      },
      'FINCH_CORRUPT',
    ],
    [
      'an index out of range',
      {
        results: [
          { index: 0, relevance_score: 0.1 },
          { index: 2, relevance_score: 0.2 },
        ],
      },
      'FINCH_CORRUPT',
    ],
    [
      'a score of text',
      {
        results: [
          { index: 0, relevance_score: '0.1' },
          { index: 1, relevance_score: 0.2 },
        ],
      },
      'FINCH_NOT_FINITE',
    ],
    ['an item null', { results: [null, null] }, 'FINCH_CORRUPT'],
  ])('that gives %s is refused, and not asked again', async (_, value, code) => {
    await served([(_asked, response) => json(response, value)], async (url, asked) => {
      await expectCode(new HttpReranker(options(url)).rerank('q', ['a', 'b']), code);
      expect(asked).toHaveLength(1);
    });
  });

  it('that is busy, or gives no JSON, is asked again', async () => {
    const busy: Behaviour = (_, response) => json(response, { message: 'slow down' }, 429);
    const garbled: Behaviour = (_, response) => response.end('<html>');
    await served([busy, garbled], async (url, asked) => {
      const reranked = await new HttpReranker(options(url)).rerank('q', ['a']);
      expect(reranked.scored).toBe(1);
      expect(asked).toHaveLength(3);
    });
  });

  it('that refuses is quoted once, without the key', async () => {
    const refusing: Behaviour = (_, response) => json(response, { message: 'bad secret-key' }, 401);
    await served([refusing], async (url, asked) => {
      const reranker = new HttpReranker(options(url, { apiKey: 'secret-key' }));
      const error = (await reranker.rerank('q', ['a']).catch((reason) => reason)) as Error;
      expect(error).toMatchObject({ code: 'FINCH_IO' });
      expect(error.message).toMatch(/rerank scores from .*401.*Check apiKey/);
      expect(error.message).not.toContain('secret-key');
      expect(asked).toHaveLength(1);
    });
  });

  it('that is silent ends at timeoutMs or deadlineMs', async () => {
    const silent: Behaviour = () => undefined;
    await served([silent, silent], async (url) => {
      const reranker = new HttpReranker(options(url, { timeoutMs: 20, retries: 1 }));
      await expectCode(reranker.rerank('q', ['a']), 'FINCH_IO');
    });
  });

  it('that is not done when the budget is over leaves its documents unscored', async () => {
    const silent: Behaviour = () => undefined;
    await served([well, silent], async (url) => {
      const reranker = new HttpReranker(options(url, { batchSize: 2, maxConcurrency: 1 }));
      const reranked = await reranker.rerank('q', ['a', 'bb', 'ccc'], { budgetMs: 400 });
      expect(reranked.documents.map(({ index }) => index)).toEqual([1, 0, 2]);
      expect(reranked.scored).toBe(2);
      const none = await reranker.rerank('q', ['a', 'b'], { budgetMs: 0 });
      expect(none).toEqual({ documents: [{ index: 0 }, { index: 1 }], scored: 0 });
    });
  });

  it('is left at once by an abort', async () => {
    const silent: Behaviour = () => undefined;
    await served([silent], async (url) => {
      const reranker = new HttpReranker(options(url));
      const controller = new AbortController();
      const work = reranker.rerank('q', ['a'], { signal: controller.signal, budgetMs: 60_000 });
      setTimeout(() => controller.abort(new Error('enough')), 20);
      await expect(work).rejects.toMatchObject({
        code: 'FINCH_ABORTED',
        cause: { message: 'enough' },
      });
    });
  });
});

describe('an HTTP reranker', () => {
  it('uses the fetch it is given', async () => {
    const urls: string[] = [];
    const reranker = new HttpReranker({
      baseUrl: 'https://rerank.example/v2',
      model: 'm',
      revision: '7',
      fetch: async (url) => {
        urls.push(url.href);
        return Response.json({ results: [{ index: 0, relevance_score: 0.5 }] });
      },
    });
    expect(reranker.model).toBe('m@7');
    expect((await reranker.rerank('q', ['a'])).documents[0]?.probability).toBe(0.5);
    expect(urls).toEqual(['https://rerank.example/v2/rerank']);
  });

  it('keeps its times with a fetch that heeds no signal', async () => {
    const deaf = {
      baseUrl: 'https://rerank.example',
      model: 'm',
      fetch: () => new Promise<never>(() => {}),
    };
    const reranker = new HttpReranker(deaf);
    expect(await reranker.rerank('q', ['a'], { budgetMs: 20 })).toEqual({
      documents: [{ index: 0 }],
      scored: 0,
    });
    const signal = AbortSignal.timeout(20);
    await expectCode(reranker.rerank('q', ['a'], { signal }), 'FINCH_ABORTED');
    const brief = new HttpReranker({ ...deaf, timeoutMs: 20, retries: 0 });
    await expectCode(brief.rerank('q', ['a']), 'FINCH_IO');
  });

  it('repeats nothing secret that its fetch says', async () => {
    const reranker = new HttpReranker({
      baseUrl: 'https://rerank.example/?key=hidden%20key',
      model: 'm',
      apiKey: 'hidden-api-key',
      retries: 0,
      fetch: async (url) => {
        throw new TypeError(`cannot reach ${url.href}`, {
          cause: new Error('key hidden key, hidden-api-key'),
        });
      },
    });
    const error = (await reranker.rerank('q', ['a']).catch((reason) => reason)) as Error;
    expect(error).toMatchObject({ code: 'FINCH_IO' });
    expect(error.message).toContain('no connection');
    expect(inspect(error)).not.toContain('hidden');
  });

  it('is closed once, and refuses calls then', async () => {
    const reranker = new HttpReranker({ baseUrl: 'https://rerank.example', model: 'm' });
    await reranker.close();
    await reranker.close();
    await expectCode(reranker.rerank('q', ['a']), 'FINCH_CLOSED');
  });

  it('refuses options that cannot be', () => {
    const wrong: Array<Partial<HttpRerankerOptions>> = [
      { baseUrl: 'nonsense' },
      { baseUrl: 'ftp://host' },
      { model: '' },
      { batchSize: 0 },
      { budgetMs: -1 },
      { budgetMs: Number.NaN },
      { relevanceFloor: Number.NaN },
      { relevanceFloor: -0.1 },
      { relevanceFloor: Number.POSITIVE_INFINITY },
      { relevanceFloor: null as unknown as number },
      ...(
        [
          'batchSize',
          'maxConcurrency',
          'timeoutMs',
          'deadlineMs',
          'retries',
          'backoffMs',
          'maxResponseBytes',
        ] as const
      ).flatMap((name) =>
        [Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY, null, '5'].map((value) => ({
          [name]: value as number,
        })),
      ),
      { scoreKind: 'percent' as 'logit' },
      { apiKey: 'a\nb' },
    ];
    for (const more of wrong) {
      expect(() => new HttpReranker({ ...options('https://host'), ...more })).toThrow(
        expect.objectContaining({ code: 'FINCH_INVALID_ARGUMENT' }),
      );
    }
  });
});
