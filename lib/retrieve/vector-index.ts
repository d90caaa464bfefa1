import { type AbortOptions, withCancel } from '../abort.js';
import { anObject } from '../check.js';
import { FinchError } from '../errors.js';
import {
  type AllowHandle,
  type BanditHandle,
  binding,
  type IndexHandle,
  type NativeRanked,
  type NativeRankOptions,
  type NativeSearchResult,
  type SearchMode,
  type SnapshotHandle,
  type VectorStorage,
} from '../native.js';

/** One row found by a search. `score` is the cosine, in [-1, 1] up to rounding. */
export interface Hit {
  readonly id: string;
  /** The row's insertion number: 1 and up, kept when the row is replaced, never reused. Ties are ordered by it. */
  readonly key: number;
  readonly score: number;
}

export interface SearchOptions extends AbortOptions {
  /** How many rows at most; an integer from 1 to 65,536. */
  k: number;
  /** `auto` (default): the ANN graph when there is one, else exact. */
  mode?: SearchMode;
  /** Ids that may be returned. An empty list allows nothing; ids that are not in the index are ignored. */
  allow?: Iterable<string> | AllowSet | undefined;
  /** Threads that may work on this search, 1 or more. Left out: as many as there are where the work is worth sharing. */
  threads?: number | undefined;
  /**
   * With a storage other than `f32`: how many candidates are rescored, k at least. Left out: at most k + k / 16 + 16, with
   * `i8` k + k / 4 + 24, and of those the ones so near to the k-th that rounding could have put them behind it.
   */
  overfetch?: number | undefined;
  /**
   * With the ANN graph: how many candidates its walk keeps (ef), from k to 65,536. More find more of the true best and take
   * longer. Left out: the graph's `expansionSearch`, or k + k / 4 + 16 if that is more.
   */
  expansion?: number | undefined;
}

export interface VectorIndexOptions {
  /**
   * What exact search scans: the float32 vectors themselves (`f32`, default) or a smaller copy of them (half the bytes
   * for `bf16` and `f16`, a quarter for `i8`), whose best candidates are rescored from float32. Scores stay float32 dot
   * products; a row whose smaller copy is not among the best `overfetch` is missed.
   */
  storage?: VectorStorage;
}

export interface OpenOptions {
  /**
   * Leaves the vectors in the file, mapped read-only (default false): processes that map the same file share its memory,
   * and opening copies none of it. Changes are made in memory as ever. A file renamed over it changes nothing; one that
   * is shortened or written in place meanwhile may end the process.
   */
  map?: boolean;
  /**
   * With `map`: false opens without reading the vectors, for files that were verified before (default true: every byte
   * is checked). Damaged vectors then give wrong scores instead of FINCH_CORRUPT.
   */
  verify?: boolean;
}

export interface AnnOptions extends AbortOptions {
  /** Links per node (M); default 16. */
  connectivity?: number;
  /** Candidates kept while inserting (efConstruction); default 128. */
  expansionAdd?: number;
  /** Candidates kept while searching (ef); default 96. */
  expansionSearch?: number;
}

export interface VectorIndexInfo {
  readonly count: number;
  readonly dimension: number;
  /** Rows with room reserved, removed ones included. */
  readonly slots: number;
  /** Raised by every change. */
  readonly version: number;
  readonly vectorBytes: number;
  readonly annBytes: number;
  readonly annCount: number;
  readonly storage: VectorStorage;
  /** Bytes of the copy in `storage`, 0 for `f32`. */
  readonly codeBytes: number;
  /** Bytes that lie in a mapped file, beside vectorBytes and codeBytes. */
  readonly mappedBytes: number;
}

/** A named section of an index file; names are 1 to 63 bytes. */
export interface FileSection {
  readonly name: string;
  readonly data: Uint8Array;
}

/**
 * Ids that may be returned, prepared once and used for many requests (a user's or tenant's visible tools). It follows
 * the index: an id added later under the same name is allowed from then on.
 *
 * Visibility, not authorisation: check again where the tool is called.
 */
export class AllowSet {
  readonly ids: readonly string[];
  readonly #members: ReadonlySet<string>;
  #handle: AllowHandle | undefined;
  #matched = 0;
  #version = -1;
  #owner: WeakRef<VectorIndex> | undefined;

