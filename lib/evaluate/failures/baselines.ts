import type { CandidateList, CandidateSource, Environment, SimulatedQuery } from './environment.js';
import type { SelectionMethod } from './method.js';

/** Candidates' tools by a score, highest first, ties in the order given. */
export function ranked(tools: Uint32Array, scores: ArrayLike<number>): number[] {
  return Array.from(tools, (_, i) => i)
    .sort((a, b) => (scores[b] as number) - (scores[a] as number) || a - b)
    .map((i) => tools[i] as number);
}

/** What is scored without any feedback: RATED's fusion with every tool's estimate at its prior. */
export function fusedWithPrior(
  { priors }: Environment,
  { tools, scores }: CandidateList,
  semantic: number,
): Float64Array {
  return Float64Array.from(
    tools,
    (tool, i) => semantic * (scores[i] as number) + (1 - semantic) * (priors[tool] as number),
  );
}

/** A ranking that never changes: a retrieval's own. */
export class StaticRanking implements SelectionMethod {
  readonly source: CandidateSource;
  readonly attempts: number;

  constructor(source: CandidateSource, attempts = 1) {
    this.source = source;
    this.attempts = attempts;
  }

  rank(_query: SimulatedQuery, { tools }: CandidateList): Uint32Array {
    return tools;
  }
}

/** The retrieval and the static prior, no feedback; with `attempts`, retry within the step and no memory. */
export class NoFeedback implements SelectionMethod {
  readonly attempts: number;
  readonly #environment: Environment;
  readonly #semantic: number;

  constructor(environment: Environment, semantic: number, attempts = 1) {
    this.#environment = environment;
    this.#semantic = semantic;
    this.attempts = attempts;
  }

  rank(_query: SimulatedQuery, candidates: CandidateList): number[] {
    return ranked(candidates.tools, fusedWithPrior(this.#environment, candidates, this.#semantic));
  }
}

/** Health-check blacklist: one failure excludes a tool for good. All of a list excluded: the list as it is. */
export class Blacklist implements SelectionMethod {
  readonly #environment: Environment;
  readonly #semantic: number;
  readonly #excluded = new Set<number>();

  constructor(environment: Environment, semantic: number) {
    this.#environment = environment;
    this.#semantic = semantic;
  }

  rank(_query: SimulatedQuery, candidates: CandidateList): number[] {
    const all = ranked(
      candidates.tools,
      fusedWithPrior(this.#environment, candidates, this.#semantic),
    );
    const left = all.filter((tool) => !this.#excluded.has(tool));
    return left.length > 0 ? left : all;
  }

  learn(_query: SimulatedQuery, tool: number, worked: boolean): void {
    if (!worked) this.#excluded.add(tool);
  }
}

/** Knows which tools work: no selection fails, and no method on this ranking succeeds more often with one call. */
export class Oracle implements SelectionMethod {
  readonly #environment: Environment;
  readonly #semantic: number;

  constructor(environment: Environment, semantic: number) {
    this.#environment = environment;
    this.#semantic = semantic;
  }

  rank(
    _query: SimulatedQuery,
    candidates: CandidateList,
    _now: number,
    works: (tool: number) => boolean,
  ): number[] {
    const all = ranked(
      candidates.tools,
      fusedWithPrior(this.#environment, candidates, this.#semantic),
    );
    return [...all.filter(works), ...all.filter((tool) => !works(tool))];
  }
}

/**
 * Sliding window: in place of the discounted mean, the mean of a tool's last `window` outcomes (its prior before any), in
 * RATED's fusion (Garivier and Moulines 2011 compare the two).
 */
export class SlidingWindow implements SelectionMethod {
  readonly #environment: Environment;
  readonly #window: number;
  readonly #weight: number;
  readonly #outcomes = new Map<number, boolean[]>();

  constructor(environment: Environment, window: number, weight: number) {
    this.#environment = environment;
    this.#window = window;
    this.#weight = weight;
  }

  rank(_query: SimulatedQuery, { tools, scores }: CandidateList): number[] {
    const { priors } = this.#environment;
    const weight = this.#weight;
    const fused = Float64Array.from(tools, (tool, i) => {
      const prior = priors[tool] as number;
      const outcomes = this.#outcomes.get(tool);
      const mean =
        outcomes === undefined
          ? prior
          : outcomes.reduce((sum, worked) => sum + Number(worked), 0) / outcomes.length;
      return (1 - weight) * (scores[i] as number) + weight * mean;
    });
    return ranked(tools, fused);
  }

  learn(_query: SimulatedQuery, tool: number, worked: boolean): void {
    const outcomes = this.#outcomes.get(tool);
    if (outcomes === undefined) this.#outcomes.set(tool, [worked]);
    else {
      outcomes.push(worked);
      if (outcomes.length > this.#window) outcomes.shift();
    }
  }
}

/**
 * A policy that is updated in batches: softmax over the candidates of (fused score / temperature + a preference per
 * tool), greedy when it selects. Every `period` steps the rewards of the batch are normalised (less their mean, over
 * their standard deviation, as GRPO does within its group) and each preference takes one policy-gradient step.
 */
export class PeriodicPolicy implements SelectionMethod {
  readonly #environment: Environment;
  readonly #semantic: number;
  readonly #rate: number;
  readonly #period: number;
  readonly #preference = new Map<number, number>();
  #batch: { tools: Uint32Array; logits: Float64Array; chosen: number; reward: number }[] = [];
  #last: { tools: Uint32Array; logits: Float64Array } | undefined;

  constructor(environment: Environment, semantic: number, rate: number, period = 500) {
    this.#environment = environment;
    this.#semantic = semantic;
    this.#rate = rate;
    this.#period = period;
  }

  rank(_query: SimulatedQuery, candidates: CandidateList): number[] {
    const logits = this.#logits(candidates);
    this.#last = { tools: candidates.tools, logits };
    return ranked(candidates.tools, logits);
  }

  learn(_query: SimulatedQuery, tool: number, worked: boolean): void {
    // Warm-up pairs come without a ranking: the policy has made none yet.
    if (this.#last === undefined) return;
    const { tools, logits } = this.#last;
    this.#batch.push({ tools, logits, chosen: tools.indexOf(tool), reward: Number(worked) });
    if (this.#batch.length === this.#period) this.#update();
  }

  #logits(candidates: CandidateList): Float64Array {
    const temperature = 0.05;
    const fused = fusedWithPrior(this.#environment, candidates, this.#semantic);
    return fused.map(
      (score, i) =>
        score / temperature + (this.#preference.get(candidates.tools[i] as number) ?? 0),
    );
  }

  #update(): void {
    const rewards = this.#batch.map(({ reward }) => reward);
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
    const deviation = Math.sqrt(
      rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length,
    );
    for (const { tools, logits, chosen, reward } of this.#batch) {
      const advantage = (reward - mean) / (deviation + 1e-8);
      const most = Math.max(...logits);
      const weights = logits.map((logit) => Math.exp(logit - most));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      for (const [i, tool] of tools.entries()) {
        const gradient = (i === chosen ? 1 : 0) - (weights[i] as number) / total;
        this.#preference.set(
          tool,
          (this.#preference.get(tool) ?? 0) + this.#rate * advantage * gradient,
        );
      }
    }
    this.#batch = [];
  }
}
