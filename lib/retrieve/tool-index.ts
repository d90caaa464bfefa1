import { throwIfAborted } from '../abort.js';
import { contentHash } from '../catalog/content-hash.js';
import {
  type IndexTextOptions,
  indexText,
  indexTextRecipe,
  lexicalFields,
} from '../catalog/index-text.js';
import { estimateTokens } from '../catalog/tokens.js';
import { checkTool, type Tool } from '../catalog/tool.js';
import { aFunction, aList, anObject, aString, fields, optional } from '../check.js';
import { kindOf, shown } from '../describe-value.js';
import { checkEncoder, type Encoder } from '../encode/encoder.js';
import { FinchError } from '../errors.js';
import { inTurns } from '../in-turns.js';
import { encodeAll, type Progress } from './encode-all.js';
import { type Forgetful, Forgetting } from './forgetting.js';
import { type Consistency, type PriorRule, priorsOf } from './index-priors.js';
import { readToolSections, writeToolSections } from './index-sections.js';
import { LexicalIndex } from './lexical-index.js';
import {
  type AnnOptions,
  type OpenOptions,
  type Snapshot,
  VectorIndex,
  type VectorIndexInfo,
  type VectorIndexOptions,
} from './vector-index.js';

export interface ToolIndexOptions extends VectorIndexOptions {
  /** Text to vectors. Queries must be encoded by the same model. */
  encoder: Encoder;
  /** What of a tool is embedded. Kept with the index: an index file remembers the recipe it was built with. */
  indexText?: IndexTextOptions;
  /**
   * The static reliability prior: RATED's metadata prior (default; encodes each tool's name and description too, which
   * about doubles the cost of indexing), or `none`: 0.5 for every tool.
   */
  prior?: PriorRule;
  /** From this many tools on, searches use an HNSW graph (usearch). Default 50,000; Infinity: always exact. */
  annThreshold?: number;
  ann?: Omit<AnnOptions, 'signal'>;
}

const anOptions = fields({ indexText: optional(anObject), ann: optional(anObject) });

export interface ChangeOptions {
  signal?: AbortSignal | undefined;
  /** Called as texts are encoded. */
  onProgress?: (progress: Progress) => void;
  /**
   * A FeedbackStore or ReplicatedFeedback that is to forget (`drop`) what it learnt of the tools that this change replaces by
   * others of the same id, or removes. Left out: it is kept. It is asked when the change is made and the next may begin; what
   * `drop` throws is thrown with the ids, the change stays, and the next change with the same `feedback` asks again.
   */
  feedback?: Forgetful | undefined;
}

const aChange = fields({
  onProgress: optional(aFunction),
  feedback: optional(fields({ drop: aFunction })),
});

/** What a change did to the catalogue. */
export interface ChangeSummary {
  readonly added: number;
  readonly replaced: number;
  /** Tools whose text was already embedded: their vectors were reused. */
  readonly unchanged: number;
  readonly removed: number;
  /** Texts that went through the encoder. */
  readonly encoded: number;
}

/** @internal What the index keeps of a tool beside its vector. */
export interface Entry {
  readonly tool: Tool;
  /** Of the text that was embedded, and how. */
  readonly hash: string;
  readonly consistency: Consistency;
  readonly tokens: number;
}

/**
 * A catalogue ready to be searched: tools, their embeddings, a lexical index and reliability priors, in one file. Tools are
 * added, replaced and removed without rebuilding; a text that was embedded before is not embedded again.
 */
export class ToolIndex implements Disposable {
  readonly encoder: Encoder;
  readonly indexText: IndexTextOptions;
  readonly prior: PriorRule;
  readonly #vectors: VectorIndex;
  readonly #entries = new Map<string, Entry>();
  readonly #lexical = new LexicalIndex();
  readonly #annThreshold: number;
  readonly #ann: Omit<AnnOptions, 'signal'>;
  /** Changes are made one after another, so that each sees what the one before it left. */
  #changing: Promise<unknown> = Promise.resolve();
  readonly #forgetting = new Forgetting();

