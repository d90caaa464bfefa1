import { throwIfAborted, withAbort } from '../abort.js';
import { anObject, aWholeNumber, optional, rule } from '../check.js';
import { kindOf } from '../describe-value.js';
import { Lifetime } from '../encode/lifetime.js';
import {
  type ModelFolder,
  type RerankerManifest,
  readRerankerFolder,
} from '../encode/model-folder.js';
import { openModel } from '../encode/open-model.js';
import { VectorCache, vectorKey } from '../encode/vector-cache.js';
import { FinchError } from '../errors.js';
import {
  type Binding,
  binding as loadedBinding,
  type PairTruncation,
  type Provider,
  type RerankerHandle,
  type TokenizerHandle,
} from '../native.js';
import {
  aBudget,
  checkRerankArguments,
  type Reranked,
  type Reranker,
  type RerankOptions,
  rankScores,
} from './reranker.js';

/** The addon's functions that a reranker uses. */
export type RerankerBinding = Pick<
  Binding,
  | 'cancelCreate'
  | 'cancelSignal'
  | 'tokenizerOpen'
  | 'tokenizePair'
  | 'rerankerOpen'
  | 'rerankerClose'
  | 'rerankerRuntime'
  | 'rerankerProvider'
  | 'rerank'
>;

export interface OnnxRerankerOptions {
  /** The onnxruntime library; found by `findRuntime` when left out. */
  runtimePath?: string | undefined;
  /** Compare the files' checksums. Default true. */
  verify?: boolean | undefined;
  /** Tokens of a pair, 5 to what the model takes (the default): fewer are faster and read less. */
  maxTokens?: number | undefined;
  /**
   * What is cut from a pair that is too long. `'longest-first'` takes from the longer text, as cross-encoders are usually
   * trained; `'document-first'` never shortens a query that leaves the document a token. Default: the model's own.
   */
  truncation?: PairTruncation | undefined;
  /**
   * Where the model runs; default `'cpu'`. `'cuda'` and `'coreml'` are strict: FINCH_DEVICE where they cannot. `'auto'` takes
   * the first of them that works, else the CPU; {@link OnnxReranker.provider} tells which, and why.
   */
  provider?: Provider | 'auto' | undefined;
  /**
   * Pairs of equal token length per run, 1 to 256. Default on the CPU 1: a pair's bits then never depend on what shares its
   * run, and larger runs are no faster there.
   */
  batchSize?: number | undefined;
  /** The default of {@link RerankOptions.budgetMs}. */
  budgetMs?: number | undefined;
  /** Bytes of the cache of pair scores; default 16 MiB (about 40,000 pairs), 0 for none. */
  cacheBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** The addon; the process's own when left out. */
  binding?: RerankerBinding | undefined;
}

export interface RerankCacheStatistics {
  /** Pairs answered from the cache. */
  hits: number;
  /** Pairs that went to the model. */
  misses: number;
  evictions: number;
  entries: number;
  bytes: number;
}

// Longer budgets than the addon counts (71 minutes) are no limit.
const longestBudget = 0xffffffff;

/** A cross-encoder that runs an ONNX model folder natively, on Toolfinch's thread pool. */
export class OnnxReranker implements Reranker {
  readonly model: string;
  readonly scoreKind = 'logit';
  readonly keepsBudget = true;
  readonly relevanceFloor: number | undefined;
  /** Longest pair in tokens. */
  readonly maxTokens: number;
  readonly truncation: PairTruncation;
  /** Where the model runs. */
  readonly provider: Provider;
  /** Why there: `'asked for'`, or with `'auto'` what kept it from the others. */
  readonly providerReason: string;
  /** The version of onnxruntime. */
  readonly runtime: string;
  /** The model folder. */
  readonly folder: ModelFolder<RerankerManifest>;

  readonly #binding: RerankerBinding;
  readonly #handle: RerankerHandle;
  readonly #tokenizer: TokenizerHandle;
  readonly #lifetime = new Lifetime('the reranker');
  readonly #budgetMs: number | undefined;
  readonly #cache: VectorCache;
  #hits = 0;
  #misses = 0;

  private constructor(
    folder: ModelFolder<RerankerManifest>,
    options: OnnxRerankerOptions,
    pairs: { maxTokens: number; truncation: PairTruncation },
    binding: RerankerBinding,
    handle: RerankerHandle,
    tokenizer: TokenizerHandle,
  ) {
    const { manifest } = folder;
    this.folder = folder;
    this.model = `${manifest.name}@${manifest.revision}`;
    this.relevanceFloor = manifest.relevanceFloor;
    this.maxTokens = pairs.maxTokens;
    this.truncation = pairs.truncation;
    this.runtime = binding.rerankerRuntime(handle);
    const { provider, reason } = binding.rerankerProvider(handle);
    this.provider = provider;
    this.providerReason = reason;
    this.#budgetMs = options.budgetMs;
    this.#cache = new VectorCache(options.cacheBytes ?? 16 * 1024 * 1024);
    this.#binding = binding;
    this.#handle = handle;
    this.#tokenizer = tokenizer;
  }

