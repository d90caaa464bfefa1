import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  calibrateAbstention,
  calibrateCut,
  type Decision,
  defineTool,
  FeedbackStore,
  FinchError,
  labelledLists,
  type Reranked,
  type Reranker,
  type RerankOptions,
  Selector,
  sigmoid,
  ToolIndex,
} from '../../dist/esm/lib/index.js';
import { semanticScores } from '../../lib/select/rerank-stage.js';
import { WordEncoder } from '../word-encoder.js';

const tools = Array.from({ length: 40 }, (_, i) =>
  defineTool({
    name: `weather_${i}`,
    description: `Weather forecast number ${i} for the city ${'of rain '.repeat(i % 5)}`,
    inputSchema: { type: 'object' },
  }),
);
const query = 'weather forecast for the city';

/** Scores a text by the function given; documents it gives no logit stay unscored. */
class Scripted implements Reranker {
  readonly model = 'scripted@1';
  readonly scoreKind = 'logit';
  relevanceFloor: number | undefined;
  readonly calls: Array<{ query: string; documents: readonly string[]; options: RerankOptions }> =
    [];
  before: () => unknown = () => undefined;

  constructor(readonly logit: (place: number, document: string) => number | undefined) {}

  async rerank(
    asked: string,
    documents: readonly string[],
    options: RerankOptions = {},
  ): Promise<Reranked> {
    this.calls.push({ query: asked, documents, options });
    await this.before();
    const all = documents.map((document, index) => ({ index, score: this.logit(index, document) }));
    const scored = all.filter(({ score }) => score !== undefined) as Array<{
      index: number;
      score: number;
    }>;
    scored.sort((a, b) => b.score - a.score);
    return {
      documents: [
        ...scored.map((each) => ({ ...each, probability: sigmoid(each.score) })),
        ...all.filter(({ score }) => score === undefined).map(({ index }) => ({ index })),
      ],
      scored: scored.length,
    };
  }
  async close(): Promise<void> {}
}

let index: ToolIndex;
let encoder: WordEncoder;
beforeAll(async () => {
  encoder = new WordEncoder();
  index = await ToolIndex.build(tools, { encoder });
});
afterAll(() => index.close());

/** Without the prior's part the fused order is the semantic one. */
const weights = { semantic: 1, bandit: 0, prior: 0, outage: 0.5 };
const fixed = { cut: { rule: 'fixed', k: 5 } } as const;
const ids = ({ candidates }: Decision) => candidates.map(({ id }) => id);
const retrieved = async (n: number) =>
  ids(await new Selector({ index, weights, shortlist: n }).select(query));

