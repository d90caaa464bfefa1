import { throwIfAborted } from '../abort.js';
import { anObject, aString, fields, optional, refuse, rule } from '../check.js';
import { kindOf, shown } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { binding, type SearchMode } from '../native.js';
import type { LexicalHit, LexicalMatch } from './lexical-index.js';
import type { ToolIndex } from './tool-index.js';
import { type AllowSet, asAllowSet, type Snapshot } from './vector-index.js';

/** `dense`: cosine of embeddings; `lexical`: BM25; `hybrid` (default): both, on one scale. */
export type RetrieveMethod = 'hybrid' | 'dense' | 'lexical';

export interface RetrieveQuery {
  readonly text: string;
  /** The text's embedding (the index's dimension); not needed by `lexical`. */
  readonly vector?: Float32Array | undefined;
}

export interface RetrieveOptions {
  /** How many candidates at most; an integer from 1 to 65,536. */
  n: number;
  method?: RetrieveMethod;
  /** Exact or ANN for the dense part; see {@link SearchOptions.mode}. */
  mode?: SearchMode;
  allow?: Iterable<string> | AllowSet | undefined;
  signal?: AbortSignal | undefined;
}

/** One candidate. Scores of parts that did not run are absent. */
export interface Retrieved {
  readonly id: string;
  /** Insertion number of the tool; ties are ordered by it. */
  readonly key: number;
  /** What candidates are ordered by: the cosine, the scaled BM25 or the hybrid of both; at most 1 up to rounding. */
  readonly score: number;
  /** Cosine, in [-1, 1]. */
  readonly dense?: number;
  /** BM25+; only comparable within one query. 0 when no word is shared. */
  readonly lexical?: number;
  /** The query calls this tool by its name. */
  readonly named?: true;
}

/**
 * BM25 enters as `w · √(bm25 / ln(1 + N))` beside a cosine: idf, and with it BM25, grows with ln N; the root keeps long
 * queries, whose BM25 grows with every word, on the cosine's scale. Chosen on held-out queries (docs/retrieval.md).
 */
const lexicalWeight = 0.075;
/** A tool that the query calls by name goes before all that merely resemble it. */
const namedBonus = 0.3;
/** The dense and the lexical list are each read this many times deeper than asked, so that their union holds the best n. */
const overFetch = 4;
const minFetch = 64;

const aQuery = fields({
  text: aString,
  vector: optional(rule((value) => value instanceof Float32Array, 'a Float32Array')),
});

/**
 * The n best candidates for a query, best first.
 *
 * Hybrid (a convex combination; Bruch et al. 2022 find it above rank fusion): every tool near the top of either list
 * gets both scores. When the best is above 1, the list is scaled so that it is 1: scores stay on the cosine's scale,
 * which the fusion's weights are made for.
 *
 * @throws FinchError FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_INVALID_ARGUMENT, FINCH_ABORTED
 */
