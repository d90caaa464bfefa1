import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readModelFolder } from '../../lib/encode/model-folder.js';
import type { CancelHandle, RerankerHandle, TokenizerHandle } from '../../lib/native.js';
import { binding } from '../../lib/native.js';
import { OnnxReranker, type RerankerBinding } from '../../lib/rerank/onnx-reranker.js';
import type { Reranked } from '../../lib/rerank/reranker.js';
import { expectCode } from '../encode/expect-code.js';

const folder = path.resolve('native/test/fixtures/reranker');
const reference = JSON.parse(readFileSync(path.join(folder, 'reranker_logits.json'), 'utf8')) as {
  cases: Array<{
    query: string;
    document: string;
    ids: number[];
    documentAt: number;
    logit: number;
  }>;
};
const words = 'send weather music flight query repository x9 city map'.split(' ');
const documents = Array.from({ length: 120 }, (_, i) =>
  Array.from({ length: i % 25 }, (_, k) => words[(i * 7 + k * 3) % words.length]).join(' '),
);
const query = 'play music in the city';

/** Logits in the documents' order; NaN where there is none. */
function logitsOf({ documents: ranked }: Reranked): number[] {
  const logits: number[] = new Array<number>(ranked.length).fill(Number.NaN);
  for (const { index, score } of ranked) if (score !== undefined) logits[index] = score;
  return logits;
}

let reranker: OnnxReranker;
let scratch: string;
beforeAll(async () => {
  reranker = await OnnxReranker.open(folder, { cacheBytes: 0 });
  scratch = mkdtempSync(path.join(tmpdir(), 'toolfinch-rerank-'));
});
afterAll(async () => {
  await reranker.close();
  rmSync(scratch, { recursive: true, force: true });
});

describe('pairs', () => {
  it("are tokenised as Hugging Face's tokenizer does, with both ways to cut", () => {
    const { tokenizerOpen, tokenizePair } = binding();
    const tokenizer = tokenizerOpen({
      vocabPath: path.resolve('models/all-minilm-l6-v2/vocab.txt'),
      lowercase: true,
      stripAccents: true,
      chineseCharacters: true,
    });
    const lines = readFileSync('test/golden/pairs.jsonl', 'utf8').trim().split('\n');
    expect(lines.length).toBeGreaterThan(500);
    for (const line of lines) {
      const { query, document, maxTokens, truncation, ids, documentAt } = JSON.parse(line);
      const pair = tokenizePair(tokenizer, query, document, { maxTokens, truncation });
      expect([...pair.ids], line).toEqual(ids);
      expect(pair.documentAt, line).toBe(documentAt);
    }
  });

  it('are counted as the model sees them', () => {
    expect(reranker.countTokens('play music', 'music .')).toEqual({ tokens: 7, ofDocument: 2 });
    expect(reranker.countTokens('', '')).toEqual({ tokens: 3, ofDocument: 0 });
    const long = reranker.countTokens('play '.repeat(100), 'music '.repeat(101));
    expect(long).toEqual({ tokens: 64, ofDocument: 31 });
  });
});

