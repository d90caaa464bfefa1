import { FinchError } from '../../errors.js';
import { hashed, mulberry32, permutation } from '../random.js';
import type { Environment, SimulatedQuery } from './environment.js';

/** The protocol's numbers (RATED, its failure-injection protocol). Steps are counted from 1. */
export interface Protocol {
  /** Sequential selections. */
  readonly steps: number;
  /** Candidates a method chooses from. */
  readonly topK: number;
  /** Pairs of a query and its right tool that a method has seen succeed before the stream begins. */
  readonly warmup: number;
  /** The last step before tools fail. */
  readonly onset: number;
  /** The last step of the window in which SR and FSR after the failure are taken. */
  readonly windowEnd: number;
  /** The most frequent share of tools that never fails. */
  readonly spared: number;
  /** Trailing steps of the success rate that adaptation is read from. */
  readonly trailing: number;
  /** Milliseconds between steps: how steps map to the clock that half-lives are read by. */
  readonly stepMs: number;
}

export const paperProtocol: Protocol = {
  steps: 10_000,
  topK: 10,
  warmup: 2000,
  onset: 2000,
  windowEnd: 5000,
  spared: 0.1,
  trailing: 200,
  stepMs: 1000,
};

/** What happens to the tools chosen to fail. */
export const scenarioNames = [
  'persistent',
  'recovery',
  'flapping',
  'drift',
  'server',
  'new-tools',
  'input-dependent',
  'mislabelled',
] as const;
export type ScenarioName = (typeof scenarioNames)[number];

/** A stream and what becomes of its tools, fixed before a run starts. */
export interface Scenario {
  readonly name: ScenarioName;
  readonly protocol: Protocol;
  /** The query of step t at place t − 1. */
  readonly stream: readonly SimulatedQuery[];
  readonly warmup: readonly { readonly query: SimulatedQuery; readonly tool: number }[];
  /** Tools that fail, or, in `new-tools`, that appear. */
  readonly failing: ReadonlySet<number>;
  /** Tools that are not in the catalogue at a step. */
  hidden(step: number): ReadonlySet<number>;
  /** Whether a call of the tool for the query of this step works. */
  works(tool: number, step: number): boolean;
  /** What is reported of a call: `works`, but for the calls that are mislabelled. */
  reported(tool: number, step: number): boolean;
}

export interface ScenarioOptions {
  readonly rate: number;
  readonly seed: number;
  readonly from?: 'test' | 'validation';
  readonly protocol?: Partial<Protocol>;
  /** Share of reports that say the contrary; `mislabelled` only. */
  readonly mislabelled?: number;
}

const none: ReadonlySet<number> = new Set();
/** Steps that a flapping tool is down, and then up. */
export const flapSteps = 150;

/**
 * Tools in the order of how often they are right in the stream, most frequent first, ties by place; the most frequent
 * `spared` share is skipped and the next `rate` share of the catalogue fails.
 */
export function failingTools(
  stream: readonly SimulatedQuery[],
  tools: number,
  rate: number,
  spared: number,
): number[] {
  const frequency = new Float64Array(tools);
  for (const { gold } of stream)
    for (const tool of gold) frequency[tool] = (frequency[tool] as number) + 1;
  const order = Array.from({ length: tools }, (_, i) => i).sort(
    (a, b) => (frequency[b] as number) - (frequency[a] as number) || a - b,
  );
  const first = Math.round(spared * tools);
  return order.slice(first, first + Math.round(rate * tools));
}

