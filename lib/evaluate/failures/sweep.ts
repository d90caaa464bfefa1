import { throwIfAborted } from '../../abort.js';
import type { BanditOptions } from '../../reliability/bandit.js';
import { defaultWeights, type RankSettings } from '../../select/rank-rule.js';
import { linePlot } from '../line-plot.js';
import { BanditMethod, type BanditMethodOptions } from './bandit-method.js';
import { NoFeedback } from './baselines.js';
import type { Environment } from './environment.js';
import { catchUpOf, failedSelectionRate, spreadOf, successRate } from './failure-metrics.js';
import { asWritten, probeEverySteps } from './method-list.js';
import { type RunRecord, runScenario } from './run.js';
import { makeScenario, type Scenario } from './scenario.js';
import type { SimulateOptions } from './simulate.js';

/**
 * `weights`: w1 and w3, w2 is the rest, as RATED's figure 4 (a); `memory`: gamma and alpha, as its figure 4 (b); both of the
 * paper's form and of ours. `trade-off`: how many failed trials are allowed, against how soon tools that came back are used.
 */
export const sweepNames = ['weights', 'memory', 'trade-off'] as const;
export type SweepName = (typeof sweepNames)[number];

export interface SweepPoint {
  /** The line the point lies on. */
  readonly series: string;
  /** The setting's name on the x axis. */
  readonly setting: string;
  readonly before: number;
  readonly after: number;
  readonly failedSelections: number;
  /** `trade-off`: SR behind no feedback's, mean of the 500 steps after the return, in [−1, 1]. */
  readonly behind?: number;
  /** `trade-off`: steps to catch up; null: never. */
  readonly catchUp?: number | null;
}

export interface SweepResult {
  readonly sweep: SweepName;
  readonly rate: number;
  readonly points: readonly SweepPoint[];
}

interface Setting {
  readonly series: string;
  readonly setting: string;
  readonly make: () => BanditMethod;
}

const rankOnly = { cut: { rule: 'fixed', k: 10 } } as const;

function settingsOf(environment: Environment, sweep: SweepName): Setting[] {
  const make =
    (options: Omit<BanditOptions, 'dimension'>, rank: RankSettings, more?: BanditMethodOptions) =>
    () =>
      new BanditMethod(environment, options, { ...rankOnly, ...rank }, more);
  const ours = (semantic: number, prior: number) => ({
    weights: { semantic, bandit: Math.max(0, 1 - semantic - prior), prior, outage: 0.5 },
  });
  if (sweep === 'weights') {
    return [0, 0.1, 0.2].flatMap((prior) =>
      [0.35, 0.45, 0.55, 0.65, 0.75, 0.8].flatMap((semantic): Setting[] => [
        {
          series: `as written, w3 ${prior}`,
          setting: String(semantic),
          make: make(
            { form: 'literal' },
            asWritten(semantic, Math.max(0, 1 - semantic - prior), prior),
          ),
        },
        {
          series: `ours, w3 ${prior}`,
          setting: String(semantic),
          make: make({}, ours(semantic, prior)),
        },
      ]),
    );
  }
  if (sweep === 'memory') {
    return [0.01, 0.1, 0.5].flatMap((alpha) =>
      [0.8, 0.9, 0.95, 0.98, 0.99].flatMap((gamma): Setting[] => [
        {
          series: `as written, alpha ${alpha}`,
          setting: String(gamma),
          make: make({ form: 'literal', gamma, alpha }, asWritten(0.75, 0.15, 0.1)),
        },
        {
          series: `ours, alpha ${alpha}`,
          setting: String(gamma),
          make: make({ gamma, alpha }, {}),
        },
      ]),
    );
  }
  const shares = [0.0003, 0.001, 0.0025, 0.005, 0.01, 0.02];
  return [
    ...shares.map((trialShare) => ({
      series: 'ours, by trial share',
      setting: String(trialShare),
      make: make({ trialShare }, {}),
    })),
    ...shares.map((trialShare) => ({
      series: 'ours with probes, by trial share',
      setting: String(trialShare),
      make: make({ trialShare }, {}, { probeEvery: probeEverySteps }),
    })),
    ...[10, 30, 100, 300, 1000].map((seconds) => ({
      series: 'half-life alone, no budget',
      setting: `${seconds} s`,
      make: make({ freeTrials: true, availabilityHalfLife: 1000 * seconds }, {}),
    })),
    ...[0.8, 0.9, 0.95, 0.99].map((gamma) => ({
      series: 'global MAB (w2 0.5), by gamma',
      setting: String(gamma),
      make: make({ form: 'mean' as const, gamma }, asWritten(0.5, 0.5, 0)),
    })),
  ];
}

