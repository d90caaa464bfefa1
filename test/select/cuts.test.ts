import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type AbstentionCalibration,
  type CutRule,
  calibrateAbstention,
  calibrateCut,
  cutList,
  defineTool,
  FeedbackStore,
  labelledLists,
  labelsFromOutcomes,
  packagedCut,
  Selector,
  ToolIndex,
} from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';

const things = [
  'weather',
  'alarm',
  'song',
  'mail',
  'table',
  'taxi',
  'photo',
  'note',
  'map',
  'loan',
];
const actions = ['show', 'set', 'delete', 'share'];
const tools = things.flatMap((thing) =>
  actions.map((action) =>
    defineTool({
      name: `${action}_${thing}`,
      description: `Use it to ${action} a ${thing}.`,
      inputSchema: { type: 'object' },
    }),
  ),
);
const queries = things.flatMap((thing) =>
  actions.map((action) => ({
    text: `please ${action} that ${thing} of mine`,
    gold: [`${action}_${thing}`],
  })),
);

let index: ToolIndex;
beforeAll(async () => {
  index = await ToolIndex.build(tools, { encoder: new WordEncoder(), prior: 'none' });
});
afterAll(() => index.close());

async function calibrated() {
  const { lists, pipeline } = await labelledLists(index, queries, { shortlist: 20 });
  const cut = calibrateCut(lists, { pipeline, targets: [0.9] });
  return { lists, pipeline, cut, abstain: calibrateAbstention(lists, { pipeline }) };
}

describe('Selector with a calibrated cut', () => {
  it('cuts where cutList does, looks at as many candidates as the calibration, and tells', async () => {
    const { lists, cut } = await calibrated();
    const rule: CutRule = { rule: 'calibrated', target: 0.9, calibration: cut };
    const selector = new Selector({ index, cut: rule, relevanceFloor: -Infinity });
    let found = 0;
    for (const [i, { text, gold }] of queries.entries()) {
      const decision = await selector.select(text);
      const expected = cutList(lists[i] as (typeof lists)[number], rule);
      expect(decision.candidates).toHaveLength(20);
      expect(decision.tools).toHaveLength(expected.k);
      expect(decision.cut).toMatchObject({
        rule: 'calibrated',
        k: expected.k,
        signals: [],
        target: 0.9,
        threshold: cut.thresholds[0]?.threshold,
      });
      const values = decision.candidates.map(({ cutValue }) => cutValue);
      expect(values).toEqual(expected.values);
      if (decision.tools.some(({ id }) => gold.includes(id))) found += 1;
    }
    expect(found / queries.length).toBeGreaterThanOrEqual(0.9);
  });

  it('keeps as many, but the better ones, when tools have failed', async () => {
    const { cut } = await calibrated();
    const feedback = FeedbackStore.memory({ bandit: { dimension: index.encoder.dimension } });
    const rule: CutRule = { rule: 'calibrated', target: 0.9, calibration: cut, minK: 2, maxK: 2 };
    const selector = new Selector({ index, feedback, cut: rule, now: () => 1000 });
    const text = 'please show that weather of mine';
    for (let round = 0; round < 3; round++) {
      const { id } = await selector.select(text);
      await selector.report(id, 'show_weather', 'error');
    }
    const { tools: kept, candidates } = await selector.select(text);
    expect(kept).toHaveLength(2);
    expect(kept.map(({ id }) => id)).not.toContain('show_weather');
    const failing = candidates.find(({ id }) => id === 'show_weather');
    expect(failing).toMatchObject({ fate: 'unhealthy' });
    expect(failing?.cutValue).toBeUndefined();
  });

  it('refuses a calibration of another pipeline', async () => {
    const { cut, abstain } = await calibrated();
    const rule: CutRule = { rule: 'calibrated', target: 0.9, calibration: cut };
    const wrong = { code: 'FINCH_INVALID_ARGUMENT' };
    const selector = new Selector({ index });
    await expect(selector.select('x', { cut: rule, shortlist: 10 })).rejects.toMatchObject(wrong);
    await expect(selector.select('x', { cut: rule, method: 'dense' })).rejects.toMatchObject(wrong);
    await expect(selector.select('x', { abstain, method: 'dense' })).rejects.toMatchObject(wrong);
    const packaged: CutRule = { rule: 'calibrated', target: 0.9 };
    expect(() => new Selector({ index, cut: packaged })).toThrow(packagedCut.pipeline.encoder);
    await selector.select('x', { cut: rule, abstain });
  });
});

describe('Selector with the other cuts', () => {
  it('follows each rule, and says when a threshold keeps nothing', async () => {
    const selector = new Selector({ index, relevanceFloor: -Infinity });
    const text = 'please share that photo of mine';
    const all = (await selector.select(text, { cut: { rule: 'fixed', k: 10 } })).candidates;
    const scores = all.map(({ semantic }) => semantic);
    const rules: CutRule[] = [
      { rule: 'threshold', score: scores[3] as number },
      { rule: 'ratio', ratio: 0.8 },
      { rule: 'elbow' },
    ];
    for (const rule of rules) {
      const { tools: kept, cut } = await selector.select(text, { cut: rule });
      expect(kept).toHaveLength(cutList({ scores }, rule).k);
      expect(cut?.rule).toBe(rule.rule);
    }
    const none = await selector.select(text, { cut: { rule: 'threshold', score: 5 } });
    expect(none).toMatchObject({ tools: [], reason: 'below-threshold' });
    expect(none.candidates.every(({ fate }) => fate === 'cut')).toBe(true);
    const bad = { rule: 'ratio', ratio: 2 } as CutRule;
    await expect(selector.select(text, { cut: bad })).rejects.toMatchObject({
      code: 'FINCH_INVALID_ARGUMENT',
    });
  });
});

