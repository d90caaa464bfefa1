import { throwIfAborted } from '../../abort.js';
import type { Environment } from './environment.js';
import {
  adaptationSteps,
  catchUpOf,
  failedSelectionRate,
  type Spread,
  spreadOf,
  successRate,
} from './failure-metrics.js';
import type { MethodSpec } from './method.js';
import { type MethodFamily, methodFamilies, noFeedback } from './method-list.js';
import { type RunRecord, runScenario } from './run.js';
import {
  makeScenario,
  type Protocol,
  paperProtocol,
  type Scenario,
  type ScenarioName,
} from './scenario.js';

/** One method's figures in one scenario, over the seeds. Shares in [0, 1]. */
export interface MethodResult {
  readonly name: string;
  /** What validation chose; empty when there was nothing to choose. */
  readonly setting: string;
  /** SR before the failures, steps 1 to the onset. */
  readonly before: Spread;
  /** SR and FSR in the window after the onset. */
  readonly after: Spread;
  readonly failedSelections: Spread;
  /** SR and FSR from the window's end to the end of the stream. */
  readonly late: Spread;
  readonly lateFailedSelections: Spread;
  /** Calls per step in the window: above 1 only where a method retries within the step. */
  readonly calls: Spread;
  /** AS of each seed, null where it failed. */
  readonly adaptation: readonly (number | null)[];
  /** The same with windows that lie after the onset whole. */
  readonly wholeAdaptation: readonly (number | null)[];
  /** Steps after tools came back until SR is within 1 point of no feedback's on the same steps (mean of 500); null: never. */
  readonly catchUp?: number | null;
  /** SR of steps whose right tool appeared at the onset, up to the window's end (`new-tools`). */
  readonly onNewTools?: Spread;
  /** SR and FSR over steps, means of the seeds over blocks of `curveBlock` steps. */
  readonly curve: { readonly success: readonly number[]; readonly failed: readonly number[] };
}

export interface ScenarioResult {
  readonly scenario: ScenarioName;
  readonly rate: number;
  readonly seeds: readonly number[];
  readonly protocol: Protocol;
  readonly failingTools: number;
  readonly methods: readonly MethodResult[];
}

export const curveBlock = 100;

export interface SimulateOptions {
  readonly rate: number;
  readonly seeds?: readonly number[];
  readonly protocol?: Partial<Protocol>;
  readonly signal?: AbortSignal | undefined;
  /** After each run; `done` of `total` steps of all of them. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}

/** AS reaches this share of the peak: 0.9 at 20 %, 0.8 at 30 % and above. */
export function adaptationShare(rate: number): number {
  return rate < 0.25 ? 0.9 : 0.8;
}

const validationSeed = 1001;

/**
 * Chooses each method's setting on a stream of validation queries: the one with the highest SR less FSR after the onset,
 * the first of equals. Settings are chosen on the persistent scenario alone and hold for the others.
 */
export async function chooseSettings(
  environment: Environment,
  options: SimulateOptions,
): Promise<ReadonlyMap<string, MethodSpec>> {
  const families = methodFamilies(environment);
  const scenario = makeScenario(environment, 'persistent', {
    rate: options.rate,
    seed: validationSeed,
    from: 'validation',
    ...(options.protocol === undefined ? {} : { protocol: options.protocol }),
  });
  const { onset, windowEnd } = scenario.protocol;
  const runs = families.reduce(
    (sum, { settings }) => sum + (settings.length > 1 ? settings.length : 0),
    0,
  );
  const meter = new Meter(runs, scenario.protocol.steps, options);
  const chosen = new Map<string, MethodSpec>();
  for (const { name, settings } of families) {
    let best = settings[0] as MethodSpec;
    let most = Number.NEGATIVE_INFINITY;
    for (const setting of settings.length > 1 ? settings : []) {
      const record = await meter.run(setting, scenario);
      const worth =
        successRate(record, onset + 1, windowEnd) -
        failedSelectionRate(record, onset + 1, windowEnd);
      if (worth > most) {
        most = worth;
        best = setting;
      }
    }
    chosen.set(name, best);
  }
  return chosen;
}

/** Runs every method with its chosen setting through a scenario. The same options give the same result to the bit. */
export async function simulateScenario(
  environment: Environment,
  name: ScenarioName,
  chosen: ReadonlyMap<string, MethodSpec>,
  options: SimulateOptions,
): Promise<ScenarioResult> {
  const { rate, seeds = [1, 2, 3, 4, 5] } = options;
  const scenarios = seeds.map((seed) =>
    makeScenario(environment, name, {
      rate,
      seed,
      ...(options.protocol === undefined ? {} : { protocol: options.protocol }),
    }),
  );
  const meter = new Meter(
    chosen.size * seeds.length,
    (scenarios[0] as Scenario).protocol.steps,
    options,
  );
  const records = new Map<string, RunRecord[]>();
  for (const [method, setting] of chosen) {
    const runs: RunRecord[] = [];
    for (const scenario of scenarios) runs.push(await meter.run(setting, scenario));
    records.set(method, runs);
  }
  const protocol = { ...paperProtocol, ...options.protocol };
  return {
    scenario: name,
    rate,
    seeds,
    protocol,
    failingTools: (scenarios[0] as Scenario).failing.size,
    methods: [...records].map(([method, runs]) =>
      resultOf({ name: method, setting: chosen.get(method)?.name ?? '' }, runs, {
        scenarios,
        reference: records.get(noFeedback) ?? runs,
        rate,
      }),
    ),
  };
}

/** Runs methods one after another, telling how far it is and letting the event loop turn between them. */
class Meter {
  #done = 0;
  readonly #total: number;
  readonly #options: SimulateOptions;

