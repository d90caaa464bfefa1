/**
 * The addon, as it is: one entry per function of `toolfinch.h` (camelCase, without `finch_`), no policy. The only file
 * that loads it. Everything that can be wrong with an argument is reported as a FinchError by the native side.
 *
 * Conventions: keys are JavaScript numbers in Float64Array (1 ... 2^53 - 1, 0 = no key); typed-array views are honoured
 * (`byteOffset`), shared and detached ones refused; functions returning a Promise run on Toolfinch's thread pool, copy
 * their inputs before returning, and reject rather than throw. Handles are released when closed or collected; closing
 * one while calls use it is safe.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { isMainThread } from 'node:worker_threads';

import { FinchError } from './errors.js';
import { explainLoadFailure, isMissingModule, prebuiltTarget } from './native-load.js';
import { type PrebuiltTarget, packageRoot, requireAddon, requirePrebuilt } from './package-root.js';

export { packageRoot };

declare const handleKind: unique symbol;
interface Handle<Kind extends string> {
  readonly [handleKind]: Kind;
}
export type IndexHandle = Handle<'index'>;
export type SnapshotHandle = Handle<'snapshot'>;
export type AllowHandle = Handle<'allow'>;
export type BanditHandle = Handle<'bandit'>;
export type CancelHandle = Handle<'cancel'>;
export type TokenizerHandle = Handle<'tokenizer'>;
export type EncoderHandle = Handle<'encoder'>;
export type RerankerHandle = Handle<'reranker'>;

export type IdListHandle = Handle<'id list'>;
export type CutRuleHandle = Handle<'cut rule'>;
export type SelectRuleHandle = Handle<'select rule'>;
export type ResultsHandle = Handle<'results'>;

export type SearchMode = 'auto' | 'exact' | 'ann';
export type VectorStorage = 'f32' | 'bf16' | 'f16' | 'i8';
export type BanditForm = 'calibrated' | 'literal' | 'mean';
export type CutSignal = 'score' | 'similarity';

export interface NativeIndexInfo {
  count: number;
  slots: number;
  version: number;
  vectorBytes: number;
  annBytes: number;
  annCount: number;
  dimension: number;
  storage: VectorStorage;
  codeBytes: number;
  mappedBytes: number;
}

export interface NativeOpenOptions {
  map?: boolean;
  verify?: boolean;
}

export interface NativeAnnOptions {
  connectivity?: number;
  expansionAdd?: number;
  expansionSearch?: number;
}

export interface NativeSearchOptions {
  k: number;
  mode?: SearchMode;
  allow?: AllowHandle | undefined;
  threads?: number | undefined;
  overfetch?: number | undefined;
  expansion?: number | undefined;
}

/** `count` rows of `k`; row i holds `counts[i]` results, the rest of it is 0. */
export interface NativeSearchResult {
  counts: Uint32Array;
  keys: Float64Array;
  scores: Float32Array;
}

export interface NativeCutOptions {
  minK?: number;
  maxK?: number;
  /** Both when left out. */
  signals?: readonly CutSignal[];
  boundary?: 'before' | 'after';
}

export interface NativeCut {
  k: number;
  kScore: number;
  kSimilarity: number;
  /** Which signal set k; empty when minK or maxK did, or nothing was cut. */
  signals: CutSignal[];
  gapScore: number;
  gapSimilarity: number;
  /** How many were looked at. */
  n: number;
}

export interface NativeBanditOptions {
  dimension: number;
  form?: BanditForm;
  lambda?: number;
  gamma?: number;
  /** 0 is honoured (no exploration). */
  alpha?: number;
  availabilityGamma?: number;
  availabilityHalfLife?: number;
  availabilityHalfLifeMax?: number;
  /** Of reports, for failed trials; in (0, 1], default 0.0025. */
  trialShare?: number;
  /** No suspension and no budget: availability relaxes by itself. Goes before trialShare. */
  freeTrials?: boolean;
}

/** One entry per id, in the order given. */
export interface NativeArmScores {
  mean: Float32Array;
  bonus: Float32Array;
  availability: Float32Array;
  /** NaN where there is no feedback. */
  lastOutcome: Float32Array;
  /** cos(x, where it worked) − cos(x, where it failed); NaN without both. */
  contrast: Float32Array;
  evidence: Float64Array;
  updates: Float64Array;
}