describe('Selector with a reranker', () => {
  it.each(['hybrid', 'dense', 'lexical'] as const)(
    'takes 50 candidates of %s, ranks by raw scores, fuses the probability',
    async (method) => {
      // Logits so high that their probabilities are all 1 in float32.
      const reranker = new Scripted((place) => 20 + place);
      const plain = await new Selector({ index, weights, method, shortlist: 40 }).select(query);
      const decision = await new Selector({ index, weights, reranker, method, ...fixed }).select(
        query,
      );
      expect(decision.candidates).toHaveLength(10);
      expect(ids(decision)).toEqual(ids(plain).reverse().slice(0, 10));
      expect(decision.stages).toContain('rerank');
      expect(decision.milliseconds.rerank).toBeGreaterThanOrEqual(0);
      expect(decision.counts).toMatchObject({ retrieved: 40, reranked: 40, returned: 5 });
      expect(decision.rerank).toMatchObject({
        outcome: 'done',
        sent: 40,
        scored: 40,
        model: 'scripted@1',
      });
      expect(decision.rerank?.order[0]).toEqual({
        id: decision.candidates[0]?.id,
        retrievalRank: 39,
        score: 59,
        probability: 1,
      });
      for (const [i, candidate] of decision.candidates.entries()) {
        expect(candidate.semantic).toBeCloseTo(1, 4);
        expect(candidate.semanticRank).toBe(i);
        expect(Math.fround(candidate.retrieval as number)).toBe(
          plain.candidates.find(({ id }) => id === candidate.id)?.semantic,
        );
      }
      expect(reranker.calls[0]?.query).toBe(query);
      expect(reranker.calls[0]?.documents[0]).toContain('Weather forecast number');
    },
  );

  it('keeps what was not scored in time behind, in the order of the retrieval', async () => {
    const order = await retrieved(40);
    const reranker = new Scripted((place) => (place < 4 ? place : undefined));
    const decision = await new Selector({ index, weights, reranker, ...fixed }).select(query);
    expect(ids(decision)).toEqual([...order.slice(0, 4).reverse(), ...order.slice(4, 10)]);
    expect(decision.rerank).toMatchObject({ outcome: 'partial', sent: 40, scored: 4 });
    expect(decision.counts.reranked).toBe(4);
    const unscored = decision.rerank?.order.slice(4) ?? [];
    expect(unscored.map(({ id }) => id)).toEqual(order.slice(4));
    expect(unscored[0]).not.toHaveProperty('score');
    const semantic = decision.candidates.map((each) => each.semantic);
    expect(semantic[3]).toBeCloseTo(0.5, 6);
    expect([...semantic].sort((a, b) => b - a)).toEqual(semantic);
    expect(Math.min(...semantic)).toBeGreaterThan(0);
  });

  it('goes on as retrieved when nothing was scored', async () => {
    const order = await retrieved(10);
    const plain = await new Selector({ index, weights }).select(query);
    const decision = await new Selector({
      index,
      weights,
      reranker: new Scripted(() => undefined),
    }).select(query);
    expect(ids(decision)).toEqual(order);
    expect(decision.rerank).toMatchObject({ outcome: 'partial', scored: 0 });
    expect(decision.candidates.map(({ score }) => score)).toEqual(
      plain.candidates.map(({ score }) => score),
    );
    expect(decision.candidates[0]).not.toHaveProperty('retrieval');
  });

  it.each([
    ['FINCH_IO', () => new FinchError('FINCH_IO', 'no connection to it')],
    ['FINCH_INTERNAL', () => new TypeError('a bug of its own')],
  ])('goes on as retrieved when the reranker fails, and says so (%s)', async (code, make) => {
    const reranker = new Scripted(() => 0);
    reranker.before = () => {
      throw make();
    };
    const decision = await new Selector({ index, weights, reranker }).select(query);
    expect(ids(decision)).toEqual(await retrieved(10));
    expect(decision.rerank).toMatchObject({
      outcome: 'failed',
      scored: 0,
      sent: 40,
      error: { code },
    });
    expect(decision.tools.length).toBeGreaterThan(0);
  });

  it('goes on as retrieved when the reranker gives nonsense', async () => {
    const reranker = new Scripted(() => 0);
    reranker.rerank = async () => ({ documents: [], scored: 0 });
    const decision = await new Selector({ index, weights, reranker }).select(query);
    expect(decision.rerank?.error?.code).toBe('FINCH_CORRUPT');
    expect(ids(decision)).toEqual(await retrieved(10));
  });

  it('an abort is no failure of the reranker', async () => {
    const reranker = new Scripted(() => 0);
    const controller = new AbortController();
    reranker.before = () => {
      controller.abort();
      throw new FinchError('FINCH_ABORTED', 'stopped by its signal');
    };
    const work = new Selector({ index, weights, reranker }).select(query, {
      signal: controller.signal,
    });
    await expect(work).rejects.toMatchObject({ code: 'FINCH_ABORTED' });
  });

  it('is asked for as many as said, within the time said, and left out on demand', async () => {
    const order = await retrieved(40);
    const reranker = new Scripted((place) => place);
    const selector = new Selector({
      index,
      weights,
      reranker,
      rerank: { candidates: 6, budgetMs: 123 },
    });
    const decision = await selector.select(query);
    expect(reranker.calls[0]?.documents).toHaveLength(6);
    expect(reranker.calls[0]?.options.budgetMs).toBe(123);
    // The shortlist of 10 is longer than what was reranked: the rest follows as retrieved.
    expect(ids(decision)).toEqual([...order.slice(0, 6).reverse(), ...order.slice(6, 10)]);
    const without = await selector.select(query, { rerank: false });
    expect(without).not.toHaveProperty('rerank');
    expect(ids(without)).toEqual(order.slice(0, 10));
    expect(reranker.calls).toHaveLength(1);
  });

  it('takes a setting of one call in place of its own, field by field', async () => {
    const reranker = new Scripted((place) => place);
    const rerank = { candidates: 6, budgetMs: 5000 };
    const selector = new Selector({ index, weights, reranker, rerank });
    const asked = async (rerank: object | undefined) => {
      reranker.calls.length = 0;
      await selector.select(query, { rerank } as object);
      return [reranker.calls[0]?.documents.length, reranker.calls[0]?.options.budgetMs];
    };
    expect(await asked({ budgetMs: 7000 })).toEqual([6, 7000]);
    expect(await asked({ candidates: 9 })).toEqual([9, 5000]);
    expect(await asked({ candidates: undefined, budgetMs: 7000 })).toEqual([6, 7000]);
    expect(await asked({})).toEqual([6, 5000]);
    expect(await asked(undefined)).toEqual([6, 5000]);
    const off = new Selector({ index, weights, reranker, rerank: false });
    expect(await off.select(query)).not.toHaveProperty('rerank');
    expect((await off.select(query, { rerank: { candidates: 4 } })).rerank?.sent).toBe(4);
    expect((await off.select(query, { rerank: {} })).rerank?.sent).toBe(40);
  });

  it('names a setting that it does not know, in a call too', async () => {
    const reranker = new Scripted((place) => place);
    const selector = new Selector({ index, weights, reranker, rerank: { candidates: 6 } });
    for (const wrong of [{ budgetMS: 5 }, { candidate: 5 }, { candidates: 5, topN: undefined }]) {
      const unknown = Object.keys(wrong).at(-1) as string;
      const message = expect.stringContaining(`'${unknown}'`) as string;
      const refusal = expect.objectContaining({ code: 'FINCH_INVALID_ARGUMENT', message });
      await expect(selector.select(query, { rerank: wrong as object })).rejects.toEqual(refusal);
      expect(() => new Selector({ index, reranker, rerank: wrong as object })).toThrow(refusal);
      const rerank = wrong as object;
      await expect(labelledLists(index, [], { reranker, rerank })).rejects.toEqual(refusal);
    }
    expect(reranker.calls).toHaveLength(0);
  });

  it('a tool called by its name comes first, whatever the reranker says', async () => {
    const reranker = new Scripted((_, document) => (/number 7\b/.test(document) ? -5 : 3));
    const decision = await new Selector({ index, weights, reranker }).select(
      'use weather_7 for the forecast',
    );
    expect(decision.candidates[0]?.id).toBe('weather_7');
    expect(decision.candidates[0]?.named).toBe(true);
  });

  it('abstains by its floor on probabilities, the caller by his on retrieval', async () => {
    const reranker = new Scripted(() => -2);
    const selector = new Selector({ index, weights, reranker });
    expect((await selector.select(query)).reason).toBeUndefined();
    reranker.relevanceFloor = 0.2;
    const decision = await selector.select(query);
    expect(decision).toMatchObject({ tools: [], reason: 'below-floor' });
    expect(decision.candidates.every(({ fate }) => fate === 'abstained')).toBe(true);
    expect((await selector.select(query, { relevanceFloor: 0 })).reason).toBeUndefined();
    expect((await selector.select(query, { relevanceFloor: 5 })).reason).toBe('below-floor');
    encoder.relevanceFloor = 5;
    reranker.relevanceFloor = 0.1;
    expect((await selector.select(query)).reason).toBeUndefined();
    reranker.relevanceFloor = undefined;
    expect((await selector.select(query)).reason).toBe('below-floor');
    delete encoder.relevanceFloor;
  });

  it('asks its floor of tools that are not failing', async () => {
    const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
    const reranker = new Scripted((place) => (place === 0 ? 4 : -6 - place));
    reranker.relevanceFloor = 0.5;
    const selector = new Selector({ index, reranker, feedback });
    const { id, candidates } = await selector.select(query);
    const best = candidates[0]?.id as string;
    await selector.report(id, best, false);
    for (let i = 0; i < 5; i++) {
      const again = await selector.select(query);
      if (again.tools.some((each) => each.id === best)) {
        await selector.report(again.id, best, false);
      }
    }
    expect(await selector.select(query)).toMatchObject({ tools: [], reason: 'unhealthy' });
    await feedback.close();
  });

  it('ends with its signal, though the reranker does not heed it', async () => {
    const reranker = new Scripted(() => 1);
    reranker.before = () => new Promise(() => {});
    const abort = new AbortController();
    const selecting = new Selector({ index, reranker }).select(query, { signal: abort.signal });
    setImmediate(() => abort.abort());
    await expect(selecting).rejects.toMatchObject({ code: 'FINCH_ABORTED' });
  });

  it.each([
    ['never comes back', () => new Promise<never>(() => {})],
    ['throws later', () => sleep(60).then(() => Promise.reject(new Error('late')))],
    ['gives its scores later', () => sleep(60)],
  ])('goes on at the end of the budget without one that %s', async (_, before) => {
    const unheard: unknown[] = [];
    const hear = (reason: unknown) => unheard.push(reason);
    process.on('unhandledRejection', hear);
    try {
      const reranker = new Scripted((place) => place);
      reranker.before = before;
      const selector = new Selector({ index, weights, reranker, rerank: { budgetMs: 5 } });
      const decision = await selector.select(query);
      const order = await retrieved(10);
      expect(ids(decision)).toEqual(order);
      expect(decision.rerank).toMatchObject({
        outcome: 'failed',
        scored: 0,
        sent: 40,
        error: { code: 'FINCH_ABORTED', message: expect.stringContaining('budgetMs (5)') },
      });
      expect(decision.counts.reranked).toBe(0);
      expect(reranker.calls[0]?.options.signal?.aborted).toBe(true);
      await sleep(120);
      expect(unheard).toEqual([]);
      expect(decision.rerank?.scored).toBe(0);
      expect(ids(decision)).toEqual(order);
    } finally {
      process.off('unhandledRejection', hear);
    }
  });

  it('waits for one that keeps its budget itself', async () => {
    const reranker = Object.assign(new Scripted((place) => place), { keepsBudget: true });
    reranker.before = () => sleep(60);
    const selector = new Selector({ index, weights, reranker, rerank: { budgetMs: 1 } });
    expect((await selector.select(query)).rerank).toMatchObject({ outcome: 'done', scored: 40 });
  });

  it('a signal ends it within its budget, and the reranker hears it', async () => {
    const reranker = new Scripted(() => 1);
    reranker.before = () => new Promise(() => {});
    const abort = new AbortController();
    const selector = new Selector({ index, reranker, rerank: { budgetMs: 600_000 } });
    const selecting = selector.select(query, { signal: abort.signal });
    setTimeout(() => abort.abort(new Error('enough')), 20);
    await expect(selecting).rejects.toMatchObject({
      code: 'FINCH_ABORTED',
      cause: { message: 'enough' },
    });
    expect(reranker.calls[0]?.options.signal?.reason).toMatchObject({ message: 'enough' });
  });

  it('has no budget that a timer could not count', async () => {
    const reranker = new Scripted((place) => place);
    reranker.before = () => sleep(30);
    for (const budgetMs of [2 ** 31, Number.POSITIVE_INFINITY]) {
      const selector = new Selector({ index, weights, reranker, rerank: { budgetMs } });
      expect((await selector.select(query)).rerank?.outcome).toBe('done');
    }
  });

  it('goes on without one whose order is wrong', async () => {
    const places = Array.from({ length: 40 }, (_, index) => index);
    const one = (index: number, score?: number) =>
      score === undefined ? { index } : { index, score, probability: sigmoid(score) };
    for (const documents of [
      places.map((index) => one(index, index / 40)),
      places.map((index) => (index === 3 ? one(index, 1) : one(index))),
    ]) {
      const reranker = new Scripted(() => 0);
      reranker.rerank = async () => ({ documents, scored: 1 });
      const { rerank, candidates } = await new Selector({ index, weights, reranker }).select(query);
      expect(rerank).toMatchObject({ outcome: 'failed', error: { code: 'FINCH_CORRUPT' } });
      expect(candidates.map(({ id }) => id)).toEqual(await retrieved(10));
    }
  });

  it('holds nothing meant for its scores against others', async () => {
    const cut = { rule: 'threshold', score: 0.9, maxK: 3 } as const;
    const reranker = new Scripted((place) => 4 - place / 2);
    const selector = new Selector({ index, weights, reranker, cut });
    expect((await selector.select(query)).cut).toMatchObject({ rule: 'threshold', k: 3 });
    reranker.before = () => Promise.reject(new Error('down'));
    const without = await selector.select(query);
    expect(without.cut?.rule).toBe('dynamic');
    expect(without.tools.length).toBeGreaterThan(0);
    expect(without.tools.length).toBeLessThanOrEqual(3);
  });

  it('drops a tool that was removed while the reranker read', async () => {
    const own = await ToolIndex.build(tools, { encoder });
    const reranker = new Scripted((place) => -place);
    const [gone] = await retrieved(1);
    reranker.before = () => own.remove([gone as string]);
    const decision = await new Selector({ index: own, reranker }).select(query);
    expect(ids(decision)).not.toContain(gone);
    expect(decision.candidates).toHaveLength(9);
    own.close();
  });

  it('learns from outcomes as without one', async () => {
    const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
    const selector = new Selector({
      index,
      reranker: new Scripted((place) => -place / 10),
      feedback,
    });
    const first = await selector.select(query);
    const best = first.candidates[0]?.id as string;
    for (let i = 0; i < 3; i++) {
      const { id } = await selector.select(query);
      await selector.report(id, best, false).catch(() => undefined);
    }
    const later = await selector.select(query);
    expect(later.candidates.find(({ id }) => id === best)?.fate).not.toBe('selected');
    await feedback.close();
  });

  it('refuses what is no reranker, and settings that cannot be', async () => {
    const wrong = [
      { reranker: {} },
      { reranker: Object.assign(new Scripted(() => 0), { relevanceFloor: Number.NaN }) },
      { reranker: Object.assign(new Scripted(() => 0), { relevanceFloor: 2 }) },
      { reranker: Object.assign(new Scripted(() => 0), { keepsBudget: 'yes' }) },
      { reranker: 'cohere' },
      { rerank: { candidates: 0 } },
      { rerank: { budgetMs: -1 } },
      { rerank: true },
    ];
    for (const each of wrong) {
      expect(() => new Selector({ index, weights, ...(each as object) })).toThrow(
        expect.objectContaining({ code: 'FINCH_INVALID_ARGUMENT' }),
      );
    }
  });
});