/** Queries in shuffled passes, so that each is as frequent as any other. */
export function drawStream(
  queries: readonly SimulatedQuery[],
  steps: number,
  random: () => number,
): SimulatedQuery[] {
  const stream: SimulatedQuery[] = [];
  while (stream.length < steps) {
    for (const i of permutation(queries.length, random)) {
      if (stream.length === steps) break;
      stream.push(queries[i] as SimulatedQuery);
    }
  }
  return stream;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT when the dataset cannot give the scenario */
export function makeScenario(
  environment: Environment,
  name: ScenarioName,
  { rate, seed, from = 'test', protocol: some = {}, mislabelled = 0.05 }: ScenarioOptions,
): Scenario {
  const protocol = { ...paperProtocol, ...some };
  const random = mulberry32(seed);
  const stream = drawStream(environment[from], protocol.steps, random);
  const warmup = drawStream(environment.validation, protocol.warmup, random).map((query) => ({
    query,
    tool: [...query.gold][Math.floor(random() * query.gold.size)] as number,
  }));
  const tools = environment.toolIds.length;
  const chosen = failingTools(stream, tools, rate, protocol.spared);
  const failing = new Set(name === 'server' ? wholeServers(environment, chosen) : chosen);
  const { onset, windowEnd } = protocol;
  const base = { name, protocol, stream, warmup, failing, hidden: () => none };
  const down = (isDown: (step: number, tool: number) => boolean): Scenario => {
    const works = (tool: number, step: number) =>
      step <= onset || !failing.has(tool) || !isDown(step, tool);
    return { ...base, works, reported: works };
  };
  switch (name) {
    case 'persistent':
    case 'server':
      return down(() => true);
    case 'recovery':
      return down((step) => step <= windowEnd);
    case 'flapping':
      // Each tool at its own phase: they do not go and come together.
      return down(
        (step, tool) =>
          (step - onset - 1 + Math.floor(hashed(seed, tool, 1) * 2 * flapSteps)) % (2 * flapSteps) <
          flapSteps,
      );
    case 'drift':
      // The chance of failing grows from 0 at the onset to 1 at the end of the window.
      return down((step, tool) => hashed(seed, tool, step) < (step - onset) / (windowEnd - onset));
    case 'mislabelled': {
      const scenario = down(() => true);
      return {
        ...scenario,
        reported: (tool, step) =>
          scenario.works(tool, step) !== hashed(seed + 7, tool, step) < mislabelled,
      };
    }
    case 'input-dependent': {
      const kinds = failingKinds([...environment.test, ...environment.validation], failing);
      return down((step, tool) => kinds.get(tool)?.(stream[step - 1] as SimulatedQuery) ?? false);
    }
    case 'new-tools': {
      // Every second of them is broken from the start and stays so.
      const broken = new Set([...failing].filter((_, i) => i % 2 === 1));
      const works = (tool: number) => !broken.has(tool);
      return {
        ...base,
        warmup: warmup.filter(({ tool }) => !failing.has(tool)),
        hidden: (step) => (step <= onset ? failing : none),
        works,
        reported: works,
      };
    }
  }
}

/** As many tools as were chosen, taken as whole servers in the order in which the chosen ones name them. */
function wholeServers({ origins, name }: Environment, chosen: readonly number[]): number[] {
  const members = new Map<string, number[]>();
  for (const [tool, origin] of origins.entries()) {
    if (origin === undefined) continue;
    const list = members.get(origin);
    if (list === undefined) members.set(origin, [tool]);
    else list.push(tool);
  }
  if (members.size < 2) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${name} has tools of ${members.size} server; the scenario 'server' needs two or more`,
    );
  }
  const failing = new Set<number>();
  for (const tool of chosen) {
    if (failing.size >= chosen.length) break;
    const origin = origins[tool];
    const server = origin === undefined ? undefined : members.get(origin);
    // A server with most of the catalogue would be another experiment.
    if (server === undefined || server.length > chosen.length / 2) continue;
    for (const member of server) failing.add(member);
  }
  return [...failing];
}

type Fails = (query: SimulatedQuery) => boolean;

/**
 * For each tool, which queries it fails for: its right queries fall into two clusters (2-means from the pair that is
 * furthest apart), and queries nearer to the second one fail. Tools with fewer than four right queries never do.
 */
export function failingKinds(
  queries: readonly SimulatedQuery[],
  tools: ReadonlySet<number>,
): Map<number, Fails> {
  const kinds = new Map<number, Fails>();
  const own = new Map<number, SimulatedQuery[]>();
  for (const query of queries) {
    for (const tool of query.gold) {
      if (!tools.has(tool)) continue;
      const list = own.get(tool);
      if (list === undefined) own.set(tool, [query]);
      else list.push(query);
    }
  }
  for (const [tool, right] of own) {
    if (right.length < 4) continue;
    const [a, b] = twoMeans(right.map(({ vector }) => vector));
    const cache = new Map<SimulatedQuery, boolean>();
    kinds.set(tool, (query) => {
      let fails = cache.get(query);
      if (fails === undefined) {
        fails = dot(query.vector, b) > dot(query.vector, a);
        cache.set(query, fails);
      }
      return fails;
    });
  }
  return kinds;
}

function twoMeans(vectors: readonly Float32Array[]): [Float64Array, Float64Array] {
  const furthest = (from: ArrayLike<number>) =>
    vectors.reduce((worst, each) => (dot(each, from) < dot(worst, from) ? each : worst));
  const first = furthest(vectors[0] as Float32Array);
  let centres: [Float64Array, Float64Array] = [
    Float64Array.from(first),
    Float64Array.from(furthest(first)),
  ];
  for (let round = 0; round < 10; round++) {
    const sums: [Float64Array, Float64Array] = [
      new Float64Array(first.length),
      new Float64Array(first.length),
    ];
    for (const vector of vectors) {
      const sum = dot(vector, centres[1]) > dot(vector, centres[0]) ? sums[1] : sums[0];
      for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + (vector[i] as number);
    }
    for (const [i, sum] of sums.entries()) {
      const length = Math.sqrt(dot(sum, sum));
      centres[i] = length === 0 ? (centres[i] as Float64Array) : sum.map((v) => v / length);
    }
    centres = [...centres];
  }
  return centres;
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}