/** Runs every setting of a sweep over the seeds. `trade-off` runs the recovery scenario, the others the persistent one. */
export async function runSweep(
  environment: Environment,
  sweep: SweepName,
  options: SimulateOptions,
): Promise<SweepResult> {
  const { rate, seeds = [1, 2, 3, 4, 5], protocol, signal, onProgress } = options;
  const settings = settingsOf(environment, sweep);
  const scenarios = seeds.map((seed) =>
    makeScenario(environment, sweep === 'trade-off' ? 'recovery' : 'persistent', {
      rate,
      seed,
      ...(protocol === undefined ? {} : { protocol }),
    }),
  );
  const { steps, onset, windowEnd } = (scenarios[0] as Scenario).protocol;
  const reference = scenarios.map((scenario) =>
    runScenario(new NoFeedback(environment, defaultWeights.semantic), scenario),
  );
  const total = settings.length * scenarios.length * steps;
  let done = 0;
  const points: SweepPoint[] = [];
  for (const { series, setting, make } of settings) {
    const runs: RunRecord[] = [];
    for (const scenario of scenarios) {
      await new Promise(setImmediate);
      throwIfAborted(signal);
      const method = make();
      runs.push(runScenario(method, scenario));
      method.close();
      done += steps;
      onProgress?.({ done, total });
    }
    const mean = (figure: (record: RunRecord) => number, of: readonly RunRecord[] = runs) =>
      spreadOf(of.map(figure)).mean;
    const soon = (record: RunRecord) =>
      successRate(record, windowEnd + 1, Math.min(steps, windowEnd + 500));
    points.push({
      series,
      setting,
      before: mean((record) => successRate(record, 1, onset)),
      after: mean((record) => successRate(record, onset + 1, windowEnd)),
      failedSelections: mean((record) => failedSelectionRate(record, onset + 1, windowEnd)),
      ...(sweep === 'trade-off'
        ? {
            behind: mean(soon, reference) - mean(soon),
            catchUp: catchUpOf(runs, reference, windowEnd),
          }
        : {}),
    });
  }
  return { sweep, rate, points };
}

export function sweepTable({ sweep, points }: SweepResult): string {
  const percent = (value: number) => (100 * value).toFixed(1);
  const tradeOff = sweep === 'trade-off';
  const head = [
    'series',
    'setting',
    'SR before',
    'SR after',
    'FSR',
    ...(tradeOff ? ['SR behind, 500 steps', 'steps to catch up'] : []),
  ];
  const rows = points.map((point) => [
    point.series,
    point.setting,
    percent(point.before),
    percent(point.after),
    percent(point.failedSelections),
    ...(tradeOff
      ? [percent(point.behind ?? 0), point.catchUp === null ? 'never' : String(point.catchUp)]
      : []),
  ]);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i < 2 ? '---' : '---:'))), ...rows.map(line)].join(
    '\n',
  );
}

export function sweepPlot({ sweep, rate, points }: SweepResult, dataset: string): string {
  const names = [...new Set(points.map(({ series }) => series))];
  const some = (name: string) => points.filter(({ series }) => series === name);
  const subtitle = `${(100 * rate).toFixed(0)} % of the tools fail`;
  if (sweep === 'trade-off') {
    return linePlot({
      title: `${dataset}: failed selections against recovery`,
      subtitle: `${subtitle}, and come back 3,000 steps later; lower and further left is better`,
      panels: [
        {
          heading: 'FSR while tools are down, and SR lost in the 500 steps after their return',
          xName: 'FSR (%)',
          yName: 'SR behind no feedback (points)',
          series: names.map((name) => ({
            name,
            x: some(name).map(({ failedSelections }) => 100 * failedSelections),
            y: some(name).map(({ behind }) => 100 * (behind ?? 0)),
            markers: true,
          })),
        },
      ],
    });
  }
  const settings = [...new Set(points.map(({ setting }) => setting))];
  const panel = (heading: string, yName: string, of: 'after' | 'failedSelections') => ({
    heading,
    xName: sweep === 'weights' ? 'w1 (w2 is the rest)' : 'gamma',
    yName,
    xLabels: settings,
    series: names.map((name) => ({
      name,
      x: some(name).map(({ setting }) => settings.indexOf(setting)),
      y: some(name).map((point) => 100 * point[of]),
    })),
  });
  return linePlot({
    title: `${dataset}: sensitivity to ${sweep === 'weights' ? 'w1 and w3' : 'gamma and alpha'}`,
    subtitle,
    panels: [
      panel('Success rate after the failures', 'SR (%)', 'after'),
      panel('Failed selections', 'FSR (%)', 'failedSelections'),
    ],
  });
}