describe('an index', () => {
  it.each([Number.NaN, 1.5, null])('refuses an encoder whose floor is %s', async (floor) => {
    const wrong = Object.assign(new WordEncoder(), { relevanceFloor: floor as number });
    await expect(ToolIndex.build(tools, { encoder: wrong })).rejects.toMatchObject({
      code: 'FINCH_INVALID_ARGUMENT',
      message: expect.stringContaining('relevanceFloor') as string,
    });
  });
});

describe('S_sem after a reranker', () => {
  it('falls strictly, in float32 and through the weighted sum, whatever the probabilities', () => {
    for (const [probabilities, unscored] of [
      [Array<number>(60).fill(1), 0],
      [[1, 1 - 1e-12, 0.5, 0.5 - 1e-12, 1e-30, 1e-31, 0, 0], 5],
      [[0.9], 49],
      [[0], 3],
    ] as const) {
      const semantic = semanticScores(probabilities, unscored);
      expect(semantic).toHaveLength(probabilities.length + unscored);
      const fused = semantic.map((each) => Math.fround(Math.fround(0.8) * Math.fround(each)));
      for (let i = 1; i < fused.length; i++) expect(fused[i]).toBeLessThan(fused[i - 1] as number);
      for (const [i, probability] of probabilities.entries()) {
        expect(Math.abs((semantic[i] as number) - probability)).toBeLessThan(1e-4);
      }
    }
  });
});

