import { randomUUID } from 'node:crypto';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { throwIfAborted } from '../abort.js';
import { indexText } from '../catalog/index-text.js';
import { anObject } from '../check.js';
import { shown } from '../describe-value.js';
import { encodeChecked } from '../encode/encoder.js';
import { FinchError } from '../errors.js';
import type { NativeRanked } from '../native.js';
import { checkedClock } from '../reliability/check-feedback.js';
import { MonotoneClock } from '../reliability/clock.js';
import type { Feedback } from '../reliability/feedback.js';
import type { Outcome, ReportResult } from '../reliability/feedback-store.js';
import type { Reranker } from '../rerank/reranker.js';
import { type Retrieved, type RetrieveMethod, retrieve } from '../retrieve/retrieve.js';
import type { ToolIndex } from '../retrieve/tool-index.js';
import { type AllowSet, idList, type Snapshot } from '../retrieve/vector-index.js';
import { type Budget, checkBudget, withinBudget } from '../truncate/budget.js';
import { type AbstentionCalibration, checkAbstention } from '../truncate/calibration.js';
import { type CutRule, checkCutRule } from '../truncate/cut-rule.js';
import type { Candidate, CandidateFate, Decision, NoneReason, SelectedTool } from './decision.js';
import { type Judged, judge } from './judge.js';
import { type AppliedCut, checkCalibrated, shortlistFor } from './list-cut.js';
import { type FusionWeights, rankRule, unhealthyBelow } from './rank-rule.js';
import {
  checkedReranker,
  checkRerank,
  mergeRerank,
  type RerankedRequest,
  type RerankSettings,
  rerankCandidates,
  rerankParts,
  retrievalDepth,
} from './rerank-stage.js';
import { StageClock } from './stage-clock.js';
import { type QueryText, queryText, type TaskState } from './task-state.js';
import { visibleTools } from './visible-tools.js';

/** What one call of `select` may set; the Selector's own options are its defaults. */
export interface SelectSettings extends Budget {
  /** Default `hybrid`. */
  method?: RetrieveMethod;
  /** Candidates that are retrieved, fused and cut; default 10, for a calibrated cut what it was calibrated on. */
  shortlist?: number;
  /**
   * What the Selector's reranker is asked for; `false` leaves it out. A call's fields replace the Selector's one by one: `{ budgetMs }`
   * keeps its `candidates`. Any object, an empty one too, asks a reranker that the Selector leaves out. Unknown fields are refused.
   */
  rerank?: RerankSettings | false;
  /** Default `{ rule: 'dynamic' }`: MagicSelector's dynamic top-k. */
  cut?: CutRule;
  weights?: FusionWeights;
  /** Add the bandit's exploration bonus; default true. `false`: the same state always gives the same list. */
  explore?: boolean;
  /**
   * Choose nothing when the best candidate's retrieval score is below this. Default: the reranker's calibrated `relevanceFloor` on its
   * probabilities, if it has one and ran; else the encoder's, if it has one; with `abstain`, none. `-Infinity` never abstains.
   */
  relevanceFloor?: number;
  /** Choose nothing when the candidates look like those of an unanswerable query, see `calibrateAbstention`. Default: do not ask. */
  abstain?: AbstentionCalibration;
  /** Ids that are always shown, whatever their score, where visible. */
  pin?: readonly string[];
  /** `score` (default): best first. `stable`: insertion order, so that a prompt built from the list stays cacheable. */
  order?: 'score' | 'stable';
}

export interface SelectOptions extends SelectSettings {
  /** Ids that may be chosen (a user's or tenant's). Visibility, not authorisation. */
  allow?: Iterable<string> | AllowSet;
  /** Ids that may not be chosen. */
  exclude?: Iterable<string>;
  /** Only tools of these groups. */
  groups?: readonly string[];
  signal?: AbortSignal;
}