describe('logits', () => {
  it('are those of a float64 reference', async () => {
    for (const each of reference.cases) {
      const [logit] = logitsOf(await reranker.rerank(each.query, [each.document]));
      expect(Math.abs((logit as number) - each.logit), each.query).toBeLessThan(5e-6);
    }
  });

  it('are those of onnxruntime-node on the same file', async () => {
    const session = await InferenceSession.create(path.join(folder, 'model.onnx'));
    for (const { query, document, ids, documentAt } of reference.cases) {
      const row = (values: number[]) =>
        new Tensor('int64', BigInt64Array.from(values, BigInt), [1, ids.length]);
      const { logits } = await session.run(
        {
          input_ids: row(ids),
          attention_mask: row(ids.map(() => 1)),
          token_type_ids: row(ids.map((_, i) => (i < documentAt ? 0 : 1))),
        },
        ['logits'],
      );
      const [logit] = logitsOf(await reranker.rerank(query, [document]));
      expect(Math.abs((logit as number) - Number(logits?.data[0]))).toBeLessThan(2e-6);
    }
    await session.release();
  });

  it('are the same bits alone, in company, in any order, and at the same time', async () => {
    const together = logitsOf(await reranker.rerank(query, documents));
    const alone = await Promise.all(
      documents.map(async (document) => logitsOf(await reranker.rerank(query, [document]))[0]),
    );
    expect(alone).toEqual(together);
    const turned = [...documents].reverse();
    const [again, other] = await Promise.all([
      reranker.rerank(query, turned),
      reranker.rerank('send', documents),
    ]);
    expect(logitsOf(again).reverse()).toEqual(together);
    expect(logitsOf(other)).not.toEqual(together);
  });

  it('rank, with the probability beside', async () => {
    const { documents: ranked, scored } = await reranker.rerank(query, documents);
    expect(scored).toBe(documents.length);
    expect(new Set(ranked.map(({ index }) => index)).size).toBe(documents.length);
    for (const [i, { score, probability }] of ranked.entries()) {
      expect(probability).toBeCloseTo(1 / (1 + Math.exp(-(score as number))), 12);
      expect(Math.fround(score as number)).toBe(score);
      if (i > 0) expect(score).toBeLessThanOrEqual(ranked[i - 1]?.score as number);
    }
  });

  it('differ only by rounding in runs of several pairs', async () => {
    await using batched = await OnnxReranker.open(folder, { batchSize: 16, cacheBytes: 0 });
    const one = logitsOf(await reranker.rerank(query, documents));
    const many = logitsOf(await batched.rerank(query, documents));
    for (const [i, logit] of many.entries()) {
      expect(Math.abs(logit - (one[i] as number))).toBeLessThan(5e-6);
    }
  });

  it('follow maxTokens and the way to cut', async () => {
    await using short = await OnnxReranker.open(folder, { maxTokens: 16, cacheBytes: 0 });
    await using whole = await OnnxReranker.open(folder, {
      maxTokens: 16,
      truncation: 'document-first',
      cacheBytes: 0,
    });
    const long = 'find book flight hotel in city convert currency image';
    expect(short.countTokens(long, long)).toEqual({ tokens: 16, ofDocument: 7 });
    expect(whole.countTokens(long, long)).toEqual({ tokens: 16, ofDocument: 4 });
    const [a, b] = await Promise.all([short.rerank(long, [long]), whole.rerank(long, [long])]);
    expect(logitsOf(a)).not.toEqual(logitsOf(b));
    await expectCode(OnnxReranker.open(folder, { maxTokens: 65 }), 'FINCH_INVALID_ARGUMENT');
    for (const name of ['maxTokens', 'batchSize', 'cacheBytes', 'budgetMs'] as const) {
      for (const value of [Number.NaN, -1, null, '5']) {
        const wrong = { [name]: value as number };
        await expectCode(OnnxReranker.open(folder, wrong), 'FINCH_INVALID_ARGUMENT');
      }
    }
  });
});

describe('a budget', () => {
  it('of 0 scores nothing, and nothing fails', async () => {
    const reranked = await reranker.rerank(query, documents, { budgetMs: 0 });
    expect(reranked.scored).toBe(0);
    expect(reranked.documents).toEqual(documents.map((_, index) => ({ index })));
  });

  it('that is over early leaves the last documents out, in the order given', async () => {
    const many = Array.from({ length: 20_000 }, (_, i) => `map ${i} ${'send '.repeat(i % 20)}`);
    const reranked = await reranker.rerank(query, many, { budgetMs: 30 });
    expect(reranked.scored).toBeLessThan(many.length);
    const rest = reranked.documents.slice(reranked.scored);
    expect(rest.map(({ index }) => index)).toEqual(
      Array.from({ length: rest.length }, (_, i) => many.length - rest.length + i),
    );
    const [first] = logitsOf(await reranker.rerank(query, [many[0] as string]));
    if (reranked.scored > 0) expect(logitsOf(reranked)[0]).toBe(first);
  });

  it('is the default of every call when the reranker has one', async () => {
    await using hurried = await OnnxReranker.open(folder, { budgetMs: 0 });
    expect((await hurried.rerank(query, documents)).scored).toBe(0);
    expect((await hurried.rerank(query, documents, { budgetMs: 60_000 })).scored).toBe(120);
  });
});

describe('the cache', () => {
  it('answers pairs that were scored, also where the budget is 0', async () => {
    await using cached = await OnnxReranker.open(folder);
    const fresh = await cached.rerank(query, documents.slice(0, 60));
    // Some of the documents are equal.
    const distinct = new Set(documents.slice(0, 60)).size;
    expect(cached.statistics).toMatchObject({ hits: 0, misses: 60, entries: distinct });
    const again = await cached.rerank(query, documents.slice(0, 60), { budgetMs: 0 });
    expect(again).toEqual(fresh);
    expect(cached.statistics).toMatchObject({ hits: 60, misses: 60 });
    const part = await cached.rerank(query, [...documents.slice(0, 5), 'new'], { budgetMs: 0 });
    expect(part.scored).toBe(5);
    // A query that ends where the document begins is another pair.
    expect((await cached.rerank(`${query}x`, ['y'], { budgetMs: 1e9 })).scored).toBe(1);
    expect((await cached.rerank(query, ['xy'], { budgetMs: 0 })).scored).toBe(0);
  });

  it('stays within its bytes', async () => {
    await using small = await OnnxReranker.open(folder, { cacheBytes: 4000 });
    await small.rerank(query, documents);
    expect(small.statistics.bytes).toBeLessThanOrEqual(4000);
    expect(small.statistics.evictions).toBeGreaterThan(0);
  });
});