export interface NativeWeights {
  semantic: number;
  bandit: number;
  prior: number;
  outage?: number;
  clamp?: boolean;
}

export interface NativeRankOptions {
  now: number;
  explore?: boolean;
  weights?: NativeWeights | undefined;
  cut?: NativeCutOptions | undefined;
  /** Candidates less available than this go behind all others and are not seen by the cut; default 0. */
  minAvailability?: number;
}

/** Candidates in fused order (score descending, ties by key). */
export interface NativeRanked extends NativeArmScores {
  keys: Float64Array;
  ids: string[];
  semantic: Float32Array;
  prior: Float32Array;
  score: Float32Array;
  semanticRank: Uint32Array;
  similarities: Float32Array;
  cut: NativeCut;
}

/** Arrays that `banditScoreInto` fills again and again; entries beyond the number it returns are of an earlier call. */
export interface NativeArmScoresOut extends NativeArmScores {
  readonly handle: ResultsHandle;
}

/** Arrays that `selectInto` and `rankInto` fill again and again. All share one ArrayBuffer: transfer copies. */
export interface NativeRankingOut extends NativeArmScores {
  readonly handle: ResultsHandle;
  keys: Float64Array;
  semantic: Float32Array;
  prior: Float32Array;
  score: Float32Array;
  semanticRank: Uint32Array;
  similarities: Float32Array;
  /** k, kScore, kSimilarity, signal (1 score, 2 similarity, 3 both, 0 neither), gapScore, gapSimilarity, n. */
  cut: Float64Array;
}

export interface NativeTokenizerOptions {
  vocabPath: string;
  lowercase: boolean;
  stripAccents: boolean;
  chineseCharacters: boolean;
  maxWordCharacters?: number;
  unknown?: string;
  start?: string;
  end?: string;
  pad?: string;
  continuation?: string;
}

export interface NativeEncoderOptions {
  runtimePath: string;
  modelPath: string;
  tokenizer: TokenizerHandle;
  outputName: string;
  dimension: number;
  maxTokens?: number;
  pooling: 'none' | 'mean' | 'cls';
  batchSize?: number;
}

/** How a pair is made to fit; the first when left out. */
export type PairTruncation = 'longest-first' | 'document-first';
/** Where onnxruntime runs a model. */
export type Provider = 'cpu' | 'cuda' | 'coreml';

export interface NativeRerankerOptions {
  runtimePath: string;
  modelPath: string;
  tokenizer: TokenizerHandle;
  outputName: string;
  maxTokens?: number;
  truncation?: PairTruncation;
  /** Default `'cpu'`; all but `'auto'` are strict. */
  provider?: Provider | 'auto';
  batchSize?: number;
}

export interface Binding {
  abiVersion(): number;
  version(): string;
  isa(): { level: string; reason: string };
  poolThreads(): number;
  /** Ends the use of the model runtime, for good; waits until no thread is inside it. */
  shutdown(): void;

  cancelCreate(): CancelHandle;
  cancelSignal(cancel: CancelHandle): void;