  /**
   * Opens a model folder whose manifest has the task `reranker`.
   *
   * @throws FinchError those of `readRerankerFolder` and `findRuntime`; FINCH_DEVICE (the runtime refuses the model, or
   *   the provider is not to be had), FINCH_DIMENSION (the model gives more than one number a pair), FINCH_CORRUPT
   *   (vocabulary), FINCH_INVALID_ARGUMENT, FINCH_ABORTED.
   */
  static async open(folder: string, options: OnnxRerankerOptions = {}): Promise<OnnxReranker> {
    checkOptions(options);
    const { signal, batchSize } = options;
    const model = await readRerankerFolder(folder, { verify: options.verify, signal });
    const { manifest } = model;
    const maxTokens = options.maxTokens ?? manifest.maxTokens;
    if (maxTokens > manifest.maxTokens) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `maxTokens is ${maxTokens}; the model ${manifest.name} reads at most ${manifest.maxTokens}`,
      );
    }
    const truncation = options.truncation ?? manifest.truncation ?? 'longest-first';
    const binding = options.binding ?? loadedBinding();
    const { handle, tokenizer } = await openModel(
      binding,
      model,
      options,
      (paths) =>
        binding.rerankerOpen({
          ...paths,
          maxTokens,
          truncation,
          provider: options.provider ?? 'cpu',
          ...(batchSize === undefined ? {} : { batchSize }),
        }),
      (late) => binding.rerankerClose(late),
    );
    return new OnnxReranker(model, options, { maxTokens, truncation }, binding, handle, tokenizer);
  }

  get statistics(): RerankCacheStatistics {
    return {
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#cache.evictions,
      entries: this.#cache.size,
      bytes: this.#cache.bytes,
    };
  }

  /**
   * Scores pairs on the pool, in the documents' order, so that a budget cuts off the last ones; concurrent calls share its
   * threads pair by pair. The budget ends a call at the latest one run (one pair, on the CPU) after it. Aborting frees the
   * threads within one run.
   *
   * @throws FinchError FINCH_ABORTED, FINCH_CLOSED, FINCH_INVALID_ARGUMENT, FINCH_DEVICE, FINCH_NOT_FINITE,
   *   FINCH_NO_MEMORY.
   */
  async rerank(
    query: string,
    documents: readonly string[],
    options: RerankOptions = {},
  ): Promise<Reranked> {
    const start = performance.now();
    checkRerankArguments(query, documents, options);
    return this.#lifetime.run(async () => {
      const { signal, budgetMs = this.#budgetMs ?? Number.POSITIVE_INFINITY } = options;
      throwIfAborted(signal);
      const logits = new Float32Array(documents.length).fill(Number.NaN);
      const keys = documents.map((document) => this.#key(query, document));
      const wanted: number[] = [];
      for (const [i, key] of keys.entries()) {
        if (this.#cache.read(key, logits, i)) this.#hits++;
        else wanted.push(i);
      }
      const left = budgetMs - (performance.now() - start);
      if (wanted.length > 0 && left > 0) {
        const microseconds = Math.ceil(left * 1000);
        const cancel = this.#binding.cancelCreate();
        const work = this.#binding.rerank(
          this.#handle,
          query,
          wanted.map((i) => documents[i] as string),
          microseconds > longestBudget ? null : microseconds,
          cancel,
        );
        const fresh = await withAbort(work, signal, () => this.#binding.cancelSignal(cancel));
        for (const [at, i] of wanted.entries()) {
          const logit = fresh[at] as number;
          if (Number.isNaN(logit)) continue;
          this.#misses++;
          logits[i] = logit;
          this.#cache.write(keys[i] as string, Float32Array.of(logit));
        }
      }
      return rankScores(logits, this.scoreKind);
    });
  }

  /**
   * How many tokens the model sees of a pair, start and both ends included, and how many of them are the document's.
   *
   * @throws FinchError FINCH_CLOSED, FINCH_INVALID_ARGUMENT.
   */
  countTokens(query: string, document: string): { tokens: number; ofDocument: number } {
    checkRerankArguments(query, [document], {});
    if (this.#lifetime.closed) {
      throw new FinchError('FINCH_CLOSED', 'the reranker is closed; open a new one');
    }
    const { maxTokens, truncation } = this;
    const pair = this.#binding.tokenizePair(this.#tokenizer, query, document, {
      maxTokens,
      truncation,
    });
    return { tokens: pair.ids.length, ofDocument: pair.ids.length - pair.documentAt - 1 };
  }

  close(): Promise<void> {
    return this.#lifetime.close(() => this.#binding.rerankerClose(this.#handle));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // The query's length keeps (ab, c) and (a, bc) apart.
  #key(query: string, document: string): string {
    const text = `${query.length} ${query}${document}`;
    return vectorKey({ model: this.model, dimension: 1, kind: 'query', text });
  }
}

const aWholeBatch = optional(aWholeNumber(1, 256));
const aTokenCount = optional(aWholeNumber(5, 65_536));
const aCacheSize = optional(aWholeNumber(0, Number.MAX_SAFE_INTEGER));
const aTruncation = optional(
  rule(
    (value) => value === 'longest-first' || value === 'document-first',
    "'longest-first' or 'document-first'",
  ),
);
const providers: readonly unknown[] = ['cpu', 'cuda', 'coreml', 'auto'];
const aProvider = optional(
  rule((value) => providers.includes(value), "'cpu', 'cuda', 'coreml' or 'auto'"),
);

function checkOptions(options: OnnxRerankerOptions): void {
  anObject(options, 'options');
  aWholeBatch(options.batchSize, 'options.batchSize');
  aTokenCount(options.maxTokens, 'options.maxTokens');
  aCacheSize(options.cacheBytes, 'options.cacheBytes');
  aTruncation(options.truncation, 'options.truncation');
  aProvider(options.provider, 'options.provider');
  optional(aBudget)(options.budgetMs, 'options.budgetMs');
  const { binding } = options;
  if (binding !== undefined && typeof binding?.rerankerOpen !== 'function') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `options.binding is ${kindOf(binding)}; expected the addon's functions`,
    );
  }
}