export interface SelectorOptions extends SelectSettings {
  index: ToolIndex;
  /** Where outcomes are kept; without it nothing is learnt and `report` is FINCH_INVALID_ARGUMENT. */
  feedback?: Feedback;
  /** Reads the query and each candidate together, between retrieval and fusion. The caller closes it. */
  reranker?: Reranker;
  /** Unix milliseconds, finite; default the feedback store's clock, without a store `Date.now`. It may step back. */
  now?: () => number;
}

export type Query = string | TaskState;

const traced = tracingChannel('toolfinch:select');
const reported = channel('toolfinch:report');

/**
 * From a task to the few tools that fit it: encode → retrieve → rerank → fuse with reliability → cut, and the loop back through
 * {@link report}. It wires the stages; each can be used alone.
 */
export class Selector {
  readonly index: ToolIndex;
  readonly feedback: Feedback | undefined;
  readonly reranker: Reranker | undefined;
  readonly #settings: SelectSettings;
  readonly #clock: { now(): number };

  constructor(options: SelectorOptions) {
    anObject(options, 'options');
    const { index, feedback, reranker, now, ...settings } = options;
    if (typeof index?.snapshot !== 'function') {
      throw invalid('index', index, 'a ToolIndex, made by ToolIndex.build or ToolIndex.open');
    }
    if (feedback !== undefined && typeof feedback?.decide !== 'function') {
      throw invalid(
        'feedback',
        feedback,
        'a FeedbackStore, made by FeedbackStore.open or FeedbackStore.memory, or a ReplicatedFeedback',
      );
    }
    if (feedback !== undefined && feedback.dimension !== index.encoder.dimension) {
      throw new FinchError(
        'FINCH_DIMENSION',
        `the feedback store was made for ${feedback.dimension} dimensions, the encoder has ${index.encoder.dimension}. Open the store with the encoder's dimension.`,
      );
    }
    checkSettings(settings);
    this.reranker = checkedReranker(reranker);
    this.index = index;
    this.feedback = feedback;
    this.#settings = settings;
    this.#checkPipeline(settings);
    this.#clock = now === undefined ? (feedback ?? Date) : new MonotoneClock(checkedClock(now));
  }

  /**
   * Picks the tools for a query, or for the state of a task.
   *
   * @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_ABORTED, and what the encoder throws
   */
  async select(query: Query, options: SelectOptions = {}): Promise<Decision> {
    if (typeof options !== 'object' || options === null)
      throw invalid('options', options, 'an object');
    const words = queryText(query);
    return traced.tracePromise(() => this.#select(words, options), { query: words.text });
  }

  /**
   * Tells how a chosen tool did; resolves once it is durable. `true` and `'success'` are the same, so are `false` and
   * `'error'`. A second report of the same decision and tool changes nothing.
   *
   * @throws FinchError FINCH_UNKNOWN_ID (decision, or a tool that was no candidate of it), FINCH_IO, FINCH_CLOSED
   */
  async report(
    decisionId: string,
    toolId: string,
    outcome: boolean | Outcome,
  ): Promise<ReportResult> {
    if (this.feedback === undefined) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        'this Selector has no feedback store, so it cannot learn. Give it one: new Selector({ index, feedback: FeedbackStore.memory({ bandit: { dimension } }) }).',
      );
    }
    const kind = typeof outcome === 'boolean' ? (outcome ? 'success' : 'error') : outcome;
    const report = { decisionId, toolId, outcome: kind, at: this.#clock.now() };
    const result = await this.feedback.report(report);
    if (reported.hasSubscribers) reported.publish({ ...report, result });
    return result;
  }