  indexCreate(dimension: number, options?: { storage?: VectorStorage } | null): IndexHandle;
  indexOpen(path: string, options?: NativeOpenOptions | null): Promise<IndexHandle>;
  /** Releases the handle's reference; every later use is FINCH_CLOSED, a second close is nothing. */
  indexClose(index: IndexHandle): void;
  indexUpsert(
    index: IndexHandle,
    ids: readonly string[],
    vectors: Float32Array,
    priors?: Float32Array | null,
  ): Promise<Float64Array>;
  indexUpsertSync(
    index: IndexHandle,
    ids: readonly string[],
    vectors: Float32Array,
    priors?: Float32Array | null,
  ): Float64Array;
  indexSetPriors(index: IndexHandle, ids: readonly string[], priors: Float32Array): Promise<void>;
  indexRemove(index: IndexHandle, ids: readonly string[]): Promise<void>;
  indexInspect(index: IndexHandle): NativeIndexInfo;
  indexBuildAnn(
    index: IndexHandle,
    options?: NativeAnnOptions | null,
    cancel?: CancelHandle | null,
  ): Promise<void>;
  indexDropAnn(index: IndexHandle): void;
  indexSave(
    index: IndexHandle,
    path: string,
    blobs: ReadonlyArray<{ name: string; data: Uint8Array }>,
  ): Promise<void>;
  /** A copy of the section, or undefined when the file has none of that name. */
  indexBlob(index: IndexHandle, name: string): Uint8Array | undefined;
  indexSnapshot(index: IndexHandle): SnapshotHandle;
  /** A token for `indexFromShared` in any thread of this process; it does not keep the index alive. */
  indexShare(index: IndexHandle): string;
  /** The same native index. FINCH_CLOSED when it is gone, FINCH_INVALID_ARGUMENT for another process's token. */
  indexFromShared(token: string): IndexHandle;
  banditShare(bandit: BanditHandle): string;
  banditFromShared(token: string): BanditHandle;
  /** Objects with a token that are still there, in the whole process. */
  sharedCount(): number;

  snapshotClose(snapshot: SnapshotHandle): void;
  snapshotVersion(snapshot: SnapshotHandle): number;
  snapshotCount(snapshot: SnapshotHandle): number;
  snapshotKeys(snapshot: SnapshotHandle): Float64Array;
  snapshotFind(snapshot: SnapshotHandle, ids: readonly string[]): Float64Array;
  snapshotIds(snapshot: SnapshotHandle, keys: Float64Array): string[];
  snapshotVectors(snapshot: SnapshotHandle, keys: Float64Array): Float32Array;
  snapshotPriors(snapshot: SnapshotHandle, keys: Float64Array): Float32Array;

  allowCreate(
    snapshot: SnapshotHandle,
    ids: readonly string[],
  ): { allow: AllowHandle; matched: number };

  /** queries: count x dimension, count = queries.length / dimension (FINCH_DIMENSION when it does not divide). */
  search(
    snapshot: SnapshotHandle,
    queries: Float32Array,
    options: NativeSearchOptions,
    cancel?: CancelHandle | null,
  ): Promise<NativeSearchResult>;
  searchSync(
    snapshot: SnapshotHandle,
    queries: Float32Array,
    options: NativeSearchOptions,
  ): NativeSearchResult;
  /** How long a search may wait for others to share its pass over the vectors, 0 to 100,000 µs; default 0. Process-wide. */
  searchSetWait(microseconds: number): void;
  /** a, b: count x dimension. */
  cosine(a: Float32Array, b: Float32Array, dimension: number): Float32Array;

  /** embeddings: n x dimension (dimension = embeddings.length / n) or null with the score signal alone. */
  truncate(
    scores: Float32Array,
    embeddings: Float32Array | null,
    options?: NativeCutOptions | null,
  ): { cut: NativeCut; similarities: Float32Array };
  /** List j is rows offsets[j] ... offsets[j + 1] - 1. */
  truncateBatch(
    scores: Float32Array,
    embeddings: Float32Array | null,
    offsets: Float64Array,
    options?: NativeCutOptions | null,
  ): NativeCut[];

  banditCreate(options: NativeBanditOptions): BanditHandle;
  banditClose(bandit: BanditHandle): void;
  banditScore(
    bandit: BanditHandle,
    ids: readonly string[],
    priors: Float32Array,
    x: Float32Array,
    now: number,
    explore: boolean,
  ): NativeArmScores;
  /** List j is ids offsets[j] ... offsets[j + 1] - 1, scored in row j of contexts (lists x dimension). */
  banditScoreBatch(
    bandit: BanditHandle,
    ids: readonly string[],
    priors: Float32Array,
    offsets: Float64Array,
    contexts: Float32Array,
    now: number,
    explore: boolean,
  ): NativeArmScores;
  /** Row i of xs (count x dimension) is the context of outcome i; null: outcomes without one (health checks). */
  banditUpdate(
    bandit: BanditHandle,
    ids: readonly string[],
    xs: Float32Array | null,
    priors: Float32Array,
    outcomes: Float32Array,
    times: Float64Array,
  ): void;
  banditDrop(bandit: BanditHandle, ids: readonly string[]): void;
  banditArms(bandit: BanditHandle): { count: number; bytes: number };
  banditSerialize(bandit: BanditHandle): Uint8Array;
  banditDeserialize(bandit: BanditHandle, state: Uint8Array): void;

