import type { BanditOptions } from '../../reliability/bandit.js';
import { defaultWeights, type RankSettings } from '../../select/rank-rule.js';
import { BanditMethod, type BanditMethodOptions } from './bandit-method.js';
import {
  Blacklist,
  NoFeedback,
  Oracle,
  PeriodicPolicy,
  SlidingWindow,
  StaticRanking,
} from './baselines.js';
import type { Environment } from './environment.js';
import type { MethodSpec } from './method.js';

/** A method and the settings that validation chooses among; one setting: nothing is chosen. */
export interface MethodFamily {
  readonly name: string;
  readonly settings: readonly MethodSpec[];
}

/** Health checks outside user traffic, for methods that use them: every so many steps. */
export const probeEverySteps = 30;

/** RATED's fusion as written: no bound on the bandit's part, no availability. */
export function asWritten(semantic: number, bandit: number, prior: number): RankSettings {
  return {
    weights: { semantic, bandit, prior, outage: 0 },
    minAvailability: 0,
    clamp: false,
    ...rankOnly,
  };
}

/** The cut is not looked at: one tool is selected. */
const rankOnly = { cut: { rule: 'fixed', k: 10 } } as const;
/** The semantic weight without a bandit: its part goes to the prior, which is what an arm without feedback scores. */
const { semantic } = defaultWeights;

const gammas = [0.8, 0.9, 0.95, 0.99];
const weights = [0.2, 0.35, 0.5];

export const ours = 'ours (default)';
export const oursWithProbes = 'ours, with probes';
export const oursWithRetry = 'ours, retry k = 3';
export const noFeedback = 'no feedback';
export const literal = 'RATED as written';

/** Every method of the protocol, the settings of each, in the order of the tables. */
export function methodFamilies(environment: Environment): MethodFamily[] {
  const one = (name: string, make: MethodSpec['make']): MethodFamily => ({
    name,
    settings: [{ name: '', make }],
  });
  const bandit = (
    options: Omit<BanditOptions, 'dimension'>,
    settings: RankSettings,
    more?: BanditMethodOptions,
  ) => new BanditMethod(environment, options, { ...rankOnly, ...settings }, more);
  const weighted = (form: 'mean' | 'calibrated'): MethodSpec[] =>
    gammas.flatMap((gamma) =>
      weights.map((weight) => ({
        name: `gamma ${gamma}, w2 ${weight}`,
        make: () => bandit({ form, gamma }, asWritten(1 - weight, weight, 0)),
      })),
    );
  const hasReranker = environment.test[0]?.candidates.rerank !== undefined;
  return [
    one('BM25', () => new StaticRanking('lexical')),
    one('static dense', () => new StaticRanking('dense')),
    one('static hybrid', () => new StaticRanking('hybrid')),
    ...(hasReranker ? [one('cross-encoder rerank', () => new StaticRanking('rerank'))] : []),
    one(noFeedback, () => new NoFeedback(environment, semantic)),
    one('blacklist', () => new Blacklist(environment, semantic)),
    one('retry, k = 3', () => new NoFeedback(environment, semantic, 3)),
    {
      name: 'periodic policy update',
      settings: [0.01, 0.03, 0.1, 0.3].map((rate) => ({
        name: `rate ${rate}`,
        make: () => new PeriodicPolicy(environment, semantic, rate),
      })),
    },
    { name: 'global MAB', settings: weighted('mean') },
    {
      name: 'sliding window',
      settings: [3, 5, 10, 20].flatMap((window) =>
        weights.map((weight) => ({
          name: `last ${window}, w2 ${weight}`,
          make: () => new SlidingWindow(environment, window, weight),
        })),
      ),
    },
    one(literal, () => bandit({ form: 'literal' }, asWritten(0.75, 0.15, 0.1))),
    { name: 'calibrated LinUCB', settings: weighted('calibrated') },
    one(ours, () => bandit({}, {})),
    one(oursWithProbes, () => bandit({}, {}, { probeEvery: probeEverySteps })),
    one(oursWithRetry, () => bandit({}, {}, { attempts: 3 })),
    one('oracle', () => new Oracle(environment, semantic)),
  ];
}