  #checkPipeline({ cut, abstain, shortlist, rerank, method = 'hybrid' }: SelectSettings): void {
    checkCalibrated(cut, abstain, {
      encoder: this.index.encoder.model,
      method,
      shortlist: shortlistFor(cut, shortlist),
      ...rerankParts(this.reranker, rerank),
    });
  }

  async #select(query: QueryText, options: SelectOptions): Promise<Decision> {
    // Before merging, which would drop what it does not know.
    checkRerank(options.rerank);
    const rerank = mergeRerank(this.#settings.rerank, options.rerank);
    const settings = {
      ...this.#settings,
      ...defined(options),
      ...(rerank === undefined ? {} : { rerank }),
    };
    checkSettings(settings);
    this.#checkPipeline(settings);
    if (query.text.trim() === '') {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        'the query is empty; expected what the user wants, in words.',
      );
    }
    throwIfAborted(options.signal);
    const clock = new StageClock();
    const snapshot = this.index.snapshot();
    try {
      return await this.#decide(query, settings, snapshot, clock);
    } finally {
      snapshot.close();
    }
  }

  async #decide(
    query: QueryText,
    settings: SelectOptions,
    snapshot: Snapshot,
    clock: StageClock,
  ): Promise<Decision> {
    const { signal, method = 'hybrid' } = settings;
    const allow = visibleTools(this.index, settings);
    const eligible = snapshot.eligible(allow);
    const { text } = query;
    const base = { text, settings, clock, snapshot, allow, eligible };
    if (snapshot.count === 0) return this.#none('empty-index', base);
    if (eligible === 0) return this.#none('nothing-allowed', base);

    // The context of the bandit is the query's embedding, so even lexical retrieval encodes when there is feedback.
    const encodes = method !== 'lexical' || this.feedback !== undefined;
    const vector = encodes
      ? await clock.time('encode', () =>
          encodeChecked(this.index.encoder, [text], { kind: 'query', signal }),
        )
      : undefined;
    const rule = () => rankRule(settings, this.#clock.now());
    const bandit = this.feedback?.bandit.handle ?? null;
    const shortlist = shortlistFor(settings.cut, settings.shortlist);
    const reranker = settings.rerank === false ? undefined : this.reranker;
    const n = retrievalDepth(shortlist, reranker, settings.rerank);

    if (method === 'dense' && vector !== undefined && reranker === undefined) {
      // Nothing is wanted between retrieving and ranking: one native call does both, to the same bits.
      const ranked = await clock.time('select:dense', () =>
        snapshot.select(bandit, vector, { k: n, allow, signal }, rule()),
      );
      // Unless a tool was removed meanwhile: then the stages below run, which drop it before they rank.
      if (ranked.ids.every((id) => this.index.get(id) !== undefined)) {
        return this.#conclude(ranked, denseHits(ranked), vector, base);
      }
    }

    const found = await clock.time(`retrieve:${method}`, () =>
      retrieve(this.index, snapshot, { text: query.words, vector }, { n, method, allow, signal }),
    );
    let retrieved = found.filter(({ id }) => this.index.get(id) !== undefined);
    let chosen = retrieved.map((hit) => ({ hit, semantic: hit.score }));
    let reranked: RerankedRequest | undefined;
    if (reranker !== undefined && retrieved.length > 0) {
      const result = await clock.time('rerank', () =>
        rerankCandidates(reranker, text, retrieved, ({ id }) => this.#textOf(id), {
          ...settings.rerank,
          shortlist,
          signal,
        }),
      );
      reranked = {
        record: result.record,
        retrieved: retrieved.length,
        floor: reranker.relevanceFloor,
      };
      chosen = result.shortlist.filter(({ hit }) => this.index.get(hit.id) !== undefined);
      retrieved = retrieved.filter(({ id }) => this.index.get(id) !== undefined);
    }
    // From here on nothing is awaited: a tool removed meanwhile is gone now, and none can go before the list is made.
    if (chosen.length === 0) return this.#none('no-match', { ...base, reranked }, vector);

    const ranked = clock.timeSync('rank', () =>
      snapshot.rank(
        bandit,
        Float64Array.from(chosen, ({ hit }) => hit.key),
        Float32Array.from(chosen, ({ semantic }) => semantic),
        // Without feedback there is no bandit, and the context is not used.
        vector ?? new Float32Array(this.index.encoder.dimension).fill(1),
        rule(),
      ),
    );
    return this.#conclude(ranked, retrieved, vector, { ...base, reranked });
  }

  /** What a reranker reads of a tool: the text that was embedded. */
  #textOf(id: string): string {
    return indexText(this.index.tool(id), this.index.indexText);
  }

  /** Abstains where the best is not good enough, and makes the list otherwise. */
  #conclude(
    ranked: NativeRanked,
    retrieved: readonly Retrieved[],
    vector: Float32Array | undefined,
    base: Base,
  ): Decision {
    if (retrieved.length === 0) return this.#none('no-match', base, vector);
    const judged = judge(ranked, retrieved, base.snapshot, {
      ...base.settings,
      encoderFloor: this.index.encoder.relevanceFloor,
      reranked: base.reranked,
    });
    return this.#finish(ranked, retrieved, judged, vector, base);
  }

  #finish(
    ranked: NativeRanked,
    retrieved: readonly Retrieved[],
    { rule, applied, abstained, abstention }: Judged,
    vector: Float32Array | undefined,
    base: Base,
  ): Decision {
    const { settings } = base;
    const k = applied?.k ?? ranked.cut.k;
    const pins = this.#pinned(base);
    const pinned = new Set(pins.ids);
    const above = ranked.ids
      .slice(0, k)
      .filter((id) => abstained === undefined && !pinned.has(id))
      .map((id) => ({ id, tokens: this.index.tokens(id) }));
    const pinnedTools = pins.ids.map((id) => ({ id, tokens: this.index.tokens(id) }));
    const { kept, overBudget } = withinBudget(pinnedTools, above, settings);
    const shown = new Set([...pins.ids, ...kept.map(({ id }) => id)]);
    const over = new Set(overBudget.map(({ id }) => id));

    const byKey = new Map(retrieved.map((hit) => [hit.key, hit]));
    const candidates = ranked.ids.map((id, i): Candidate => {
      const fate: CandidateFate = shown.has(id)
        ? 'selected'
        : i >= ranked.cut.n
          ? 'unhealthy'
          : abstained !== undefined
            ? 'abstained'
            : over.has(id)
              ? 'budget'
              : 'cut';
      return candidateOf(ranked, i, fate, this.index.tokens(id), byKey, applied, base);
    });

    const decisionId = randomUUID();
    this.#remember(decisionId, vector, candidates, pins, base);
    const scoreOf = new Map(candidates.map(({ id, score }) => [id, score]));
    const keyOf = new Map(ranked.ids.map((id, i) => [id, ranked.keys[i] as number]));
    pins.ids.forEach((id, i) => {
      keyOf.set(id, pins.keys[i] as number);
    });
    const order = [
      ...ranked.ids.filter((id) => shown.has(id)),
      ...pins.ids.filter((id) => !scoreOf.has(id)),
    ];
    if (settings.order === 'stable') {
      order.sort((a, b) => (keyOf.get(a) as number) - (keyOf.get(b) as number));
    }
    const tools = order.map((id): SelectedTool => {
      const score = scoreOf.get(id);
      return {
        id,
        tool: this.index.tool(id),
        ...(score === undefined ? {} : { score }),
        tokens: this.index.tokens(id),
        ...(pinned.has(id) ? { pinned: true as const } : {}),
      };
    });
    const reason: NoneReason = abstained ?? (k === 0 ? 'below-threshold' : 'over-budget');
    return {
      id: decisionId,
      query: base.text,
      tools,
      ...(tools.length === 0 ? { reason } : {}),
      candidates,
      cut: {
        ...ranked.cut,
        ...(applied === undefined ? {} : { k, signals: [] }),
        rule,
        ...(applied?.threshold === undefined ? {} : { threshold: applied.threshold }),
        ...(applied?.target === undefined ? {} : { target: applied.target }),
        similarities: [...ranked.similarities],
      },
      ...(abstention === undefined ? {} : { abstention }),
      ...record(base, pins, candidates.length, tools.length),
    };
  }

  #none(reason: NoneReason, base: Base, vector?: Float32Array): Decision {
    const pins = this.#pinned(base);
    const id = randomUUID();
    this.#remember(id, vector, [], pins, base);
    const tools = pins.ids.map(
      (id): SelectedTool => ({
        id,
        tool: this.index.tool(id),
        tokens: this.index.tokens(id),
        pinned: true,
      }),
    );
    return {
      id,
      query: base.text,
      tools,
      ...(tools.length === 0 ? { reason } : {}),
      candidates: [],
      ...record(base, pins, 0, tools.length),
    };
  }

  /** Keeps what a report will need: the context, and the tools it may be about. */
  #remember(
    id: string,
    vector: Float32Array | undefined,
    candidates: readonly Candidate[],
    pins: Pins,
    { snapshot }: Base,
  ): void {
    if (this.feedback === undefined || vector === undefined) return;
    const reportable = new Map(candidates.map((each) => [each.id, each.reliability.prior]));
    const priors = snapshot.priors(Float64Array.from(pins.keys));
    pins.ids.forEach((pinned, i) => {
      if (!reportable.has(pinned)) reportable.set(pinned, priors[i] as number);
    });
    this.feedback.decide({
      id,
      x: vector,
      toolIds: [...reportable.keys()],
      priors: Float32Array.from(reportable.values()),
      time: this.#clock.now(),
    });
  }

  #pinned({ settings, snapshot, allow }: Base): Pins {
    const ids = [...new Set(idList('pin', settings.pin ?? []))];
    const keys = snapshot.find(ids);
    const visible = ids.map(
      (id, i) =>
        keys[i] !== 0 && this.index.get(id) !== undefined && (allow === undefined || allow.has(id)),
    );
    return {
      ids: ids.filter((_, i) => visible[i]),
      keys: [...keys].filter((_, i) => visible[i]),
      missing: ids.filter((_, i) => !visible[i]),
    };
  }
}

