import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dataset } from '../../dist/esm/lib/evaluate/dataset.js';
import { BanditMethod } from '../../dist/esm/lib/evaluate/failures/bandit-method.js';
import {
  Blacklist,
  NoFeedback,
  PeriodicPolicy,
  SlidingWindow,
} from '../../dist/esm/lib/evaluate/failures/baselines.js';
import {
  type Environment,
  firstVisible,
  prepareEnvironment,
  type SimulatedQuery,
} from '../../dist/esm/lib/evaluate/failures/environment.js';
import {
  adaptationSteps,
  failedSelectionRate,
  spreadOf,
  stepsToCatchUp,
  successRate,
  trailingRate,
} from '../../dist/esm/lib/evaluate/failures/failure-metrics.js';
import { failureCurves } from '../../dist/esm/lib/evaluate/failures/failure-plot.js';
import { failureTable } from '../../dist/esm/lib/evaluate/failures/failure-table.js';
import { runScenario } from '../../dist/esm/lib/evaluate/failures/run.js';
import {
  failingKinds,
  failingTools,
  makeScenario,
  scenarioNames,
} from '../../dist/esm/lib/evaluate/failures/scenario.js';
import { chooseSettings, simulateScenario } from '../../dist/esm/lib/evaluate/failures/simulate.js';
import { runSweep, sweepPlot, sweepTable } from '../../dist/esm/lib/evaluate/failures/sweep.js';
import { defineTool, FeedbackStore, Selector, ToolIndex } from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';
import { parseXml } from './parse-xml.js';

const words = ['rain', 'mail', 'song', 'map', 'bank', 'photo', 'news', 'shop', 'game', 'note'];
const verbs = ['find', 'send', 'play', 'delete'];
/** 40 tools of 10 servers; queries that name their tool's verb and noun, some with a word of another. */
const tools = words.flatMap((noun) =>
  verbs.map((verb) =>
    defineTool(
      { name: `${verb}_${noun}`, description: `${verb} a ${noun} for someone`, inputSchema: {} },
      { group: noun },
    ),
  ),
);
const dataset: Dataset = {
  name: 'made up',
  tools,
  queries: tools.flatMap(({ id }, i) =>
    Array.from({ length: 12 - (i % 7) }, (_, j) => ({
      id: `${id} ${j}`,
      text: `please ${id.replace('_', ' ')} ${words[(i + j) % 10]} ${verbs[(i * j) % 4]} ${j}`,
      split: j % 3 === 0 ? 'train' : 'test',
      gold: new Map([[id, 1]]),
    })),
  ),
  unanswerable: [],
  warnings: [],
};
const protocol = { steps: 3000, onset: 600, windowEnd: 1500, warmup: 300, trailing: 100 };

let index: ToolIndex;
let environment: Environment;
beforeAll(async () => {
  index = await ToolIndex.build(tools, { encoder: new WordEncoder() });
  environment = await prepareEnvironment(dataset, index);
});
afterAll(() => {
  environment.snapshot.close();
  index.close();
});

describe('metrics, on streams made by hand', () => {
  const record = {
    success: Uint8Array.of(1, 1, 0, 1, 0, 0, 0, 1, 1, 1),
    failed: Uint8Array.of(0, 0, 0, 0, 1, 1, 0, 0, 0, 0),
  };

  it('takes SR and FSR over steps that both ends belong to', () => {
    expect(successRate(record, 1, 4)).toBe(0.75);
    expect(successRate(record, 5, 10)).toBe(0.5);
    expect(failedSelectionRate(record, 5, 6)).toBe(1);
    expect(failedSelectionRate(record, 1, 4)).toBe(0);
    expect([...trailingRate(record.success, 2)].slice(1)).toEqual([
      1, 0.5, 0.5, 0.5, 0, 0, 0.5, 1, 1,
    ]);
    expect(trailingRate(record.success, 2)[0]).toBeNaN();
  });

  it('finds the first step at which SR is back', () => {
    // Peak of two steps before the onset at 4: 1. At 0.5 of it, step 5 still counts step 4.
    expect(adaptationSteps(record, { onset: 4, trailing: 2 }, 0.5)).toBe(1);
    expect(adaptationSteps(record, { onset: 4, trailing: 2 }, 0.5, true)).toBe(4);
    expect(adaptationSteps(record, { onset: 4, trailing: 2 }, 0.9)).toBe(5);
    const never = { success: Uint8Array.of(1, 1, 0, 0, 0, 0) };
    expect(adaptationSteps(never, { onset: 2, trailing: 2 }, 0.9)).toBeUndefined();
  });

  it('counts steps until a method has caught up with another', () => {
    const slow = Uint8Array.of(0, 0, 0, 0, 1, 1, 1, 1);
    const good = new Uint8Array(8).fill(1);
    expect(stepsToCatchUp([slow], [good], { from: 2, window: 2, within: 0.01 })).toBe(2);
    expect(stepsToCatchUp([slow], [good], { from: 2, window: 2, within: 0.5 })).toBe(1);
    const none = new Uint8Array(8);
    expect(stepsToCatchUp([none], [good], { from: 2, window: 2, within: 0.01 })).toBeUndefined();
  });

  it('spreads by the sample standard deviation', () => {
    expect(spreadOf([1, 3])).toEqual({ mean: 2, sd: Math.SQRT2 });
    expect(spreadOf([4])).toEqual({ mean: 4, sd: 0 });
  });
});

