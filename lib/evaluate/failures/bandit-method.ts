import {
  type BanditHandle,
  binding,
  type NativeRankingOut,
  type SelectRuleHandle,
} from '../../native.js';
import { Bandit, type BanditOptions } from '../../reliability/bandit.js';
import { type RankSettings, rankRule } from '../../select/rank-rule.js';
import type { CandidateList, Environment, SimulatedQuery } from './environment.js';
import type { SelectionMethod } from './method.js';

/** Candidates a ranking has room for. */
const capacity = 256;

export interface BanditMethodOptions {
  /** Steps between health checks of the tools that failed last; none without it. */
  readonly probeEvery?: number;
  /** Calls within a step until one works; default 1. */
  readonly attempts?: number;
}

/**
 * A method of the product: the Selector's ranking over a bandit's arms and a feedback store's updates, on the simulation's
 * clock. The ranking is the native one with its rule prepared once, which gives the Selector's bits.
 */
export class BanditMethod implements SelectionMethod {
  readonly attempts: number;
  readonly #environment: Environment;
  readonly #bandit: Bandit;
  readonly #handle: BanditHandle;
  readonly #rule: SelectRuleHandle;
  readonly #out: NativeRankingOut;
  readonly #toolOfKey: ReadonlyMap<number, number>;
  readonly #probeEvery: number | undefined;
  /** Tools whose latest report is a failure. */
  readonly #down = new Set<number>();
  #step = 0;

  constructor(
    environment: Environment,
    bandit: Omit<BanditOptions, 'dimension'>,
    settings: RankSettings,
    { probeEvery, attempts = 1 }: BanditMethodOptions = {},
  ) {
    this.attempts = attempts;
    this.#environment = environment;
    this.#probeEvery = probeEvery;
    this.#bandit = new Bandit({ ...bandit, dimension: environment.dimension });
    this.#handle = this.#bandit.handle;
    this.#rule = binding().selectRuleCreate({ k: capacity }, rankRule(settings, 0));
    this.#out = binding().rankingCreate(capacity);
    const { snapshot, toolIds } = environment;
    this.#toolOfKey = new Map([...snapshot.find(toolIds)].map((key, tool) => [key, tool]));
  }

  rank(query: SimulatedQuery, candidates: CandidateList, now: number): number[] {
    if (candidates.tools.length === 0) return [];
    const count = binding().rankInto(
      this.#environment.snapshot.handle,
      this.#handle,
      candidates.keys,
      candidates.scores,
      query.vector,
      this.#rule,
      now,
      this.#out.handle,
    );
    return Array.from(
      this.#out.keys.subarray(0, count),
      (key) => this.#toolOfKey.get(key) as number,
    );
  }

  learn(query: SimulatedQuery, tool: number, worked: boolean, now: number): void {
    if (worked) this.#down.delete(tool);
    else this.#down.add(tool);
    this.#update(query.vector, tool, worked, now);
  }

  /** As the product's health checks: a success is reported without a context, a failure changes nothing. */
  afterStep(now: number, works: (tool: number) => boolean): void {
    this.#step += 1;
    if (this.#probeEvery === undefined || this.#step % this.#probeEvery !== 0) return;
    for (const tool of this.#down) {
      if (!works(tool)) continue;
      this.#down.delete(tool);
      this.#update(null, tool, true, now);
    }
  }

  #update(x: Float32Array | null, tool: number, worked: boolean, now: number): void {
    const { toolIds, priors } = this.#environment;
    this.#bandit.update(
      [toolIds[tool] as string],
      x,
      priors.subarray(tool, tool + 1),
      Float32Array.of(worked ? 1 : 0),
      Float64Array.of(now),
    );
  }

  close(): void {
    this.#bandit.close();
  }
}