  /** @throws FinchError FINCH_INVALID_ARGUMENT for anything but an iterable of strings; one string is refused too */
  constructor(ids: Iterable<string>) {
    this.ids = idList('allow', ids);
    this.#members = new Set(this.ids);
  }

  has(id: string): boolean {
    return this.#members.has(id);
  }

  /** @internal The bitset for one snapshot; made anew when the index has changed since. */
  bind(owner: VectorIndex, snapshot: Snapshot): { allow: AllowHandle; matched: number } {
    if (
      this.#handle === undefined ||
      this.#version !== snapshot.version ||
      this.#owner?.deref() !== owner
    ) {
      const made = binding().allowCreate(snapshot.handle, this.ids);
      this.#handle = made.allow;
      this.#matched = made.matched;
      this.#version = snapshot.version;
      this.#owner = new WeakRef(owner);
    }
    return { allow: this.#handle, matched: this.#matched };
  }
}

/**
 * One consistent state of a {@link VectorIndex}: what it returns never mixes rows from before and after a change.
 * Close it when the request is done; it keeps replaced rows in memory.
 */
export class Snapshot implements Disposable {
  readonly #owner: VectorIndex;
  /** @internal */
  readonly handle: SnapshotHandle;
  readonly version: number;
  readonly count: number;
  #searches = 0;
  #closed = false;

  /** @internal */
  constructor(owner: VectorIndex, handle: SnapshotHandle) {
    this.#owner = owner;
    this.handle = handle;
    this.version = binding().snapshotVersion(handle);
    this.count = binding().snapshotCount(handle);
  }

  /** Keys in insertion order. */
  keys(): Float64Array {
    return binding().snapshotKeys(this.handle);
  }

  /** Keys of ids, 0 where an id is not in this state. */
  find(ids: readonly string[]): Float64Array {
    return binding().snapshotFind(this.handle, ids);
  }

  ids(keys: Float64Array): string[] {
    return binding().snapshotIds(this.handle, keys);
  }

  /** Stored unit vectors, keys.length × dimension. */
  vectors(keys: Float64Array): Float32Array {
    return binding().snapshotVectors(this.handle, keys);
  }

  priors(keys: Float64Array): Float32Array {
    return binding().snapshotPriors(this.handle, keys);
  }

  /** How many rows an allow list leaves; the whole count without one. */
  eligible(allow: SearchOptions['allow']): number {
    return allow === undefined ? this.count : asAllowSet(allow).bind(this.#owner, this).matched;
  }

  /**
   * The k best rows by cosine for one query vector (length = dimension; normalised inside), on Toolfinch's thread pool.
   *
   * @throws FinchError FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_INVALID_ARGUMENT, FINCH_ABORTED
   */
  async search(query: Float32Array, options: SearchOptions): Promise<Hit[]> {
    const native = this.#options(query, options);
    return this.#held(async () => {
      const found = await withCancel(options.signal, (cancel) =>
        binding().search(this.handle, query, native, cancel),
      );
      return this.#hits(found);
    });
  }