describe('streams and scenarios', () => {
  it('skips the most frequent tools and fails the next, as counted by hand', () => {
    const query = (...gold: number[]) => ({ gold: new Set(gold) }) as SimulatedQuery;
    // Frequencies: tool 0 once, 1 twice, 2 three times, 3 never, 4 once.
    const stream = [query(2), query(2, 1), query(2), query(1), query(0), query(4)];
    expect(failingTools(stream, 5, 0.4, 0.2)).toEqual([1, 0]);
    expect(failingTools(stream, 5, 0.2, 0)).toEqual([2]);
  });

  it('keeps validation queries out of the stream, and every test query as frequent as another', () => {
    const scenario = makeScenario(environment, 'persistent', { rate: 0.2, seed: 1, protocol });
    const counts = new Map<string, number>();
    for (const { id } of scenario.stream) counts.set(id, (counts.get(id) ?? 0) + 1);
    const validation = new Set(environment.validation.map(({ id }) => id));
    expect([...counts.keys()].some((id) => validation.has(id))).toBe(false);
    expect(counts.size).toBe(environment.test.length);
    const most = Math.max(...counts.values());
    expect(most - Math.min(...counts.values())).toBeLessThanOrEqual(1);
    expect(scenario.warmup.every(({ query }) => validation.has(query.id))).toBe(true);
  });

  it('fails nothing before the onset, in any scenario', () => {
    for (const name of scenarioNames.filter((each) => each !== 'new-tools')) {
      const { works, failing } = makeScenario(environment, name, { rate: 0.3, seed: 2, protocol });
      for (const tool of failing) {
        for (let step = 1; step <= protocol.onset; step += 37) expect(works(tool, step)).toBe(true);
      }
    }
  });

  it('gives every scenario its own shape', () => {
    const make = (name: (typeof scenarioNames)[number]) =>
      makeScenario(environment, name, { rate: 0.3, seed: 3, protocol });
    const shareDown = (name: (typeof scenarioNames)[number], from: number, to: number) => {
      const { failing, works } = make(name);
      let down = 0;
      let all = 0;
      for (const tool of failing) {
        for (let step = from; step <= to; step++) {
          down += works(tool, step) ? 0 : 1;
          all += 1;
        }
      }
      return down / all;
    };
    expect(shareDown('persistent', 601, 3000)).toBe(1);
    expect(shareDown('recovery', 601, 1500)).toBe(1);
    expect(shareDown('recovery', 1501, 3000)).toBe(0);
    expect(shareDown('flapping', 601, 3000)).toBeCloseTo(0.5, 1);
    expect(shareDown('drift', 601, 700)).toBeLessThan(0.15);
    expect(shareDown('drift', 1501, 3000)).toBe(1);
    const { failing } = make('server');
    const servers = new Set([...failing].map((tool) => environment.origins[tool]));
    expect(failing.size).toBe(servers.size * verbs.length);
    const fresh = make('new-tools');
    expect(fresh.hidden(600)).toBe(fresh.failing);
    expect(fresh.hidden(601).size).toBe(0);
    const working = [...fresh.failing].filter((tool) => fresh.works(tool, 700));
    expect(working.length).toBe(Math.ceil(fresh.failing.size / 2));
    const mislabelled = make('mislabelled');
    let wrong = 0;
    for (let step = 1; step <= 3000; step++) {
      wrong += mislabelled.works(0, step) === mislabelled.reported(0, step) ? 0 : 1;
    }
    expect(wrong / 3000).toBeCloseTo(0.05, 1);
  });

  it('parts the right queries of a tool into two kinds', () => {
    const at = (x: number, y: number) =>
      ({ vector: Float32Array.of(x, y), gold: new Set([7]) }) as unknown as SimulatedQuery;
    const queries = [at(1, 0.1), at(1, 0), at(0.1, 1), at(0, 1), at(0.05, 1)];
    const fails = failingKinds(queries, new Set([7])).get(7);
    const sides = queries.map((query) => fails?.(query));
    expect(sides[0]).toBe(sides[1]);
    expect(sides[2]).toBe(sides[3]);
    expect(sides[0]).not.toBe(sides[2]);
    expect(failingKinds(queries.slice(0, 3), new Set([7])).size).toBe(0);
  });

  it('hides tools that are not there yet, and fills up with the next', () => {
    const list = environment.test[0]?.candidates.hybrid;
    if (list === undefined) throw new Error('no candidates');
    const hidden = new Set([list.tools[0] as number, list.tools[3] as number]);
    const seen = firstVisible(list, 10, hidden);
    expect(seen.tools).toHaveLength(10);
    expect([...seen.tools]).toEqual(
      [...list.tools].filter((tool) => !hidden.has(tool)).slice(0, 10),
    );
    expect(seen.keys.length).toBe(seen.scores.length);
  });
});