/** What a dense retrieval would have found: the ranked candidates in the order of their cosines. */
function denseHits(ranked: NativeRanked): Retrieved[] {
  const hits = new Array<Retrieved>(ranked.ids.length);
  ranked.ids.forEach((id, i) => {
    const score = ranked.semantic[i] as number;
    const key = ranked.keys[i] as number;
    hits[ranked.semanticRank[i] as number] = { id, key, score, dense: score };
  });
  return hits;
}

interface Pins {
  readonly ids: readonly string[];
  readonly keys: readonly number[];
  readonly missing: readonly string[];
}

/** What is known of a request before anything is retrieved. */
interface Base {
  readonly text: string;
  readonly settings: SelectOptions;
  readonly clock: StageClock;
  readonly snapshot: Snapshot;
  readonly allow: AllowSet | undefined;
  readonly eligible: number;
  readonly reranked?: RerankedRequest | undefined;
}

function record(base: Base, pins: Pins, candidates: number, returned: number) {
  const { snapshot, eligible, clock, reranked } = base;
  const retrieved = reranked?.retrieved ?? candidates;
  return {
    stages: clock.stages,
    counts: {
      indexed: snapshot.count,
      eligible,
      retrieved,
      ...(reranked === undefined ? {} : { reranked: reranked.record.scored }),
      pinned: pins.ids.length,
      returned,
    },
    ...(reranked === undefined ? {} : { rerank: reranked.record }),
    ...(pins.missing.length > 0 ? { pinnedMissing: pins.missing } : {}),
    milliseconds: clock.finish(),
  };
}