  private constructor(vectors: VectorIndex, options: ToolIndexOptions) {
    anOptions(options, 'options');
    this.encoder = options.encoder;
    this.indexText = options.indexText ?? {};
    this.prior = options.prior ?? 'metadata';
    this.#vectors = vectors;
    this.#annThreshold = options.annThreshold ?? 50_000;
    this.#ann = options.ann ?? {};
    const { connectivity = 16, expansionAdd = 128, expansionSearch = 96 } = this.#ann;
    const sizes = [connectivity, expansionAdd, expansionSearch];
    if (
      !sizes.every((size) => Number.isInteger(size) && size >= 1) ||
      connectivity < 2 ||
      connectivity > 128 ||
      expansionAdd > 65_536 ||
      expansionSearch > 65_536
    ) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `ann is ${shown(options.ann)}; expected connectivity from 2 to 128, and expansionAdd and expansionSearch from 1 to 65,536.`,
      );
    }
    if (this.prior !== 'metadata' && this.prior !== 'none') {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `prior is ${shown(options.prior)}; expected 'metadata' or 'none'.`,
      );
    }
    if (typeof this.#annThreshold !== 'number' || !(this.#annThreshold >= 1)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `annThreshold is ${kindOf(options.annThreshold)}; expected a number of tools, 1 or more, or Infinity to always search exactly.`,
      );
    }
  }

  /** Embeds and indexes a catalogue. @throws FinchError FINCH_DUPLICATE_ID, and what the encoder throws */
  static async build(
    tools: readonly Tool[],
    options: ToolIndexOptions & ChangeOptions,
  ): Promise<ToolIndex> {
    checkEncoder(options?.encoder);
    const vectors = VectorIndex.create(options.encoder.dimension, options);
    try {
      const index = new ToolIndex(vectors, options);
      indexTextRecipe(index.indexText);
      await index.upsert(tools, options);
      return index;
    } catch (error) {
      vectors.close();
      throw error;
    }
  }

  /**
   * Opens an index file. With `map`, its vectors are shared with the other processes that opened it so.
   *
   * @throws FinchError FINCH_IO, FINCH_CORRUPT, FINCH_VERSION; FINCH_INVALID_ARGUMENT when the file was built by another
   * model than the encoder's
   */
  static async open(
    path: string,
    options: Omit<ToolIndexOptions, 'indexText' | 'prior' | 'storage'> & OpenOptions,
  ): Promise<ToolIndex> {
    checkEncoder(options?.encoder);
    const vectors = await VectorIndex.open(path, options);
    try {
      const { meta, entries } = await readToolSections(path, vectors);
      const { encoder } = options;
      if (meta.model !== encoder.model || vectors.dimension !== encoder.dimension) {
        throw new FinchError(
          'FINCH_INVALID_ARGUMENT',
          `${path} was built with ${meta.model} (${vectors.dimension} dimensions), the encoder is ${encoder.model} (${encoder.dimension}). Open it with the encoder it was built with, or index the tools again.`,
        );
      }
      const index = new ToolIndex(vectors, {
        ...options,
        indexText: meta.indexText,
        prior: meta.prior,
      });
      await index.#addLexical(entries);
      for (const entry of entries) index.#entries.set(entry.tool.id, entry);
      return index;
    } catch (error) {
      vectors.close();
      throw error;
    }
  }

  /** What an index file was built with, without an encoder. @throws FinchError as {@link open} */
  static async inspect(
    path: string,
  ): Promise<{ readonly model: string; readonly dimension: number; readonly count: number }> {
    const vectors = await VectorIndex.open(path);
    try {
      const { meta, entries } = await readToolSections(path, vectors);
      return { model: meta.model, dimension: vectors.dimension, count: entries.length };
    } finally {
      vectors.close();
    }
  }

  get count(): number {
    return this.#entries.size;
  }

  get(id: string): Tool | undefined {
    return this.#entries.get(id)?.tool;
  }

  /** @throws FinchError FINCH_UNKNOWN_ID */
  tool(id: string): Tool {
    return this.#entry(id).tool;
  }

  /** Ids, in insertion order. */
  ids(): string[] {
    return [...this.#entries.keys()];
  }

  /** Every tool, in insertion order. */
  tools(): Tool[] {
    return [...this.#entries.values()].map((entry) => entry.tool);
  }

  /** Tools of an exact id or name: for a model that calls a tool it was not shown. */
  resolve(name: string): Tool[] {
    const exact = this.get(name);
    if (exact !== undefined) return [exact];
    return this.tools().filter((tool) => tool.name === name);
  }

  /** Estimated prompt tokens of a tool's definition. @throws FinchError FINCH_UNKNOWN_ID */
  tokens(id: string): number {
    return this.#entry(id).tokens;
  }

  info(): VectorIndexInfo & { readonly model: string } {
    return { ...this.#vectors.info(), model: this.encoder.model };
  }

  /** @internal */
  snapshot(): Snapshot {
    return this.#vectors.snapshot();
  }

  /** @internal */
  get lexical(): LexicalIndex {
    return this.#lexical;
  }

  /**
   * Adds tools, or replaces those with the same id; searches see all of them at once, or, on an error, none.
   *
   * @throws FinchError FINCH_DUPLICATE_ID (twice in one call), FINCH_ABORTED, and what the encoder throws
   */
  upsert(tools: readonly Tool[], options: ChangeOptions = {}): Promise<ChangeSummary> {
    return this.#change(options, () => this.#apply(tools, [], options));
  }

  /** Removes all of the ids or, when one is not there, none. @throws FinchError FINCH_UNKNOWN_ID, FINCH_DUPLICATE_ID */
  remove(ids: readonly string[], options: ChangeOptions = {}): Promise<ChangeSummary> {
    return this.#change(options, () => this.#apply([], ids, options));
  }

  /** Makes the catalogue equal to `tools`: adds, replaces and removes, embedding only texts that are new. */
  sync(tools: readonly Tool[], options: ChangeOptions = {}): Promise<ChangeSummary> {
    return this.#change(options, () => {
      aList(checkTool)(tools, 'tools');
      const wanted = new Set(tools.map((tool) => tool.id));
      const gone = this.ids().filter((id) => !wanted.has(id));
      return this.#apply(tools, gone, options);
    });
  }

  /** Writes vectors, tools and settings into one file, beside `path` and renamed. @throws FinchError FINCH_IO */
  save(path: string): Promise<void> {
    return this.#exclusively(async () => {
      const meta = {
        model: this.encoder.model,
        indexText: this.indexText,
        prior: this.prior,
      };
      const sections = await writeToolSections(meta, [...this.#entries.values()]);
      return this.#vectors.save(path, sections);
    });
  }

  #entry(id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      throw new FinchError(
        'FINCH_UNKNOWN_ID',
        `there is no tool ${shown(id)} in this index of ${this.count}.`,
      );
    }
    return entry;
  }

  #exclusively<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#changing.then(change);
    this.#changing = result.catch(() => undefined);
    return result;
  }

  /** Feedback forgets when the change is made and the next may begin, so that its `drop` may wait for other changes. */
  async #change(
    options: ChangeOptions,
    apply: () => Promise<{ summary: ChangeSummary; forgotten: readonly string[] }>,
  ): Promise<ChangeSummary> {
    const { summary, forgotten } = await this.#exclusively(apply);
    if (options.feedback !== undefined) {
      await this.#forgetting.forget(options.feedback, forgotten);
    }
    return summary;
  }

  async #apply(
    tools: readonly Tool[],
    gone: readonly string[],
    options: ChangeOptions,
  ): Promise<{ summary: ChangeSummary; forgotten: readonly string[] }> {
    aChange(options, 'options');
    throwIfAborted(options.signal);
    aList(checkTool)(tools, 'tools');
    aList(aString)(gone, 'ids');
    refuseDuplicates(tools.map((tool) => tool.id));
    refuseDuplicates(gone);
    for (const id of gone) this.#entry(id);
    const recipe = indexTextRecipe(this.indexText);
    const fresh: { tool: Tool; hash: string; tokens: number; text: string }[] = [];
    const kept: Entry[] = [];
    let added = 0;
    const replaced: string[] = [];
    await inTurns(tools, (tool) => {
      const text = indexText(tool, this.indexText);
      const hash = contentHash(tool, text, this.encoder.model, recipe);
      const tokens = estimateTokens(tool);
      const old = this.#entries.get(tool.id);
      if (old?.hash === hash) {
        kept.push({ ...old, tool, tokens });
      } else {
        if (old === undefined) added += 1;
        else replaced.push(tool.id);
        fresh.push({ tool, hash, tokens, text });
      }
    });

    const encoded = await encodeAll(this.encoder, fresh, this.prior, options);
    const changed: Entry[] = [
      ...kept,
      ...fresh.map(({ tool, hash, tokens }, i) => ({
        tool,
        hash,
        consistency: encoded.consistency[i] ?? null,
        tokens,
      })),
    ];
    throwIfAborted(options.signal);

    if (fresh.length > 0) {
      await this.#vectors.upsert(
        fresh.map(({ tool }) => tool.id),
        encoded.vectors,
      );
    }
    if (gone.length > 0) await this.#vectors.remove(gone);
    for (const id of gone) {
      this.#entries.delete(id);
      this.#lexical.remove(id);
    }
    for (const entry of changed) this.#entries.set(entry.tool.id, entry);
    await this.#addLexical(changed);
    await this.#setPriors();
    await this.#keepAnn();
    const summary = {
      added,
      replaced: replaced.length,
      unchanged: kept.length,
      removed: gone.length,
      encoded: encoded.texts,
    };
    return { summary, forgotten: [...replaced, ...gone] };
  }

  async #addLexical(entries: readonly Entry[]): Promise<void> {
    await inTurns(entries, ({ tool }) => this.#lexical.upsert(tool.id, lexicalFields(tool)));
  }

  /** The prior's quality term is relative to the catalogue's medians, so any change may move any tool's prior. */
  async #setPriors(): Promise<void> {
    if (this.prior === 'none' || this.#entries.size === 0) return;
    const ids = this.ids();
    const priors = priorsOf([...this.#entries.values()]);
    const snapshot = this.snapshot();
    const before = snapshot.priors(snapshot.find(ids));
    snapshot.close();
    const moved = ids.map((_, i) => i).filter((i) => priors[i] !== before[i]);
    if (moved.length === 0) return;
    await this.#vectors.setPriors(
      moved.map((i) => ids[i] as string),
      Float32Array.from(moved, (i) => priors[i] as number),
    );
  }

  /** Without the caller's signal: the change is made, and an abort must not say otherwise. */
  async #keepAnn(): Promise<void> {
    const { count, annCount } = this.#vectors.info();
    if (count < this.#annThreshold) return;
    // Removed rows stay in the graph as tombstones: rebuild once they outnumber the living.
    if (annCount === 0 || annCount > 2 * count) {
      await this.#vectors.buildAnn(this.#ann);
    }
  }

  close(): void {
    this.#vectors.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function refuseDuplicates(ids: readonly string[]): void {
  const seen = new Set<string>();
  for (const id of ids) {
    if (seen.has(id)) {
      throw new FinchError(
        'FINCH_DUPLICATE_ID',
        `the id ${JSON.stringify(id)} is given twice. Ids must be unique in a catalogue; prefix them with their server's name.`,
      );
    }
    seen.add(id);
  }
}
