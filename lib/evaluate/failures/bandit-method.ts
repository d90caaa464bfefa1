import { Bandit, type BanditOptions } from '../../reliability/bandit.js';
import { type RankSettings, rankRule } from '../../select/rank-rule.js';
import type { CandidateList, Environment, SimulatedQuery } from './environment.js';
import type { SelectionMethod } from './method.js';

/**
 * A method of the product: the Selector's ranking over a bandit's arms, and a feedback store's updates, on the
 * simulation's clock.
 */
export class BanditMethod implements SelectionMethod {
  readonly #environment: Environment;
  readonly #bandit: Bandit;
  readonly #settings: RankSettings;
  readonly #toolOfKey: ReadonlyMap<number, number>;

  constructor(
    environment: Environment,
    bandit: Omit<BanditOptions, 'dimension'>,
    settings: RankSettings,
  ) {
    this.#environment = environment;
    this.#bandit = new Bandit({ ...bandit, dimension: environment.dimension });
    this.#settings = settings;
    const { snapshot, toolIds } = environment;
    this.#toolOfKey = new Map([...snapshot.find(toolIds)].map((key, tool) => [key, tool]));
  }

  rank(query: SimulatedQuery, candidates: CandidateList, now: number): number[] {
    if (candidates.tools.length === 0) return [];
    const { keys } = this.#environment.snapshot.rank(
      this.#bandit.handle,
      candidates.keys,
      candidates.scores,
      query.vector,
      rankRule(this.#settings, now),
    );
    return Array.from(keys, (key) => this.#toolOfKey.get(key) as number);
  }

  learn(query: SimulatedQuery, tool: number, worked: boolean, now: number): void {
    const { toolIds, priors } = this.#environment;
    this.#bandit.update(
      [toolIds[tool] as string],
      query.vector,
      priors.slice(tool, tool + 1),
      Float32Array.of(worked ? 1 : 0),
      Float64Array.of(now),
    );
  }

  close(): void {
    this.#bandit.close();
  }
}