describe('its life', () => {
  it('aborts at once, and goes on for others', async () => {
    const many = Array.from({ length: 20_000 }, (_, i) => `send ${i}`);
    const controller = new AbortController();
    const work = reranker.rerank(query, many, { signal: controller.signal });
    const other = reranker.rerank(query, ['map']);
    controller.abort(new Error('enough'));
    await expect(work).rejects.toMatchObject({
      code: 'FINCH_ABORTED',
      cause: { message: 'enough' },
    });
    expect((await other).scored).toBe(1);
    await expectCode(
      reranker.rerank(query, ['a'], { signal: AbortSignal.abort() }),
      'FINCH_ABORTED',
    );
  });

  it('closes after the calls in flight, twice is fine, and later ones are refused', async () => {
    const short = await OnnxReranker.open(folder);
    const work = short.rerank(query, documents);
    const closing = short.close();
    await expectCode(short.rerank(query, documents), 'FINCH_CLOSED');
    expect((await work).scored).toBe(documents.length);
    await closing;
    await short.close();
    expect(() => short.countTokens('a', 'b')).toThrow(/closed/);
  });

  it('leaves the event loop free', async () => {
    let turns = 0;
    let isOver = false;
    const work = reranker.rerank(
      query,
      documents.flatMap((each) => Array<string>(20).fill(each)),
    );
    const end = work.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      turns++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await end;
    expect(turns).toBeGreaterThan(5);
  });
});

describe('providers', () => {
  it('are the CPU unless asked, and auto says why', async () => {
    expect(reranker.provider).toBe('cpu');
    expect(reranker.providerReason).toBe('asked for');
    expect(reranker.runtime).toMatch(/^\d+\.\d+/);
    await using any = await OnnxReranker.open(folder, { provider: 'auto' });
    if (any.provider === 'cpu') {
      expect(any.providerReason).toMatch(/not cuda: .*not coreml: /);
      await expectCode(OnnxReranker.open(folder, { provider: 'cuda' }), 'FINCH_DEVICE');
      await expectCode(OnnxReranker.open(folder, { provider: 'coreml' }), 'FINCH_DEVICE');
    }
    expect((await any.rerank(query, documents)).scored).toBe(documents.length);
  });
});

describe('a folder', () => {
  const changed = (change: (manifest: Record<string, unknown>) => void) => {
    const copy = mkdtempSync(path.join(scratch, 'folder-'));
    cpSync(folder, copy, { recursive: true });
    const file = path.join(copy, 'manifest.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    change(manifest);
    writeFileSync(file, JSON.stringify(manifest));
    return copy;
  };

  it('of an encoder is no reranker, nor the other way round', async () => {
    await expectCode(OnnxReranker.open(path.resolve('models/all-minilm-l6-v2')), 'FINCH_CORRUPT');
    await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
  });

  it.each([
    ['truncation', 'middle'],
    ['maxTokens', 4],
    ['relevanceFloor', -0.5],
    ['relevanceFloor', 1.5],
  ])('with %s %j is told so', async (name, value) => {
    const bad = changed((manifest) => {
      manifest[name] = value;
    });
    await expect(OnnxReranker.open(bad)).rejects.toMatchObject({
      code: 'FINCH_CORRUPT',
      message: expect.stringContaining(name) as string,
    });
  });

  it('may set the floor and the way to cut', async () => {
    const good = changed((manifest) => {
      manifest.relevanceFloor = 0.3;
      manifest.truncation = 'document-first';
    });
    await using opened = await OnnxReranker.open(good);
    expect(opened.relevanceFloor).toBe(0.3);
    expect(opened.truncation).toBe('document-first');
    await using other = await OnnxReranker.open(good, { truncation: 'longest-first' });
    expect(other.truncation).toBe('longest-first');
  });

  it('with an output of two labels is refused', async () => {
    const bad = changed((manifest) => {
      (manifest.model as Record<string, unknown>).output = 'two_labels';
    });
    await expectCode(OnnxReranker.open(bad), 'FINCH_DIMENSION');
  });
});

describe('opening', () => {
  it('that is aborted half-way closes what comes late', async () => {
    const closed: unknown[] = [];
    let open: (handle: RerankerHandle) => void = () => undefined;
    const late = { late: true } as unknown as RerankerHandle;
    const fake: RerankerBinding = {
      ...binding(),
      cancelCreate: () => ({}) as CancelHandle,
      tokenizerOpen: () => ({}) as TokenizerHandle,
      rerankerOpen: () =>
        new Promise((resolve) => {
          open = resolve;
        }),
      rerankerClose: (handle) => closed.push(handle),
    };
    const controller = new AbortController();
    const opening = OnnxReranker.open(folder, { binding: fake, signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve, 100));
    controller.abort();
    await expectCode(opening, 'FINCH_ABORTED');
    open(late);
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toEqual([late]);
  });
});