describe('calibrations of reranked lists', () => {
  const labels = tools.slice(0, 30).map(({ id }, i) => ({
    text: `${query} number ${i}`,
    gold: [id],
  }));

  it('are made from the lists that the Selector cuts, and bound to the reranker', async () => {
    const reranker = new Scripted((place) => 3 - place / 4);
    const index = await ToolIndex.build(tools, { encoder: new WordEncoder(32) });
    const options = { reranker, rerank: { candidates: 20 }, shortlist: 10 };
    const { lists, pipeline } = await labelledLists(index, labels, options);
    expect(pipeline).toMatchObject({ reranker: 'scripted@1', candidates: 20, shortlist: 10 });
    const selector = new Selector({ index, ...options, cut: { rule: 'fixed', k: 10 } });
    for (const [i, { text }] of labels.entries()) {
      const { candidates } = await selector.select(text);
      const semantic = candidates.map((each) => each.semantic).sort((a, b) => b - a);
      expect([...(lists[i]?.scores ?? [])]).toEqual(semantic);
    }

    const calibration = calibrateCut(lists, { pipeline, targets: [0.5] });
    const cut = { rule: 'calibrated', target: 0.5, calibration } as const;
    const { cut: applied } = await new Selector({ index, ...options, cut }).select(query);
    expect(applied?.threshold).toBeTypeOf('number');
    expect(() => new Selector({ index, cut })).toThrow(/reranker/);
    const abstain = calibrateAbstention(lists, { pipeline });
    const doubting = new Selector({ index, ...options, abstain: { ...abstain, threshold: 2 } });
    expect((await doubting.select(query)).reason).toBe('unanswerable');
    const some = new Scripted((place) => (place < 3 ? 1 : undefined));
    const partial = new Selector({
      index,
      ...options,
      reranker: some,
      abstain: { ...abstain, threshold: 2 },
    });
    expect(await partial.select(query)).not.toHaveProperty('abstention');
  });

  it('hold for as many candidates as the reranker was given', async () => {
    const reranker = new Scripted((place) => 3 - place / 4);
    const index = await ToolIndex.build(tools, { encoder: new WordEncoder(32) });
    const of = async (rerank: { candidates?: number }) => {
      const { lists, pipeline } = await labelledLists(index, labels, {
        reranker,
        rerank,
        shortlist: 10,
      });
      const calibration = calibrateCut(lists, { pipeline, targets: [0.5] });
      const cut = { rule: 'calibrated', target: 0.5, calibration } as const;
      return { cut, abstain: calibrateAbstention(lists, { pipeline }), shortlist: 10 };
    };
    const twenty = await of({ candidates: 20 });
    const selector = new Selector({ index, reranker, rerank: { candidates: 20 }, ...twenty });
    expect((await selector.select(query)).rerank?.sent).toBe(20);
    const refusal = {
      code: 'FINCH_INVALID_ARGUMENT',
      message: expect.stringMatching(/candidates/),
    };
    const { cut, abstain, shortlist } = twenty;
    for (const wrong of [{ cut, shortlist }, { abstain }]) {
      for (const rerank of [{ candidates: 21 }, { candidates: 10 }, undefined]) {
        const options = { index, reranker, ...wrong, ...(rerank === undefined ? {} : { rerank }) };
        expect(() => new Selector(options)).toThrow(expect.objectContaining(refusal));
      }
    }
    await expect(selector.select(query, { rerank: { candidates: 30 } })).rejects.toMatchObject(
      refusal,
    );
    expect((await selector.select(query, { rerank: { budgetMs: 9999 } })).cut?.rule).toBe(
      'calibrated',
    );
    // The default said or left out is the same.
    const fifty = await of({});
    await new Selector({ index, reranker, rerank: { candidates: 50 }, ...fifty }).select(query);
    const { pipeline } = cut.calibration;
    const { candidates: _, ...old } = pipeline;
    const calibration = { ...cut.calibration, pipeline: old };
    expect(() => new Selector({ index, reranker, cut: { ...cut, calibration } })).toThrow(
      expect.objectContaining(refusal),
    );
  });

  it('leave the reranker out as a Selector does', async () => {
    const index = await ToolIndex.build(tools, { encoder: new WordEncoder(32) });
    const reranker = new Scripted((place) => place);
    const { pipeline } = await labelledLists(index, labels, { reranker, rerank: false });
    expect(pipeline).not.toHaveProperty('reranker');
    expect(reranker.calls).toHaveLength(0);
  });

  it('refuse a reranker that never comes back', async () => {
    const index = await ToolIndex.build(tools, { encoder: new WordEncoder(32) });
    const reranker = new Scripted((place) => place);
    reranker.before = () => new Promise(() => {});
    await expect(
      labelledLists(index, labels, { reranker, rerank: { budgetMs: 5 } }),
    ).rejects.toThrow(/budgetMs \(5\)/);
  });

  it('need a reranker that scores all', async () => {
    const index = await ToolIndex.build(tools, { encoder: new WordEncoder(32) });
    const reranker = new Scripted((place) => (place < 3 ? 1 : undefined));
    await expect(labelledLists(index, labels, { reranker })).rejects.toThrow(/3 of/);
  });
});