  constructor(runs: number, steps: number, options: SimulateOptions) {
    this.#total = runs * steps;
    this.#options = options;
  }

  async run(spec: MethodSpec, scenario: Scenario): Promise<RunRecord> {
    await new Promise(setImmediate);
    throwIfAborted(this.#options.signal);
    const method = spec.make();
    try {
      return runScenario(method, scenario);
    } finally {
      method.close?.();
      this.#done += scenario.protocol.steps;
      this.#options.onProgress?.({ done: this.#done, total: this.#total });
    }
  }
}

export type { MethodFamily };

function resultOf(
  method: { name: string; setting: string },
  runs: readonly RunRecord[],
  context: { scenarios: readonly Scenario[]; reference: readonly RunRecord[]; rate: number },
): MethodResult {
  const { scenarios, reference, rate } = context;
  const scenario = scenarios[0] as Scenario;
  const { protocol } = scenario;
  const { steps, onset, windowEnd } = protocol;
  const over = (figure: (record: RunRecord) => number) => spreadOf(runs.map(figure));
  const theta = adaptationShare(rate);
  const adaptation = (whole: boolean) =>
    runs.map((record) => adaptationSteps(record, protocol, theta, whole) ?? null);
  return {
    ...method,
    before: over((record) => successRate(record, 1, onset)),
    after: over((record) => successRate(record, onset + 1, windowEnd)),
    failedSelections: over((record) => failedSelectionRate(record, onset + 1, windowEnd)),
    late: over((record) => successRate(record, windowEnd + 1, steps)),
    lateFailedSelections: over((record) => failedSelectionRate(record, windowEnd + 1, steps)),
    calls: over(({ calls }) => meanOf(calls.subarray(onset, windowEnd))),
    adaptation: adaptation(false),
    wholeAdaptation: adaptation(true),
    ...(scenario.name === 'recovery'
      ? {
          catchUp: catchUpOf(runs, reference, windowEnd),
        }
      : {}),
    ...(scenario.name === 'new-tools' ? { onNewTools: onNewTools(runs, scenarios) } : {}),
    curve: {
      success: blocks(runs.map(({ success }) => success)),
      failed: blocks(runs.map(({ failed }) => failed)),
    },
  };
}

/** SR of the steps whose right tools are all new and of which one works. */
function onNewTools(runs: readonly RunRecord[], scenarios: readonly Scenario[]): Spread {
  const shares = runs.flatMap(({ success }, i) => {
    const { stream, failing, works, protocol } = scenarios[i] as Scenario;
    let right = 0;
    let all = 0;
    for (let step = protocol.onset + 1; step <= protocol.windowEnd; step++) {
      const gold = [...(stream[step - 1]?.gold ?? [])];
      if (!gold.every((tool) => failing.has(tool)) || !gold.some((tool) => works(tool, step)))
        continue;
      all += 1;
      right += success[step - 1] as number;
    }
    return all === 0 ? [] : [right / all];
  });
  return shares.length === 0 ? { mean: 0, sd: 0 } : spreadOf(shares);
}

function blocks(runs: readonly Uint8Array[]): number[] {
  const steps = runs[0]?.length ?? 0;
  return Array.from({ length: Math.floor(steps / curveBlock) }, (_, block) => {
    const from = block * curveBlock;
    return spreadOf(runs.map((flags) => meanOf(flags.subarray(from, from + curveBlock)))).mean;
  });
}

function meanOf(values: Uint8Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}