function candidateOf(
  ranked: NativeRanked,
  i: number,
  fate: CandidateFate,
  tokens: number,
  retrieved: ReadonlyMap<number, Retrieved>,
  applied: AppliedCut | undefined,
  { reranked }: Base,
): Candidate {
  const at = (values: Float32Array | Float64Array | Uint32Array) => values[i] as number;
  const hit = retrieved.get(at(ranked.keys));
  const cutValue = applied?.valueOf.get(at(ranked.keys));
  const lastOutcome = at(ranked.lastOutcome);
  const contrast = at(ranked.contrast);
  const availability = at(ranked.availability);
  return {
    id: ranked.ids[i] as string,
    fate,
    score: at(ranked.score),
    semantic: at(ranked.semantic),
    semanticRank: at(ranked.semanticRank),
    ...(hit === undefined || !reranked?.record.scored ? {} : { retrieval: hit.score }),
    ...(hit?.dense === undefined ? {} : { dense: hit.dense }),
    ...(hit?.lexical === undefined ? {} : { lexical: hit.lexical }),
    ...(hit?.named === undefined ? {} : { named: hit.named }),
    ...(cutValue === undefined ? {} : { cutValue }),
    reliability: {
      mean: at(ranked.mean),
      bonus: at(ranked.bonus),
      availability,
      prior: at(ranked.prior),
      evidence: at(ranked.evidence),
      reports: at(ranked.updates),
      ...(Number.isNaN(lastOutcome) ? {} : { lastOutcome }),
      ...(Number.isNaN(contrast) ? {} : { contrast }),
    },
    tokens,
    ...(availability < unhealthyBelow ? { unhealthy: true as const } : {}),
  };
}