  fuse(
    semantic: Float32Array,
    p: Float32Array | null,
    prior: Float32Array | null,
    availability: Float32Array | null,
    weights?: NativeWeights | null,
  ): Float32Array;
  rank(
    snapshot: SnapshotHandle,
    bandit: BanditHandle | null,
    keys: Float64Array,
    semantic: Float32Array,
    x: Float32Array,
    options: NativeRankOptions,
  ): NativeRanked;
  select(
    snapshot: SnapshotHandle,
    bandit: BanditHandle | null,
    query: Float32Array,
    search: NativeSearchOptions,
    rank: NativeRankOptions,
    cancel?: CancelHandle | null,
  ): Promise<NativeRanked>;
  selectSync(
    snapshot: SnapshotHandle,
    bandit: BanditHandle | null,
    query: Float32Array,
    search: NativeSearchOptions,
    rank: NativeRankOptions,
  ): NativeRanked;

  // The hot path without anything made per call: what is prepared once, and results into the caller's arrays. The same
  // bits as the calls above.

  /** Ids for `banditScoreInto`, with the priors (default 0.5) of those without feedback. */
  idListCreate(ids: readonly string[], priors?: Float32Array | null): IdListHandle;
  cutRuleCreate(options?: NativeCutOptions | null): CutRuleHandle;
  /** `rank.now` gives way to the argument of each call; an allow set binds the rule to its snapshot. */
  selectRuleCreate(search: NativeSearchOptions, rank: NativeRankOptions): SelectRuleHandle;
  /** capacity: 1 to 65,536. */
  armScoresCreate(capacity: number): NativeArmScoresOut;
  rankingCreate(capacity: number): NativeRankingOut;
  /** Returns how many ids the list has; `out` is the handle of `armScoresCreate`'s result. */
  banditScoreInto(
    bandit: BanditHandle,
    ids: IdListHandle,
    x: Float32Array,
    now: number,
    explore: boolean,
    out: ResultsHandle,
  ): number;
  /** Returns k; `cut` has room for the seven numbers of {@link NativeRankingOut.cut}. */
  truncateInto(
    scores: Float32Array,
    embeddings: Float32Array | null,
    rule: CutRuleHandle,
    cut: Float64Array,
  ): number;
  /** Returns how many candidates there are; `out` is the handle of `rankingCreate`'s result. */
  rankInto(
    snapshot: SnapshotHandle,
    bandit: BanditHandle | null,
    keys: Float64Array,
    semantic: Float32Array,
    x: Float32Array,
    rule: SelectRuleHandle,
    now: number,
    out: ResultsHandle,
  ): number;
  /** `rankInto` on what the rule's search finds; `out` needs room for its k. */
  selectInto(
    snapshot: SnapshotHandle,
    bandit: BanditHandle | null,
    query: Float32Array,
    rule: SelectRuleHandle,
    now: number,
    out: ResultsHandle,
  ): number;

  tokenizerOpen(options: NativeTokenizerOptions): TokenizerHandle;
  tokenize(tokenizer: TokenizerHandle, text: string, maxTokens: number): Int32Array;
  encoderOpen(options: NativeEncoderOptions): Promise<EncoderHandle>;
  encoderClose(encoder: EncoderHandle): void;
  encoderRuntime(encoder: EncoderHandle): string;
  /** texts.length x dimension unit vectors. */
  encode(
    encoder: EncoderHandle,
    texts: readonly string[],
    cancel?: CancelHandle | null,
  ): Promise<Float32Array>;