export async function retrieve(
  index: ToolIndex,
  snapshot: Snapshot,
  query: RetrieveQuery,
  options: RetrieveOptions,
): Promise<Retrieved[]> {
  if (typeof index?.snapshot !== 'function') refuse(index, 'index', 'a ToolIndex');
  if (typeof snapshot?.rank !== 'function') refuse(snapshot, 'snapshot', 'index.snapshot()');
  aQuery(query, 'query');
  anObject(options, 'options');
  const { n, method = 'hybrid', signal } = options;
  if (!['hybrid', 'dense', 'lexical'].includes(method)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `method is ${shown(method)}; expected hybrid, dense or lexical.`,
    );
  }
  if (!Number.isInteger(n) || n < 1 || n > 65_536) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `n is ${kindOf(n)}; expected an integer number of candidates from 1 to 65,536.`,
    );
  }
  throwIfAborted(signal);
  if (snapshot.count === 0) return [];
  const allow = options.allow === undefined ? undefined : asAllowSet(options.allow);

  if (method === 'dense') {
    const hits = await snapshot.search(vectorOf(query, method), {
      k: n,
      mode: options.mode ?? 'auto',
      allow,
      signal,
    });
    return hits.map(({ id, key, score }) => ({ id, key, score, dense: score }));
  }

  if (method === 'lexical') {
    await turn();
    const { hits, scaled, named } = lexicalHits(index, snapshot, query.text, allow, n);
    return order(
      hits.map(({ id, key, score }) => ({
        id,
        key,
        score: scaled(score) + (named.has(id) ? namedBonus : 0),
        lexical: score,
        ...(named.has(id) ? { named: true as const } : {}),
      })),
      n,
    );
  }

  // The pool searches while this thread does.
  const vector = vectorOf(query, method);
  const [dense, before] = await Promise.all([
    snapshot.search(vector, {
      k: Math.min(fetchedFor(n), 65_536),
      mode: options.mode ?? 'auto',
      allow,
      signal,
    }),
    turn().then(() => lexicalHits(index, snapshot, query.text, allow, n)),
  ]);
  const lexical = before.scores.current
    ? before
    : lexicalHits(index, snapshot, query.text, allow, n);
  const { named, scores, scaled } = lexical;
  const candidates = new Map<string, { key: number; dense: number }>();
  for (const { id, key, score } of dense) candidates.set(id, { key, dense: score });
  const missing = lexical.hits
    .filter(({ id }) => !candidates.has(id))
    .map(({ id, key }) => ({ id, key }));
  const cosines = cosinesOf(
    snapshot,
    vector,
    missing.map(({ key }) => key),
  );
  missing.forEach(({ id, key }, i) => {
    candidates.set(id, { key, dense: cosines[i] as number });
  });
  return order(
    [...candidates].map(([id, { key, dense: cosine }]) => {
      const bm25 = scores.of(id);
      return {
        id,
        key,
        score: cosine + scaled(bm25) + (named.has(id) ? namedBonus : 0),
        dense: cosine,
        lexical: bm25,
        ...(named.has(id) ? { named: true as const } : {}),
      };
    }),
    n,
  );
}

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * One turn of the event loop for each lexical search: it runs on this thread, and callbacks of one `setImmediate` phase would
 * run a burst of them without a break.
 */
function turn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => new Promise(setImmediate));
  return lastTurn;
}

function vectorOf(query: RetrieveQuery, method: RetrieveMethod): Float32Array {
  if (query.vector !== undefined) return query.vector;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `the ${method} method needs query.vector, the embedding of the text. Encode it with the index's encoder, or use the lexical method.`,
  );
}

/** The best lexical hits that are allowed, with the keys of those that are in the snapshot, and the scores of all tools. */
function lexicalHits(
  index: ToolIndex,
  snapshot: Snapshot,
  text: string,
  allow: AllowSet | undefined,
  n: number,
): LexicalMatch & {
  hits: (LexicalHit & { key: number })[];
  scaled: (bm25: number) => number;
} {
  const { named, scores } = index.lexical.match(text);
  const near = scores.best(fetchedFor(n), (id) => allow?.has(id) ?? true);
  const listed = new Set(near.map(({ id }) => id));
  for (const id of named) {
    const score = scores.of(id);
    if (score > 0 && !listed.has(id) && (allow?.has(id) ?? true)) near.push({ id, score });
  }
  const keys = snapshot.find(near.map(({ id }) => id));
  const hits = near
    .map((hit, i) => ({ ...hit, key: keys[i] as number }))
    .filter(({ key }) => key !== 0);
  const logCount = Math.log(1 + snapshot.count);
  return {
    named,
    scores,
    hits,
    scaled: (bm25) => lexicalWeight * Math.sqrt(bm25 / logCount),
  };
}

const fetchedFor = (n: number) => Math.max(minFetch, overFetch * n);

function cosinesOf(snapshot: Snapshot, vector: Float32Array, keys: number[]): Float32Array {
  if (keys.length === 0) return new Float32Array(0);
  const rows = snapshot.vectors(Float64Array.from(keys));
  const queries = new Float32Array(rows.length);
  for (let at = 0; at < rows.length; at += vector.length) queries.set(vector, at);
  return binding().cosine(queries, rows, vector.length);
}

function order(candidates: Retrieved[], n: number): Retrieved[] {
  const best = candidates.sort((a, b) => b.score - a.score || a.key - b.key).slice(0, n);
  const top = best[0]?.score ?? 0;
  return top > 1 ? best.map((hit) => ({ ...hit, score: hit.score / top })) : best;
}
