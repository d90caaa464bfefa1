import { describe, expect, it } from 'vitest';
import {
  type Reranked,
  type Reranker,
  rankScores,
  rerankChecked,
  sigmoid,
} from '../../lib/rerank/reranker.js';

describe('sigmoid', () => {
  it('is exact at both ends and symmetric', () => {
    expect(sigmoid(0)).toBe(0.5);
    expect(sigmoid(1000)).toBe(1);
    expect(sigmoid(-1000)).toBe(0);
    expect(sigmoid(-700)).toBeGreaterThan(0);
    for (const x of [0.1, 1, 3.7, 12, 30]) {
      expect(sigmoid(x) + sigmoid(-x)).toBeCloseTo(1, 15);
      expect(Math.log(sigmoid(-x) / (1 - sigmoid(-x)))).toBeCloseTo(-x, 6);
    }
  });
});

describe('a ranking', () => {
  it('goes by raw scores, where probabilities no longer differ', () => {
    const { documents, scored } = rankScores([40, 50, 45, -800, -790], 'logit');
    expect(documents.map(({ index }) => index)).toEqual([1, 2, 0, 4, 3]);
    expect(documents.slice(0, 3).map(({ probability }) => probability)).toEqual([1, 1, 1]);
    expect(scored).toBe(5);
  });

  it('keeps equal scores in the order given, and puts what has none behind', () => {
    const { documents, scored } = rankScores([Number.NaN, 1, Number.NaN, 1, 2], 'probability');
    expect(documents.map(({ index }) => index)).toEqual([4, 1, 3, 0, 2]);
    expect(documents[3]).toEqual({ index: 0 });
    expect(scored).toBe(3);
    expect(rankScores([], 'logit')).toEqual({ documents: [], scored: 0 });
  });
});

describe('a reranker of somebody else', () => {
  const giving = (reranked: unknown): Reranker => ({
    model: 'm@1',
    scoreKind: 'logit',
    rerank: async () => reranked as Reranked,
    close: async () => undefined,
  });
  const good = { index: 0, score: 3, probability: 0.9 };

  it('is taken when each document is there once', async () => {
    const reranked = await rerankChecked(
      giving({ documents: [{ index: 1, score: 2, probability: 0.8 }, { index: 0 }], scored: 9 }),
      'q',
      ['a', 'b'],
      {},
    );
    expect(reranked.scored).toBe(1);
  });

  it.each([
    ['nothing', undefined],
    ['no list', { documents: 'a' }],
    ['too few', { documents: [good] }],
    ['one twice', { documents: [good, good] }],
    ['one out of range', { documents: [good, { index: 2 }] }],
    ['no index', { documents: [good, { score: 1 }] }],
    ['a score without a probability', { documents: [good, { index: 1, score: 1 }] }],
    ['a probability above 1', { documents: [good, { index: 1, score: 1, probability: 2 }] }],
    ['NaN', { documents: [good, { index: 1, score: Number.NaN, probability: 0 }] }],
    ['null', { documents: [good, null] }],
    ['Infinity', { documents: [{ index: 0, score: Infinity, probability: 1 }, { index: 1 }] }],
    ['a better one later', { documents: [good, { index: 1, score: 4, probability: 0.95 }] }],
  ])('is named when it gives %s', async (_, reranked) => {
    await expect(rerankChecked(giving(reranked), 'q', ['a', 'b'], {})).rejects.toMatchObject({
      code: 'FINCH_CORRUPT',
      message: expect.stringContaining('m@1') as string,
    });
  });

  it.each([
    [[good], /has 1 of them; .* each of 2/],
    [[good, { index: 1, score: Number.NaN, probability: 0 }], /documents\[1\]\.score is .*NaN/],
    [[good, { index: 1, score: 1 }], /documents\[1\]\.probability is missing/],
    [[good, good], /documents\[1\]\.index is 0 for the second time/],
  ])('is told its fault: %j', async (documents, message) => {
    await expect(rerankChecked(giving({ documents }), 'q', ['a', 'b'], {})).rejects.toThrow(
      message,
    );
  });

  it('cannot change its reply afterwards', async () => {
    const mine = { ...good };
    const reranked = await rerankChecked(giving({ documents: [mine] }), 'q', ['a'], {});
    mine.score = Number.NaN;
    expect(reranked.documents).toEqual([good]);
  });

  it('is not asked when the signal has fired before', async () => {
    let asked = false;
    const reranker = { ...giving({ documents: [good] }) };
    reranker.rerank = async () => {
      asked = true;
      return { documents: [good], scored: 1 };
    };
    const options = { signal: AbortSignal.abort() };
    await expect(rerankChecked(reranker, 'q', ['a'], options)).rejects.toMatchObject({
      code: 'FINCH_ABORTED',
    });
    expect(asked).toBe(false);
  });
});