describe('Selector with abstain', () => {
  it('chooses nothing for what no tool answers, with the figures', async () => {
    const { abstain } = await calibrated();
    const selector = new Selector({ index, abstain, relevanceFloor: -Infinity });
    const off = await selector.select('who wrote the magic mountain');
    expect(off).toMatchObject({ tools: [], reason: 'unanswerable' });
    expect(off.abstention?.threshold).toBe(abstain.threshold);
    expect(off.abstention?.answerability).toBeLessThan(abstain.threshold);
    expect(off.candidates.every(({ fate }) => fate === 'abstained')).toBe(true);
    let refused = 0;
    for (const { text } of queries) {
      if ((await selector.select(text)).tools.length === 0) refused += 1;
    }
    expect(refused / queries.length).toBeLessThanOrEqual(0.05);
  });

  it('takes a tool that is called by its name, and pins, all the same', async () => {
    const { abstain } = await calibrated();
    const never: AbstentionCalibration = { ...abstain, threshold: 50 };
    const floor = await new Selector({ index, abstain }).select('x y z', { relevanceFloor: 9 });
    expect(floor.reason).toBe('below-floor');
    const selector = new Selector({ index, abstain: never });
    const named = await selector.select('set_alarm');
    expect(named.tools.map(({ id }) => id)).toContain('set_alarm');
    const pinned = await selector.select('who wrote it', { pin: ['show_map'] });
    expect(pinned.tools.map(({ id }) => id)).toEqual(['show_map']);
    expect(pinned.reason).toBeUndefined();
  });

  it('says that the tools which would answer are failing', async () => {
    const { abstain } = await calibrated();
    const feedback = FeedbackStore.memory({ bandit: { dimension: index.encoder.dimension } });
    const selector = new Selector({ index, feedback, relevanceFloor: -Infinity, now: () => 1000 });
    const text = 'please show that weather of mine';
    const open = { ...abstain, threshold: -5 };
    const { abstention } = await selector.select(text, { abstain: open });
    for (let round = 0; round < 3; round++) {
      const { id } = await selector.select(text);
      await selector.report(id, 'show_weather', 'error');
    }
    // All candidates together would do, those that work fall short.
    const threshold = (abstention?.answerability as number) - 1e-6;
    const decision = await selector.select(text, { abstain: { ...abstain, threshold } });
    expect(decision).toMatchObject({ tools: [], reason: 'unhealthy' });
  });
});

describe('labels', () => {
  it('come from outcomes: what worked is gold', async () => {
    const selector = new Selector({ index });
    const a = await selector.select('please set that alarm of mine');
    const b = await selector.select('please show that map of mine');
    const labels = labelsFromOutcomes([
      { decision: a, toolId: 'set_alarm', ok: true },
      { decision: a, toolId: 'show_alarm', ok: false },
      { decision: b, toolId: 'share_map', ok: false },
      { decision: a, toolId: 'delete_alarm', ok: true },
    ]);
    expect(labels).toEqual([{ text: a.query, gold: new Set(['set_alarm', 'delete_alarm']) }]);
    const { lists } = await labelledLists(index, labels);
    expect(lists[0]?.relevant).toHaveLength(2);
  });

  it('must name tools of the index', async () => {
    const [first] = index.tools().map(({ id }) => id);
    const text = 'x';
    for (const gold of [[first], new Set([first])] as never[]) {
      const queries = [{ text, gold }];
      for (const _ of ['once', 'twice']) {
        const { lists } = await labelledLists(index, queries);
        expect(lists.map((list) => list.gold)).toEqual([1]);
      }
    }
    const once = (function* () {
      yield first;
    })();
    const wrong = [
      once,
      [first].values(),
      new Map([[first, 1]]).keys(),
      new Map([[first, 1]]),
      first,
    ];
    for (const gold of wrong) {
      await expect(labelledLists(index, [{ text, gold }] as never)).rejects.toMatchObject({
        code: 'FINCH_INVALID_ARGUMENT',
        message: expect.stringContaining('queries[0].gold') as string,
      });
    }
    expect(once.next().value).toBe(first);
    const all = [{ text, gold: [first] }].values();
    await expect(labelledLists(index, all as never)).rejects.toMatchObject({
      code: 'FINCH_INVALID_ARGUMENT',
    });
    const unknown = labelledLists(index, [{ text: 'x', gold: ['no_such'] }]);
    await expect(unknown).rejects.toMatchObject({ code: 'FINCH_UNKNOWN_ID' });
    const nothing = await labelledLists(index, [{ text: 'x', gold: [] }]);
    expect(nothing.lists[0]).toMatchObject({ relevant: [], gold: 0 });
    expect(nothing.pipeline).toEqual({ encoder: 'words@1', method: 'hybrid', shortlist: 50 });
  });
});