  /**
   * {@link search} for many query vectors at once (queries.length = n × dimension, row after row): one pass over the
   * vectors serves all of them, many times quicker than one by one. The same results, to the bit.
   */
  async searchMany(queries: Float32Array, options: SearchOptions): Promise<Hit[][]> {
    const native = this.#options(queries, options, 'many');
    return this.#held(async () => {
      const found = await withCancel(options.signal, (cancel) =>
        binding().search(this.handle, queries, native, cancel),
      );
      return Array.from(found.counts, (_, q) => this.#hits(found, q, native.k));
    });
  }

  /** {@link search} on the calling thread: for small indexes, where a hop to the pool costs more than the work. */
  searchSync(query: Float32Array, options: Omit<SearchOptions, 'signal'>): Hit[] {
    return this.#hits(binding().searchSync(this.handle, query, this.#options(query, options)));
  }

  /** Search, reliability, fusion and cut in one native call; the same bits as the stages one by one. */
  select(
    bandit: BanditHandle | null,
    query: Float32Array,
    search: SearchOptions,
    rank: NativeRankOptions,
  ): Promise<NativeRanked> {
    const native = this.#options(query, search);
    return withCancel(search.signal, (cancel) =>
      binding().select(this.handle, bandit, query, native, rank, cancel),
    );
  }

  /** {@link select} on the calling thread. */
  selectSync(
    bandit: BanditHandle | null,
    query: Float32Array,
    search: Omit<SearchOptions, 'signal'>,
    rank: NativeRankOptions,
  ): NativeRanked {
    return binding().selectSync(this.handle, bandit, query, this.#options(query, search), rank);
  }

  /** From given candidates to the cut: reliability, fusion, order, truncation. */
  rank(
    bandit: BanditHandle | null,
    keys: Float64Array,
    semantic: Float32Array,
    context: Float32Array,
    options: NativeRankOptions,
  ): NativeRanked {
    return binding().rank(this.handle, bandit, keys, semantic, context, options);
  }

  #options(
    query: Float32Array,
    options: Omit<SearchOptions, 'signal'>,
    queries: 'one' | 'many' = 'one',
  ) {
    if (this.#closed) {
      throw new FinchError(
        'FINCH_CLOSED',
        'the snapshot was closed; take another from the index with snapshot().',
      );
    }
    if (!(query instanceof Float32Array) || typeof options !== 'object' || options === null) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        'expected a query as a Float32Array and options as { k, … }.',
      );
    }
    const { dimension } = this.#owner;
    if (queries === 'many' && (query.length === 0 || query.length % dimension !== 0)) {
      throw new FinchError(
        'FINCH_DIMENSION',
        `the queries have ${query.length} numbers, no multiple of the index's ${dimension} dimensions. Give whole query vectors, row after row.`,
      );
    }
    if (queries === 'one' && query.length !== dimension) {
      throw new FinchError(
        'FINCH_DIMENSION',
        `the query has ${query.length} numbers, the index ${dimension} dimensions. Encode queries with the model the index was built with.`,
      );
    }
    const allow =
      options.allow === undefined
        ? undefined
        : asAllowSet(options.allow).bind(this.#owner, this).allow;
    const { k, mode = 'auto', threads, overfetch, expansion } = options;
    return { k, mode, allow, threads, overfetch, expansion } as const;
  }

  #hits(found: NativeSearchResult, query = 0, k = 0): Hit[] {
    const first = query * k;
    const keys = found.keys.subarray(first, first + (found.counts[query] ?? 0));
    const ids = binding().snapshotIds(this.handle, keys);
    return ids.map((id, i) => ({
      id,
      key: keys[i] as number,
      score: found.scores[first + i] as number,
    }));
  }

  /** Twice is fine. Searches under way finish. */
  close(): void {
    this.#closed = true;
    if (this.#searches === 0) binding().snapshotClose(this.handle);
  }

  /** Keeps the snapshot open for what a search still reads of it. */
  async #held<T>(search: () => Promise<T>): Promise<T> {
    this.#searches++;
    try {
      return await search();
    } finally {
      if (--this.#searches === 0 && this.#closed) binding().snapshotClose(this.handle);
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * How long an asynchronous search may wait for others to share its pass over the vectors, in microseconds, 0 to 100,000.
 * Default 0: searches that happen to wait for a thread are taken together, and none waits for company. For the whole process.
 */
export function setSearchWait(microseconds: number): void {
  binding().searchSetWait(microseconds);
}

/** @internal */
export function idList(name: string, ids: Iterable<string>): string[] {
  // A string is iterable letter by letter: taken so, an exclude list of one tool would exclude nothing.
  const list =
    typeof ids === 'object' && ids !== null && Symbol.iterator in ids ? [...ids] : undefined;
  if (list?.every((id) => typeof id === 'string')) return list;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${name} is ${list === undefined ? `a ${typeof ids}` : 'a list with something else than strings'}; expected an array (or another iterable) of strings.`,
  );
}

/** @internal */
export function asAllowSet(allow: Iterable<string> | AllowSet): AllowSet {
  return allow instanceof AllowSet ? allow : new AllowSet(allow);
}

/**
 * Unit vectors by string id: exact cosine search on the native core, an HNSW graph (usearch) on request. Readers are never
 * blocked by writers; a change is visible all at once.
 */
export class VectorIndex implements Disposable {
  readonly #handle: IndexHandle;
  readonly dimension: number;

  private constructor(handle: IndexHandle) {
    this.#handle = handle;
    this.dimension = binding().indexInspect(handle).dimension;
  }

  /** An empty index. @param dimension 1 to 65,536. @throws FinchError FINCH_INVALID_ARGUMENT */
  static create(dimension: number, options: VectorIndexOptions = {}): VectorIndex {
    return new VectorIndex(binding().indexCreate(dimension, options));
  }

  /** Its storage is the file's. @throws FinchError FINCH_IO, FINCH_CORRUPT, FINCH_VERSION, FINCH_INVALID_ARGUMENT */
  static async open(path: string, options: OpenOptions = {}): Promise<VectorIndex> {
    return new VectorIndex(await binding().indexOpen(path, options));
  }

  /**
   * The index that {@link share} gave the token for, without a copy: what one thread changes, all see. Close it on its
   * own; the native index goes when the last thread has closed (or dropped) it.
   *
   * @throws FinchError FINCH_CLOSED when the index is gone, FINCH_INVALID_ARGUMENT for anything but a token of this process
   */
  static fromShared(token: string): VectorIndex {
    return new VectorIndex(binding().indexFromShared(token));
  }

  /**
   * A token for {@link fromShared} in a worker of this process: a short string, for `workerData` or `postMessage`. It does
   * not keep the index alive: keep this object until the worker has answered.
   */
  share(): string {
    return binding().indexShare(this.#handle);
  }

  /**
   * Adds or replaces rows; all become visible at once, or, on an error, none.
   *
   * @param vectors ids.length × dimension, row-major float32; normalised inside.
   * @param priors Reliability priors in [0, 1], one a row; left out: 0.5 for new rows, unchanged for replaced ones.
   * @returns The rows' keys.
   * @throws FinchError FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_DUPLICATE_ID, FINCH_INVALID_ARGUMENT
   */
  upsert(
    ids: readonly string[],
    vectors: Float32Array,
    priors?: Float32Array,
  ): Promise<Float64Array> {
    return binding().indexUpsert(this.#handle, ids, vectors, priors ?? null);
  }

  /** @throws FinchError FINCH_UNKNOWN_ID, FINCH_DUPLICATE_ID, FINCH_INVALID_ARGUMENT */
  setPriors(ids: readonly string[], priors: Float32Array): Promise<void> {
    return binding().indexSetPriors(this.#handle, ids, priors);
  }

  /** Removes all of the ids or, on an error, none. @throws FinchError FINCH_UNKNOWN_ID, FINCH_DUPLICATE_ID */
  remove(ids: readonly string[]): Promise<void> {
    return binding().indexRemove(this.#handle, ids);
  }

  /**
   * Builds the HNSW graph over the present rows beside readers and writers; later changes keep it up. Seconds for tens of
   * thousands of rows. Calling again rebuilds and compacts.
   */
  buildAnn(options: AnnOptions = {}): Promise<void> {
    anObject(options, 'options');
    const { signal, ...native } = options;
    return withCancel(signal, (cancel) => binding().indexBuildAnn(this.#handle, native, cancel));
  }

  dropAnn(): void {
    binding().indexDropAnn(this.#handle);
  }

  /** Writes the file beside `path` and renames it: a crash leaves the old file whole. @throws FinchError FINCH_IO */
  save(path: string, sections: readonly FileSection[] = []): Promise<void> {
    return binding().indexSave(this.#handle, path, sections);
  }

  /** A section of the file this index was opened from, copied; undefined when there is none of that name. */
  section(name: string): Uint8Array | undefined {
    return binding().indexBlob(this.#handle, name);
  }

  info(): VectorIndexInfo {
    return binding().indexInspect(this.#handle);
  }

  snapshot(): Snapshot {
    return new Snapshot(this, binding().indexSnapshot(this.#handle));
  }

  /** {@link Snapshot.search} on the present state. */
  async search(query: Float32Array, options: SearchOptions): Promise<Hit[]> {
    const snapshot = this.snapshot();
    try {
      return await snapshot.search(query, options);
    } finally {
      snapshot.close();
    }
  }

  /** {@link Snapshot.searchMany} on the present state. */
  async searchMany(queries: Float32Array, options: SearchOptions): Promise<Hit[][]> {
    const snapshot = this.snapshot();
    try {
      return await snapshot.searchMany(queries, options);
    } finally {
      snapshot.close();
    }
  }

  /** Twice is fine; every other use after it is FINCH_CLOSED. Searches under way finish. */
  close(): void {
    binding().indexClose(this.#handle);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
