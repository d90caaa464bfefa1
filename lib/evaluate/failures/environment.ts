import { encodeChecked } from '../../encode/encoder.js';
import { FinchError } from '../../errors.js';
import { type Retrieved, type RetrieveMethod, retrieve } from '../../retrieve/retrieve.js';
import type { ToolIndex } from '../../retrieve/tool-index.js';
import type { Snapshot } from '../../retrieve/vector-index.js';
import type { Dataset, DatasetQuery } from '../dataset.js';
import { hashed } from '../random.js';

/** A query's candidates, best first. `tools` are places in the catalogue. */
export interface CandidateList {
  readonly tools: Uint32Array;
  readonly keys: Float64Array;
  readonly scores: Float32Array;
}

/** Where a method's candidates come from; `rerank` only where a reranker was given. */
export type CandidateSource = RetrieveMethod | 'rerank';

/** A labelled query, encoded and retrieved once. */
export interface SimulatedQuery {
  readonly id: string;
  readonly vector: Float32Array;
  /** Places of the right tools. */
  readonly gold: ReadonlySet<number>;
  readonly candidates: Readonly<Partial<Record<CandidateSource, CandidateList>>>;
}

/** A catalogue and its queries, ready to be simulated. Everything a method may look at. */
export interface Environment {
  readonly name: string;
  readonly index: ToolIndex;
  readonly snapshot: Snapshot;
  readonly toolIds: readonly string[];
  /** Where each tool comes from: its group, else its source. */
  readonly origins: readonly (string | undefined)[];
  readonly priors: Float32Array;
  readonly dimension: number;
  /** Streams that count are drawn from these. */
  readonly test: readonly SimulatedQuery[];
  /** Warm-up pairs, and streams on which settings are chosen: no query of `test`. */
  readonly validation: readonly SimulatedQuery[];
}

/** Scores pairs of a query and tools, higher is better; each in [0, 1]. */
export type Reranker = (query: string, toolIds: readonly string[]) => Promise<Float32Array>;

export interface PrepareOptions {
  /** Candidates kept of each query: the protocol's 10, and as many again for tools that are not there yet. */
  readonly depth?: number;
  /** Validation queries at most. */
  readonly maxValidation?: number;
  readonly reranker?: Reranker | undefined;
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}

const encodeAtOnce = 64;

/**
 * Encodes and retrieves every query once. Validation queries are those of the split `train`; a dataset without such a
 * split gives a third of its queries, chosen by a hash of their place.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT when either part is empty, and what encoder and retrieval throw
 */
export async function prepareEnvironment(
  dataset: Dataset,
  index: ToolIndex,
  options: PrepareOptions = {},
): Promise<Environment> {
  const { maxValidation = 2000 } = options;
  const { test, validation } = splitQueries(dataset);
  const some = spread(validation, maxValidation);
  if (test.length === 0 || some.length === 0) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${dataset.name} leaves ${test.length} test and ${some.length} validation queries; expected at least one of each`,
    );
  }
  const snapshot = index.snapshot();
  try {
    const toolIds = index.ids();
    const keys = snapshot.find(toolIds);
    const placeOfId = new Map(toolIds.map((id, place) => [id, place]));
    const prepared = await prepareQueries(
      [...test, ...some],
      { index, snapshot, placeOfId },
      options,
    );
    return {
      name: dataset.name,
      index,
      snapshot,
      toolIds,
      origins: toolIds.map((id) => index.get(id)?.group ?? index.get(id)?.source),
      priors: snapshot.priors(keys),
      dimension: index.encoder.dimension,
      test: prepared.slice(0, test.length),
      validation: prepared.slice(test.length),
    };
  } catch (error) {
    snapshot.close();
    throw error;
  }
}

function splitQueries(dataset: Dataset): { test: DatasetQuery[]; validation: DatasetQuery[] } {
  const queries = [...dataset.queries];
  const validation = queries.filter(({ split }) => split === 'train');
  if (validation.length > 0)
    return { test: queries.filter(({ split }) => split === 'test'), validation };
  const held = queries.map((_, i) => hashed(1, i, 0) < 1 / 3);
  return {
    test: queries.filter((_, i) => held[i] === false),
    validation: queries.filter((_, i) => held[i] === true),
  };
}

/** About every n-th, so that a limit keeps the mix. */
function spread<T>(items: readonly T[], limit: number): T[] {
  const share = Math.min(1, limit / items.length);
  return items.filter((_, i) => Math.floor((i + 1) * share) > Math.floor(i * share));
}

async function prepareQueries(
  queries: readonly DatasetQuery[],
  place: { index: ToolIndex; snapshot: Snapshot; placeOfId: ReadonlyMap<string, number> },
  { depth = 20, reranker, onProgress }: PrepareOptions,
): Promise<SimulatedQuery[]> {
  const { index, snapshot, placeOfId } = place;
  const { dimension } = index.encoder;
  const list = (hits: readonly Retrieved[]): CandidateList => ({
    tools: Uint32Array.from(hits, ({ id }) => placeOfId.get(id) as number),
    keys: Float64Array.from(hits, ({ key }) => key),
    scores: Float32Array.from(hits, ({ score }) => score),
  });
  const prepared: SimulatedQuery[] = [];
  for (let start = 0; start < queries.length; start += encodeAtOnce) {
    const part = queries.slice(start, start + encodeAtOnce);
    const texts = part.map(({ text }) => text);
    const vectors = await encodeChecked(index.encoder, texts, { kind: 'query' });
    for (const [i, { id, text, gold }] of part.entries()) {
      const vector = vectors.slice(i * dimension, (i + 1) * dimension);
      const found = (method: RetrieveMethod) =>
        retrieve(index, snapshot, { text, vector }, { n: depth, method, mode: 'exact' });
      const hybrid = await found('hybrid');
      prepared.push({
        id,
        vector,
        gold: new Set(
          [...gold].filter(([, grade]) => grade > 0).map(([tool]) => placeOfId.get(tool) as number),
        ),
        candidates: {
          hybrid: list(hybrid),
          dense: list(await found('dense')),
          lexical: list(await found('lexical')),
          ...(reranker === undefined
            ? {}
            : { rerank: await reranked(reranker, text, hybrid, list) }),
        },
      });
    }
    onProgress?.({ done: prepared.length, total: queries.length });
  }
  return prepared;
}

async function reranked(
  reranker: Reranker,
  text: string,
  hits: readonly Retrieved[],
  list: (hits: readonly Retrieved[]) => CandidateList,
): Promise<CandidateList> {
  const scores = await reranker(
    text,
    hits.map(({ id }) => id),
  );
  const scored = hits.map((hit, i) => ({ ...hit, score: scores[i] as number }));
  return list(scored.sort((a, b) => b.score - a.score || a.key - b.key));
}

/** The `count` best candidates that are not hidden. */
export function firstVisible(
  list: CandidateList,
  count: number,
  hidden: ReadonlySet<number>,
): CandidateList {
  if (hidden.size === 0) {
    if (list.tools.length <= count) return list;
    return {
      tools: list.tools.subarray(0, count),
      keys: list.keys.subarray(0, count),
      scores: list.scores.subarray(0, count),
    };
  }
  const places: number[] = [];
  for (let i = 0; i < list.tools.length && places.length < count; i++) {
    if (!hidden.has(list.tools[i] as number)) places.push(i);
  }
  return {
    tools: Uint32Array.from(places, (i) => list.tools[i] as number),
    keys: Float64Array.from(places, (i) => list.keys[i] as number),
    scores: Float32Array.from(places, (i) => list.scores[i] as number),
  };
}