/** The protocol once more, from its description: the blacklist's SR and FSR on a given stream. */
function blacklistByHand(stream: readonly SimulatedQuery[]) {
  const counts = environment.toolIds.map(
    (_, tool) => stream.filter(({ gold }) => gold.has(tool)).length,
  );
  const byCount = [...counts.keys()].sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b);
  const down = new Set(byCount.slice(4, 12));
  const excluded = new Set<number>();
  let right = 0;
  let failed = 0;
  stream.forEach((query, i) => {
    const { tools: places, scores } = query.candidates.hybrid as {
      tools: Uint32Array;
      scores: Float32Array;
    };
    let best = -1;
    let most = Number.NEGATIVE_INFINITY;
    for (let k = 0; k < 10; k++) {
      const tool = places[k] as number;
      const score = 0.75 * (scores[k] as number) + 0.25 * (environment.priors[tool] as number);
      if (!excluded.has(tool) && score > most) {
        best = tool;
        most = score;
      }
    }
    const works = i < protocol.onset || !down.has(best);
    if (!works) excluded.add(best);
    if (i >= protocol.onset && i < protocol.windowEnd) {
      right += works && query.gold.has(best) ? 1 : 0;
      failed += works ? 0 : 1;
    }
  });
  const steps = protocol.windowEnd - protocol.onset;
  return { after: right / steps, failedSelections: failed / steps };
}