/** Options that are set: a caller passing `undefined` means the default. */
function defined<T extends object>(options: T): T {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as T;
}

function checkSettings(settings: SelectSettings): void {
  checkBudget(settings);
  const { method, order, weights, relevanceFloor, shortlist, explore, pin } = settings;
  if (
    shortlist !== undefined &&
    !(Number.isInteger(shortlist) && shortlist >= 1 && shortlist <= 65_536)
  ) {
    throw invalid('shortlist', shortlist, 'an integer from 1 to 65,536');
  }
  // No other iterable: an iterator would be empty at the second call.
  if (pin !== undefined && !Array.isArray(pin)) throw invalid('pin', pin, 'an array of tool ids');
  if (explore !== undefined && typeof explore !== 'boolean') {
    throw invalid('explore', explore, 'true or false');
  }
  if (method !== undefined && !['hybrid', 'dense', 'lexical'].includes(method)) {
    throw invalid('method', method, "'hybrid', 'dense' or 'lexical'");
  }
  if (order !== undefined && !['score', 'stable'].includes(order)) {
    throw invalid('order', order, "'score' or 'stable'");
  }
  if (
    relevanceFloor !== undefined &&
    !(typeof relevanceFloor === 'number' && !Number.isNaN(relevanceFloor))
  ) {
    throw invalid('relevanceFloor', relevanceFloor, 'a number');
  }
  if (weights !== undefined) {
    if (typeof weights !== 'object' || weights === null)
      throw invalid('weights', weights, 'an object');
    const { semantic, bandit, prior, outage } = weights;
    const all = [semantic, bandit, prior, outage];
    const inRange = all.every((weight) => typeof weight === 'number' && weight >= 0 && weight <= 1);
    if (!inRange || Math.abs(semantic + bandit + prior - 1) > 1e-4) {
      throw invalid(
        'weights',
        weights,
        'semantic, bandit and prior in [0, 1] that sum to 1, and outage in [0, 1]',
      );
    }
  }
  checkRerank(settings.rerank);
  if (settings.cut !== undefined) checkCutRule(settings.cut);
  if (settings.abstain !== undefined) checkAbstention(settings.abstain, 'abstain');
}

function invalid(name: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${name} is ${shown(value)}; expected ${expected}.`,
  );
}