  /** The token ids of a pair, and the place where the document's part begins. */
  tokenizePair(
    tokenizer: TokenizerHandle,
    query: string,
    document: string,
    options: { maxTokens: number; truncation?: PairTruncation },
  ): { ids: Int32Array; documentAt: number };
  rerankerOpen(options: NativeRerankerOptions): Promise<RerankerHandle>;
  rerankerClose(reranker: RerankerHandle): void;
  rerankerRuntime(reranker: RerankerHandle): string;
  /** What was taken, and why. */
  rerankerProvider(reranker: RerankerHandle): { provider: Provider; reason: string };
  /** A logit per document; NaN where the budget (1 to 2^32 - 1 microseconds; none: no limit) ended before its run began. */
  rerank(
    reranker: RerankerHandle,
    query: string,
    documents: readonly string[],
    budget?: number | null,
    cancel?: CancelHandle | null,
  ): Promise<Float32Array>;
}

/** What the addon exports: the functions, and the door through which it is given the error class. */
interface Addon extends Binding {
  initialize(classes: { FinchError: typeof FinchError }): void;
}

/** FINCH_ABI_VERSION of the header this package was written for. */
const abiVersion = 1;

let explicit: string | Binding | undefined;
let loaded: Binding | undefined;

/**
 * Says which addon to use, before anything of Toolfinch needs it: a path to a `toolfinch.node`, or its exports (for
 * bundlers: `setNativeBinding(require('toolfinch/native/linux-x64'))`). Goes before the environment variable
 * TOOLFINCH_BINDING.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT when an addon is in use already.
 */
export function setNativeBinding(pathOrExports: string | Binding): void {
  if (loaded !== undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'setNativeBinding() came too late: an addon is in use already. Call it before anything else of Toolfinch.',
    );
  }
  explicit = pathOrExports;
}

/**
 * The addon, loaded at the first call.
 *
 * @throws FinchError FINCH_DEVICE when it cannot be loaded; the message explains why and how to mend it, `cause` is
 * the original error. The next call tries again.
 */
export function binding(): Binding {
  loaded ??= load();
  return loaded;
}

function load(): Binding {
  const target = prebuiltTarget();
  const choice = explicit ?? (process.env.TOOLFINCH_BINDING || undefined);
  let candidate: unknown;
  try {
    if (typeof choice === 'string') {
      candidate = requireAddon(path.resolve(choice));
    } else if (choice !== undefined) {
      candidate = choice;
    } else if (target === undefined) {
      throw new Error(`no binary for ${process.platform}-${process.arch}`);
    } else {
      candidate = loadPrebuilt(target);
    }
  } catch (cause) {
    const file = typeof choice === 'string' ? path.resolve(choice) : undefined;
    throw new FinchError(
      'FINCH_DEVICE',
      explainLoadFailure(cause, { target, file, root: packageRoot() }),
      { cause },
    );
  }
  return check(candidate);
}

function loadPrebuilt(target: PrebuiltTarget): unknown {
  try {
    return requirePrebuilt(target);
  } catch (error) {
    // Running from elsewhere than the built package (its sources, say): look beside package.json.
    const file = path.join(packageRoot(), 'prebuilds', target, 'toolfinch.node');
    if (!isMissingModule(error) || !existsSync(file)) throw error;
    return requireAddon(file);
  }
}

function check(candidate: unknown): Binding {
  const addon = candidate as Partial<Addon> | null | undefined;
  if (typeof addon?.abiVersion !== 'function' || typeof addon.initialize !== 'function') {
    throw new FinchError(
      'FINCH_DEVICE',
      "Toolfinch's native addon could not be used: what was loaded is not Toolfinch's addon. Expected the exports of " +
        'a toolfinch.node: check TOOLFINCH_BINDING or the argument of setNativeBinding().',
    );
  }
  const actual = addon.abiVersion();
  if (actual !== abiVersion) {
    throw new FinchError(
      'FINCH_DEVICE',
      `Toolfinch's native addon could not be used: it speaks ABI version ${actual} but this package needs ` +
        `${abiVersion}, so the two come from different releases. Reinstall toolfinch (from a checkout: npm run build), ` +
        'and check TOOLFINCH_BINDING.',
    );
  }
  addon.initialize({ FinchError });
  // exit() destroys onnxruntime's static objects: whoever is inside it must be out before. A worker's end is no exit.
  if (isMainThread) process.once('exit', () => (addon as Binding).shutdown());
  return addon as Binding;
}
