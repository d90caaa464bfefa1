import { types } from 'node:util';
import { indexText } from '../catalog/index-text.js';
import { aFunction, aList, aSignal, aString, fields, optional, refuse } from '../check.js';
import { encodeChecked } from '../encode/encoder.js';
import { FinchError } from '../errors.js';
import type { Reranker } from '../rerank/reranker.js';
import { type Retrieved, type RetrieveMethod, retrieve } from '../retrieve/retrieve.js';
import type { ToolIndex } from '../retrieve/tool-index.js';
import { type Pipeline, pipelineParts } from '../truncate/calibration.js';
import type { LabelledList } from '../truncate/ranked-list.js';
import type { Decision } from './decision.js';
import {
  checkedReranker,
  checkRerank,
  type RerankSettings,
  rerankCandidates,
  rerankParts,
  retrievalDepth,
} from './rerank-stage.js';

/** A query and the tools that are right for it. */
export interface LabelledText {
  readonly text: string;
  /** Ids, in an array or a Set; empty when no tool answers the query. */
  readonly gold: readonly string[] | ReadonlySet<string>;
}

export interface LabelledListOptions {
  /** Default `hybrid`. */
  method?: RetrieveMethod | undefined;
  /** Candidates in a list; default 50. */
  shortlist?: number | undefined;
  /** The Selector's, if it has one: the scores are then its. */
  reranker?: Reranker | undefined;
  /** As the Selector's `rerank`. */
  rerank?: RerankSettings | false | undefined;
  onProgress?: ((progress: { readonly done: number; readonly total: number }) => void) | undefined;
  signal?: AbortSignal | undefined;
}

const someOptions = fields({ onProgress: optional(aFunction), signal: optional(aSignal) });
const someTexts = aList(fields({ text: aString }));
/** Texts encoded at once. */
const batch = 64;

/**
 * What the calibrations of cuts and abstaining are made from: the ranked list of each query, as a Selector without feedback
 * would see it, and where its gold tools stand in it.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_UNKNOWN_ID (a gold tool is not in the index), FINCH_ABORTED, and what the
 * encoder and the reranker throw
 */
export async function labelledLists(
  index: ToolIndex,
  queries: readonly LabelledText[],
  options: LabelledListOptions = {},
): Promise<{ lists: LabelledList[]; pipeline: Pipeline }> {
  if (typeof index?.snapshot !== 'function') refuse(index, 'index', 'a ToolIndex');
  someTexts(queries, 'queries');
  someOptions(options, 'options');
  const { method = 'hybrid', shortlist = 50, rerank, onProgress, signal } = options;
  checkRerank(rerank);
  const given = checkedReranker(options.reranker);
  const reranker = rerank === false ? undefined : given;
  const n = retrievalDepth(shortlist, reranker, rerank);
  const golds = queries.map(({ gold }, i) => goldOf(gold, i, index));
  const lists: LabelledList[] = [];
  const snapshot = index.snapshot();
  try {
    for (let at = 0; at < queries.length; at += batch) {
      const texts = queries.slice(at, at + batch).map(({ text }) => text);
      const vectors = await encodeChecked(index.encoder, texts, { kind: 'query', signal });
      const d = index.encoder.dimension;
      for (const [i, text] of texts.entries()) {
        const vector = vectors.slice(i * d, (i + 1) * d);
        const found = await retrieve(index, snapshot, { text, vector }, { n, method, signal });
        const ranked =
          reranker === undefined
            ? found.map((hit) => ({ hit, semantic: hit.score }))
            : await reranked(index, reranker, text, found, { ...rerank, shortlist, signal });
        const gold = golds[at + i] as ReadonlySet<string>;
        lists.push({
          scores: Float32Array.from(ranked, ({ semantic }) => semantic),
          embeddings: snapshot.vectors(Float64Array.from(ranked, ({ hit }) => hit.key)),
          relevant: ranked.flatMap(({ hit }, position) => (gold.has(hit.id) ? [position] : [])),
          gold: gold.size,
        });
        onProgress?.({ done: lists.length, total: queries.length });
      }
    }
  } finally {
    snapshot.close();
  }
  return {
    lists,
    pipeline: pipelineParts({
      encoder: index.encoder.model,
      method,
      shortlist,
      ...rerankParts(reranker, rerank),
    }),
  };
}

/** The shortlist after the reranker; a list that it did not score whole would calibrate for another pipeline. */
async function reranked(
  index: ToolIndex,
  reranker: Reranker,
  text: string,
  found: readonly Retrieved[],
  settings: Parameters<typeof rerankCandidates>[4],
) {
  const textOf = ({ id }: Retrieved) => indexText(index.tool(id), index.indexText);
  const { shortlist, record } = await rerankCandidates(reranker, text, found, textOf, settings);
  if (found.length === 0 || record.outcome === 'done') return shortlist;
  throw new FinchError(
    record.error?.code ?? 'FINCH_ABORTED',
    record.error?.message ??
      `the reranker scored ${record.scored} of ${record.sent} candidates of '${text}' in time; give it a larger budgetMs`,
  );
}

/** How a chosen tool did. */
export interface DecisionOutcome {
  readonly decision: Decision;
  readonly toolId: string;
  /** `true`: it was the right tool and worked. */
  readonly ok: boolean;
}

/**
 * Labels from reported outcomes: each decision with a tool that worked becomes a query whose gold tools are those that worked.
 * A tool that was needed and not shown leaves no outcome, so a calibration from these labels can only be as good as the cut
 * that was in use: run a generous one (a fixed k of 20, or of all candidates) for a share of requests to gather them.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT
 */
export function labelsFromOutcomes(outcomes: readonly DecisionOutcome[]): LabelledText[] {
  aList(fields({ toolId: aString, decision: fields({ id: aString, query: aString }) }))(
    outcomes,
    'outcomes',
  );
  const worked = new Map<string, { text: string; gold: Set<string> }>();
  outcomes.forEach(({ decision, toolId, ok }, i) => {
    if (typeof ok !== 'boolean') refuse(ok, `outcomes[${i}].ok`, 'true or false');
    if (!ok) return;
    const query = worked.get(decision.id) ?? { text: decision.query, gold: new Set<string>() };
    query.gold.add(toolId);
    worked.set(decision.id, query);
  });
  return [...worked.values()];
}

function goldOf(gold: unknown, i: number, index: ToolIndex): ReadonlySet<string> {
  // No other iterables: an iterator such as `map.keys()` is empty the second time, and a query without gold is a query too.
  if (!Array.isArray(gold) && !types.isSet(gold)) {
    refuse(
      gold,
      `queries[${i}].gold`,
      'an array or a Set of tool ids; spread an iterator: [...ids]',
    );
  }
  const ids: unknown[] = [...gold];
  aList(aString)(ids, `queries[${i}].gold`);
  for (const id of ids as string[]) {
    if (index.get(id) === undefined) {
      throw new FinchError(
        'FINCH_UNKNOWN_ID',
        `queries[${i}].gold names '${id}', which is not in the index; ids are compared byte for byte`,
      );
    }
  }
  return new Set(ids as string[]);
}