describe('the simulator', () => {
  const options = { rate: 0.2, seeds: [1, 2], protocol };

  it('does what an independent reading of the protocol does', () => {
    for (const seed of [1, 2, 3]) {
      const scenario = makeScenario(environment, 'persistent', { rate: 0.2, seed, protocol });
      const record = runScenario(new Blacklist(environment, 0.75), scenario);
      const { after, failedSelections } = blacklistByHand(scenario.stream);
      expect(successRate(record, 601, 1500)).toBe(after);
      expect(failedSelectionRate(record, 601, 1500)).toBe(failedSelections);
      expect(failedSelections).toBeGreaterThan(0);
    }
  });

  it('bounds every method by the oracle, and shows failures to those that cannot know', async () => {
    const short = { ...protocol, steps: 1100, onset: 200, windowEnd: 1100, warmup: 100 };
    const some = { rate: 0.2, seeds: [1], protocol: short };
    const chosen = await chooseSettings(environment, some);
    const result = await simulateScenario(environment, 'persistent', chosen, some);
    const of = (name: string) => {
      const found = result.methods.find((each) => each.name === name);
      if (found === undefined) throw new Error(`no ${name}`);
      return found;
    };
    expect(of('oracle').failedSelections).toEqual({ mean: 0, sd: 0 });
    for (const name of ['BM25', 'static dense', 'static hybrid', 'no feedback', 'retry, k = 3']) {
      expect(of(name).failedSelections.mean, name).toBeGreaterThan(0.05);
    }
    const blacklist = of('blacklist');
    const ours = of('ours (default)');
    expect(blacklist.after.mean).toBeLessThanOrEqual(of('oracle').after.mean);
    expect(of('retry, k = 3').calls.mean).toBeGreaterThan(1);
    // A failed trial costs a step: those allowed by the budget, and the ones the budget held at the onset.
    const trials = 6 + 2 * 0.0025 * 900;
    expect(ours.failedSelections.mean).toBeLessThanOrEqual(
      blacklist.failedSelections.mean + (trials + 4) / 900,
    );
    expect(result.failingTools).toBe(8);
    for (const { before, after, curve } of result.methods) {
      for (const share of [before.mean, after.mean, ...curve.success, ...curve.failed]) {
        expect(share).toBeGreaterThanOrEqual(0);
        expect(share).toBeLessThanOrEqual(1);
      }
    }
    const table = failureTable(result);
    expect(table.split('\n')).toHaveLength(2 + result.methods.length);
    expect(table).toContain('| ours (default) |');
    const picture = failureCurves(result, 'made up');
    expect(parseXml(picture).name).toBe('svg');
    expect(picture).toContain('tools fail');
  });

  it('gives the same to the bit for the same seeds, and another for others', async () => {
    const chosen = new Map([
      ['no feedback', { name: '', make: () => new NoFeedback(environment, 0.75) }],
      ['ours', { name: '', make: () => new BanditMethod(environment, {}, {}) }],
      ['policy', { name: '', make: () => new PeriodicPolicy(environment, 0.75, 0.1) }],
      ['window', { name: '', make: () => new SlidingWindow(environment, 5, 0.3) }],
    ]);
    const run = (seeds: number[]) =>
      simulateScenario(environment, 'flapping', chosen, { ...options, seeds });
    const [one, two] = [await run([4]), await run([4])];
    expect(JSON.stringify(two)).toBe(JSON.stringify(one));
    expect(JSON.stringify((await run([5])).methods)).not.toBe(JSON.stringify(one.methods));
  });

  it('brings tools back that work again, where a blacklist never does', async () => {
    const chosen = new Map([
      ['no feedback', { name: '', make: () => new NoFeedback(environment, 0.75) }],
      ['blacklist', { name: '', make: () => new Blacklist(environment, 0.75) }],
      ['ours', { name: '', make: () => new BanditMethod(environment, {}, {}) }],
      [
        'probes',
        { name: '', make: () => new BanditMethod(environment, {}, {}, { probeEvery: 30 }) },
      ],
    ]);
    const { methods } = await simulateScenario(environment, 'recovery', chosen, options);
    const [none, blacklist, ours, probes] = methods;
    expect(blacklist?.catchUp).toBeNull();
    expect(ours?.catchUp).not.toBeNull();
    expect(probes?.catchUp).toBeLessThanOrEqual(100);
    expect(ours?.late.mean).toBeGreaterThan((none?.late.mean ?? 1) - 0.06);
  });

  it('chooses as a Selector does over a feedback store', async () => {
    const scenario = makeScenario(environment, 'persistent', { rate: 0.3, seed: 6, protocol });
    const method = new BanditMethod(environment, {}, {});
    let now = 1e12;
    const feedback = FeedbackStore.memory({ bandit: { dimension: 64 }, now: () => now });
    const selector = new Selector({ index, feedback, relevanceFloor: -Infinity });
    const texts = new Map(dataset.queries.map(({ id, text }) => [id, text]));
    for (let step = protocol.onset - 20; step < protocol.onset + 180; step++) {
      now += 1000;
      const query = scenario.stream[step - 1] as SimulatedQuery;
      const list = firstVisible(query.candidates.hybrid as never, 10, new Set());
      const decision = await selector.select(texts.get(query.id) ?? '');
      const ranked = method.rank(query, list, now);
      expect(decision.candidates.map(({ id }) => id)).toEqual(
        ranked.map((tool) => environment.toolIds[tool]),
      );
      const tool = ranked[0] as number;
      const worked = scenario.works(tool, step);
      method.learn(query, tool, worked, now);
      await selector.report(decision.id, environment.toolIds[tool] as string, worked);
    }
    method.close();
    await feedback.close();
  });

  it('sweeps settings into tables and pictures', async () => {
    for (const sweep of ['weights', 'memory', 'trade-off'] as const) {
      const result = await runSweep(environment, sweep, {
        rate: 0.2,
        seeds: [1],
        protocol: { ...protocol, steps: 300, onset: 100, windowEnd: 200, warmup: 20 },
      });
      expect(sweepTable(result).split('\n')).toHaveLength(2 + result.points.length);
      expect(parseXml(sweepPlot(result, 'made up')).name).toBe('svg');
    }
  });

  it('stops when it is told to', async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(
      chooseSettings(environment, { ...options, signal: controller.signal }),
    ).rejects.toMatchObject({ code: 'FINCH_ABORTED' });
  });
});
