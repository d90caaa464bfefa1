import { throwIfAborted } from '../abort.js';
import { aWholeNumber, onlyFields, optional } from '../check.js';
import { shown } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { aBudget, checkReranker, type Reranker, rerankChecked } from '../rerank/reranker.js';
import type { Retrieved } from '../retrieve/retrieve.js';
import type { Pipeline } from '../truncate/calibration.js';
import type { RerankRecord } from './decision.js';

export interface RerankSettings {
  /** How many retrieved tools go to the reranker, at most; default 50. Of them the best `shortlist` are fused and cut. */
  candidates?: number;
  /**
   * Milliseconds for the reranker; default its own, which a reranker of your own must keep itself. What it leaves unscored stays behind
   * what it scored. One that does not come back in time is left, see {@link Reranker.keepsBudget}.
   */
  budgetMs?: number;
}

const defaultCandidates = 50;
/** Scores that are less apart than this are moved apart: float32 keeps it through the weighted sum. */
const step = 2 ** -20;
/** A tool that the query calls by name goes before all that merely fit it, this far before the best of them. */
const namedBonus = 0.3;

const someSettings = onlyFields({
  candidates: optional(aWholeNumber(1, 65_536)),
  budgetMs: optional(aBudget),
});

/** @throws FinchError FINCH_INVALID_ARGUMENT */
export function checkRerank(rerank: RerankSettings | false | undefined): void {
  if (rerank !== false) optional(someSettings)(rerank, 'rerank');
}

/** What a call asks of the reranker: its own fields, and the Selector's where it has none; `false` leaves the reranker out. */
export function mergeRerank(
  own: RerankSettings | false | undefined,
  call: RerankSettings | false | undefined,
): RerankSettings | false | undefined {
  if (call === undefined) return own;
  if (call === false || own === undefined || own === false) return call;
  const { candidates = own.candidates, budgetMs = own.budgetMs } = call;
  return {
    ...(candidates === undefined ? {} : { candidates }),
    ...(budgetMs === undefined ? {} : { budgetMs }),
  };
}

/** The reranker of a Selector, if it has one. @throws FinchError FINCH_INVALID_ARGUMENT */
export function checkedReranker(reranker: Reranker | undefined): Reranker | undefined {
  if (reranker !== undefined) checkReranker(reranker);
  return reranker;
}

/** What a calibration must know of the reranker: whose scores they are, and among how many tools it chose. */
export function rerankParts(
  reranker: Reranker | undefined,
  settings: RerankSettings | false | undefined,
): Pick<Pipeline, 'reranker' | 'candidates'> {
  if (reranker === undefined || settings === false) return {};
  return { reranker: reranker.model, candidates: settings?.candidates ?? defaultCandidates };
}

/** How many tools retrieval is asked for. */
export function retrievalDepth(
  shortlist: number,
  reranker: Reranker | undefined,
  settings: RerankSettings | false | undefined,
): number {
  if (reranker === undefined || settings === false) return shortlist;
  return Math.max(shortlist, settings?.candidates ?? defaultCandidates);
}

/** Candidates after reranking, with the semantic score that is fused, and what was done. */
export interface RerankedCandidates {
  /** Those to fuse and cut, best first, each with its S_sem. */
  readonly shortlist: ReadonlyArray<{ readonly hit: Retrieved; readonly semantic: number }>;
  readonly record: RerankRecord;
}

/**
 * Scores what was retrieved and keeps the best `shortlist`. Whatever goes wrong but an abort, the retrieval's order and scores
 * stand, and the record says why.
 *
 * @param textOf the text of a candidate that the reranker reads
 * @throws FinchError FINCH_ABORTED
 */
export async function rerankCandidates(
  reranker: Reranker,
  query: string,
  retrieved: readonly Retrieved[],
  textOf: (hit: Retrieved) => string,
  settings: RerankSettings & { shortlist: number; signal?: AbortSignal | undefined },
): Promise<RerankedCandidates> {
  const { candidates = defaultCandidates, budgetMs, shortlist, signal } = settings;
  const sent = retrieved.slice(0, candidates);
  const base = { model: reranker.model, scoreKind: reranker.scoreKind, sent: sent.length };
  const asRetrieved = () =>
    retrieved.slice(0, shortlist).map((hit) => ({ hit, semantic: hit.score }));
  let reranked: Awaited<ReturnType<typeof rerankChecked>>;
  try {
    reranked = await rerankChecked(reranker, query, sent.map(textOf), { signal, budgetMs });
  } catch (error) {
    throwIfAborted(signal);
    const { code, message } =
      error instanceof FinchError
        ? error
        : {
            code: 'FINCH_INTERNAL' as const,
            message: error instanceof Error ? String(error) : shown(error),
          };
    const order = sent.map((hit, rank) => ({ id: hit.id, retrievalRank: rank }));
    const record = {
      ...base,
      outcome: 'failed' as const,
      scored: 0,
      order,
      error: { code, message },
    };
    return { shortlist: asRetrieved(), record };
  }
  const order = reranked.documents.map(({ index, score, probability }) => ({
    id: (sent[index] as Retrieved).id,
    retrievalRank: index,
    ...(score === undefined ? {} : { score, probability: probability as number }),
  }));
  const { scored } = reranked;
  const outcome = scored === sent.length ? ('done' as const) : ('partial' as const);
  const record: RerankRecord = { ...base, outcome, scored, order };
  if (scored === 0) return { shortlist: asRetrieved(), record };

  // What was retrieved beyond `candidates` is as good as unscored.
  const places = [...order.map(({ retrievalRank }) => retrievalRank), ...retrieved.keys()];
  const semantic = semanticScores(
    order.slice(0, scored).map((each) => each.probability as number),
    retrieved.length - scored,
  );
  const best = semantic[0] as number;
  const all = [...new Set(places)].map((place, i) => {
    const hit = retrieved[place] as Retrieved;
    const named = best + namedBonus - i * step;
    return { hit, semantic: hit.named === true ? named : (semantic[i] as number) };
  });
  // Named tools come to the front; the sort is stable, so that nothing else moves.
  all.sort((a, b) => b.semantic - a.semantic);
  return { shortlist: all.slice(0, shortlist), record };
}

/**
 * S_sem for a ranking by raw scores: the probabilities (falling), then, for what has none, equal steps from the last of them
 * towards 0. Equal neighbours of different raw scores do not occur among the results unless the reranker's order has them:
 * probabilities that float32 could not tell apart are moved {@link step} apart, downwards.
 */
export function semanticScores(probabilities: readonly number[], unscored: number): number[] {
  const semantic: number[] = [];
  for (const probability of probabilities) {
    const before = semantic.at(-1) ?? Number.POSITIVE_INFINITY;
    semantic.push(Math.min(probability, before - step));
  }
  const last = semantic.at(-1) ?? 0;
  for (let i = 1; i <= unscored; i++) {
    const even = last > 0 ? (last * (unscored + 1 - i)) / (unscored + 1) : last;
    semantic.push(Math.min(even, last - i * step));
  }
  return semantic;
}

/** What the reranker did to a request. */
export interface RerankedRequest {
  readonly record: RerankRecord;
  /** How many tools the retrieval found. */
  readonly retrieved: number;
  /** The probability below which the reranker's best match is usually none. */
  readonly floor: number | undefined;
}
