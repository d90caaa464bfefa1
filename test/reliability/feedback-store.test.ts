import { readdirSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { FeedbackStore } from '../../lib/reliability/feedback-store.js';
import { type Outcome, rewardOf } from '../../lib/reliability/reward.js';
import { FakeBandit } from './fake-bandit.js';
import {
  bytesOf,
  context,
  dimension,
  expectCode,
  fakeOptions,
  openFake,
  priors,
  scratch,
} from './scratch.js';

const tools = ['alpha', 'beta', 'gamma'];

function decide(store: FeedbackStore<FakeBandit>, seed: number, id?: string): string {
  return store.decide({ id, x: context(seed), toolIds: tools, priors: priors(3), time: seed });
}

describe('a report', () => {
  it('is applied once, and says so', async () => {
    const folder = scratch();
    await using store = await openFake(folder);
    const id = decide(store, 1);
    expect(await store.report({ decisionId: id, toolId: 'alpha', outcome: 'success' })).toEqual({
      status: 'applied',
      durable: true,
    });
    expect(await store.report({ decisionId: id, toolId: 'alpha', outcome: 'error' })).toEqual({
      status: 'duplicate',
      durable: true,
    });
    expect(store.bandit.updatesOf('alpha')).toBe(1);
    expect(await store.report({ decisionId: id, toolId: 'beta', outcome: 'cancelled' })).toEqual({
      status: 'recorded',
      durable: true,
    });
    expect(store.bandit.updatesOf('beta')).toBe(0);
    expect(store.health()).toMatchObject({ durable: true, reason: undefined, unsaved: 0 });
  });

  it('learns the decision of its own: context, prior, reward and time', async () => {
    await using store = FeedbackStore.memory(fakeOptions());
    const a = decide(store, 1);
    const b = decide(store, 2);
    await store.report({ decisionId: b, toolId: 'gamma', outcome: 'timeout', at: 20 });
    await store.report({ decisionId: a, toolId: 'gamma', outcome: 'success', at: 10 });
    const expected = new FakeBandit({ dimension });
    const prior = priors(3).subarray(2, 3);
    expected.update(['gamma'], context(2), prior, Float32Array.of(0), Float64Array.of(20));
    expected.update(['gamma'], context(1), prior, Float32Array.of(1), Float64Array.of(10));
    expect(bytesOf(store.bandit)).toBe(bytesOf(expected));
  });

  it('from the future counts as now, in memory, on disk and replayed', async () => {
    const expected = new FakeBandit({ dimension });
    const prior = priors(3).subarray(0, 1);
    const times = [5000, 4999, 5000, 5000];
    for (const [i, time] of times.entries()) {
      expected.update(['alpha'], context(i), prior, Float32Array.of(1), Float64Array.of(time));
    }
    const folder = scratch();
    const now = () => 5000;
    for (const store of [
      FeedbackStore.memory(fakeOptions({ now })),
      await openFake(folder, { now }),
    ]) {
      for (const [i, at] of [5001, 4999, 5000 * 1000, Number.MAX_VALUE].entries()) {
        const decisionId = decide(store, i);
        await store.report({ decisionId, toolId: 'alpha', outcome: 'success', at });
      }
      expect(bytesOf(store.bandit)).toBe(bytesOf(expected));
      await store.close();
    }
    await using again = await openFake(folder, { now: () => 1e9 });
    expect(bytesOf(again.bandit)).toBe(bytesOf(expected));
  });

  it('finds its decision after a restart, late and out of order', async () => {
    const folder = scratch();
    const first = await openFake(folder);
    const ids = [1, 2, 3, 4].map((seed) => decide(first, seed, `decision-${seed}`));
    await first.report({ decisionId: ids[2] ?? '', toolId: 'alpha', outcome: 'success', at: 3 });
    const before = bytesOf(first.bandit);
    await first.close();
    expect(first.bandit.closed).toBe(true);

    await using second = await openFake(folder);
    expect(bytesOf(second.bandit)).toBe(before);
    expect(second.decision('decision-1')).toEqual({ time: 1, toolIds: tools, reported: [] });
    expect(second.decision('decision-3')?.reported).toEqual(['alpha']);
    expect(second.decision('nobody')).toBeUndefined();
    expect(second.latestDecision()).toBe('decision-4');
    const repeat = { decisionId: 'decision-3', toolId: 'alpha', outcome: 'error' } as const;
    expect((await second.report(repeat)).status).toBe('duplicate');
    const late = { decisionId: 'decision-1', toolId: 'alpha', outcome: 'error', at: 1 } as const;
    expect((await second.report(late)).status).toBe('applied');
    expect(second.bandit.updatesOf('alpha')).toBe(2);
  });

  it('of an unknown decision or tool changes nothing', async () => {
    await using store = await openFake(scratch());
    const id = decide(store, 1);
    const before = store.health();
    const unknown = await expectCode(
      store.report({ decisionId: 'nobody', toolId: 'alpha', outcome: 'success' }),
      'FINCH_UNKNOWN_ID',
    );
    expect(unknown.message).toContain('"nobody"');
    const tool = await expectCode(
      store.report({ decisionId: id, toolId: 'delta', outcome: 'success' }),
      'FINCH_UNKNOWN_ID',
    );
    expect(tool.message).toContain('"alpha"');
    expect({ ...store.health(), waiting: 0, logBytes: 0 }).toEqual({
      ...before,
      waiting: 0,
      logBytes: 0,
    });
    expect(bytesOf(store.bandit)).toBe('[]');
  });

  it('made a thousand times at once is applied once', async () => {
    await using store = await openFake(scratch(), { sync: 'each' });
    const id = decide(store, 1);
    const results = await Promise.all(
      Array.from({ length: 1000 }, () =>
        store.report({ decisionId: id, toolId: 'alpha', outcome: 'error' }),
      ),
    );
    const applied = results.filter(({ status }) => status === 'applied');
    expect(applied).toHaveLength(1);
    expect(results.every(({ durable }) => durable)).toBe(true);
    expect(store.bandit.updatesOf('alpha')).toBe(1);
  });

  it('made together with thousands of others shares their syncs and keeps their order', async () => {
    const folder = scratch();
    const store = await openFake(folder, { sync: 'each' });
    const ids = Array.from({ length: 3000 }, (_, i) => decide(store, i));
    await Promise.all(
      ids.map((decisionId, i) =>
        store.report({ decisionId, toolId: 'alpha', outcome: i % 3 ? 'success' : 'error', at: i }),
      ),
    );
    expect(store.bandit.updatesOf('alpha')).toBe(3000);
    const before = bytesOf(store.bandit);
    await store.close();
    await using again = await openFake(folder);
    expect(bytesOf(again.bandit)).toBe(before);
  });

  it('that was begun before close settles, and later ones are refused', async () => {
    const folder = scratch();
    const store = await openFake(folder, { sync: 'each' });
    const id = decide(store, 1);
    const inFlight = store.report({ decisionId: id, toolId: 'alpha', outcome: 'success' });
    const closing = store.close();
    await expectCode(
      store.report({ decisionId: id, toolId: 'beta', outcome: 'success' }),
      'FINCH_CLOSED',
    );
    await expectCode(() => decide(store, 2), 'FINCH_CLOSED');
    await expectCode(store.drop(['alpha']), 'FINCH_CLOSED');
    await expectCode(store.compact(), 'FINCH_CLOSED');
    await expectCode(store.flush(), 'FINCH_CLOSED');
    await closing;
    await store.close();
    expect((await inFlight).status).toBe('applied');
    expect(store.health()).toMatchObject({ durable: false, reason: 'the store is closed' });
    await using again = await openFake(folder);
    expect(again.bandit.updatesOf('alpha')).toBe(1);
  });
});

describe('windows', () => {
  it('forget the oldest decisions, and know their reports again all the same', async () => {
    const folder = scratch();
    for (const place of ['live', 'reopened'] as const) {
      await using store = await openFake(folder, { maxDecisions: 3 });
      if (place === 'live') {
        decide(store, 0, 'old');
        await store.report({ decisionId: 'old', toolId: 'alpha', outcome: 'success' });
        for (let i = 1; i <= 3; i++) decide(store, i);
      }
      expect(store.health().decisions).toBe(3);
      const again = { decisionId: 'old', toolId: 'alpha', outcome: 'success' } as const;
      expect((await store.report(again)).status).toBe('duplicate');
      await expectCode(store.report({ ...again, toolId: 'beta' }), 'FINCH_UNKNOWN_ID');
    }
  });

  it('bound the reports by number and age without applying anything twice', async () => {
    let now = 1000;
    await using store = await openFake(scratch(), {
      maxReports: 10,
      reportAgeMs: 500,
      now: () => now,
    });
    const ids = Array.from({ length: 30 }, (_, i) => decide(store, i));
    for (const decisionId of ids) {
      await store.report({ decisionId, toolId: 'alpha', outcome: 'success' });
    }
    expect(store.health().reports).toBe(10);
    for (const decisionId of ids) {
      const again = await store.report({ decisionId, toolId: 'alpha', outcome: 'success' });
      expect(again.status).toBe('duplicate');
    }
    now += 501;
    await store.report({ decisionId: ids[0] ?? '', toolId: 'beta', outcome: 'error' });
    expect(store.health().reports).toBe(1);
    expect(store.bandit.updatesOf('alpha')).toBe(30);
  });
});

describe('drop', () => {
  it('forgets arms, in the order of the log', async () => {
    const folder = scratch();
    let before: string;
    {
      await using store = await openFake(folder);
      const ids = [1, 2, 3].map((seed) => decide(store, seed));
      const work = [
        store.report({ decisionId: ids[0] ?? '', toolId: 'alpha', outcome: 'error', at: 1 }),
        store.drop(['alpha', 'never seen']),
        store.report({ decisionId: ids[1] ?? '', toolId: 'alpha', outcome: 'success', at: 2 }),
        store.report({ decisionId: ids[1] ?? '', toolId: 'beta', outcome: 'success', at: 3 }),
      ];
      await Promise.all(work);
      expect(store.bandit.updatesOf('alpha')).toBe(1);
      before = bytesOf(store.bandit);
    }
    await using again = await openFake(folder);
    expect(bytesOf(again.bandit)).toBe(before);
  });
});

describe('compaction', () => {
  it('moves everything into the snapshot, and deletes the log before it', async () => {
    const folder = scratch();
    const store = await openFake(folder);
    const ids = Array.from({ length: 50 }, (_, i) => decide(store, i));
    for (const decisionId of ids.slice(0, 25)) {
      await store.report({ decisionId, toolId: 'beta', outcome: 'success', at: 5 });
    }
    await store.compact();
    expect(store.health().snapshot).toMatchObject({ sequence: 75 });
    for (const decisionId of ids.slice(25)) {
      await store.report({ decisionId, toolId: 'beta', outcome: 'error', at: 6 });
    }
    const before = bytesOf(store.bandit);
    const names = readdirSync(folder).sort();
    expect(names).toEqual(['feedback-0000000000000076.log', 'feedback.lock', 'feedback.snapshot']);
    await store.close();

    await using again = await openFake(folder);
    expect(bytesOf(again.bandit)).toBe(before);
    expect(again.health()).toMatchObject({ sequence: 100, decisions: 50, reports: 50 });
    for (const decisionId of ids) {
      const repeated = await again.report({ decisionId, toolId: 'beta', outcome: 'success' });
      expect(repeated.status).toBe('duplicate');
    }
    // Twice in a row, with nothing in between.
    await again.compact();
    await again.compact();
    expect(again.health().snapshot).toMatchObject({ sequence: 100 });
  });

  it('happens by itself while reports go on, and loses none', async () => {
    const folder = scratch();
    const store = await openFake(folder, { compactBytes: 20_000 });
    const reports: Promise<unknown>[] = [];
    let seen = 0;
    for (let i = 0; i < 2000; i++) {
      const decisionId = decide(store, i);
      reports.push(
        store.report({ decisionId, toolId: tools[i % 3] ?? '', outcome: 'success', at: i }),
      );
      if (i % 100 === 0) await Promise.all(reports);
      seen = Math.max(seen, store.health().snapshot?.sequence ?? 0);
    }
    await Promise.all(reports);
    // The first may have taken as long as all the reports.
    await vi.waitFor(() => expect(seen || store.health().snapshot?.sequence).toBeGreaterThan(0), {
      timeout: 60_000,
    });
    expect(store.health().compactionError).toBeUndefined();
    const before = bytesOf(store.bandit);
    await store.close();
    await using again = await openFake(folder);
    expect(bytesOf(again.bandit)).toBe(before);
    for (const [i, tool] of tools.entries()) {
      expect(again.bandit.updatesOf(tool)).toBe([667, 667, 666][i]);
    }
  });
});

describe('bad input', () => {
  const good = { x: context(1), toolIds: tools, priors: priors(3) };
  const decisions: Array<[string, object, string]> = [
    ['x short', { x: new Float32Array(3).fill(1) }, 'FINCH_DIMENSION'],
    ['x long', { x: new Float32Array(5).fill(1) }, 'FINCH_DIMENSION'],
    ['x an array', { x: [1, 2, 3, 4] }, 'FINCH_INVALID_ARGUMENT'],
    ['x with NaN', { x: Float32Array.of(1, Number.NaN, 0, 0) }, 'FINCH_NOT_FINITE'],
    ['x infinite', { x: Float32Array.of(1, -Infinity, 0, 0) }, 'FINCH_NOT_FINITE'],
    ['x zero', { x: new Float32Array(4) }, 'FINCH_ZERO_VECTOR'],
    ['a tool twice', { toolIds: ['a', 'b', 'a'] }, 'FINCH_DUPLICATE_ID'],
    ['an empty tool id', { toolIds: ['a', '', 'b'] }, 'FINCH_INVALID_ARGUMENT'],
    ['a number as tool id', { toolIds: ['a', 7, 'b'] }, 'FINCH_INVALID_ARGUMENT'],
    ['no tool ids', { toolIds: undefined }, 'FINCH_INVALID_ARGUMENT'],
    ['a long tool id', { toolIds: ['a', 'b', 'ü'.repeat(2049)] }, 'FINCH_INVALID_ARGUMENT'],
    ['half a surrogate pair', { toolIds: ['a', 'b', '\ud800'] }, 'FINCH_INVALID_ARGUMENT'],
    ['too few priors', { priors: priors(2) }, 'FINCH_DIMENSION'],
    ['a prior above 1', { priors: Float32Array.of(0, 1.5, 0) }, 'FINCH_INVALID_ARGUMENT'],
    ['a prior NaN', { priors: Float32Array.of(0, Number.NaN, 0) }, 'FINCH_INVALID_ARGUMENT'],
    ['priors an array', { priors: [0, 0, 0] }, 'FINCH_INVALID_ARGUMENT'],
    ['an empty id', { id: '' }, 'FINCH_INVALID_ARGUMENT'],
    ['a taken id', { id: 'taken' }, 'FINCH_DUPLICATE_ID'],
    ['time NaN', { time: Number.NaN }, 'FINCH_NOT_FINITE'],
    ['time a string', { time: 'now' }, 'FINCH_INVALID_ARGUMENT'],
  ];
  it.each(decisions)('decide: %s', async (_, wrong, code) => {
    await using store = FeedbackStore.memory(fakeOptions());
    decide(store, 1, 'taken');
    const before = store.health();
    await expectCode(() => store.decide({ ...good, ...wrong }), code as 'FINCH_DIMENSION');
    expect(store.health()).toEqual(before);
  });

  const reports: Array<[string, object, string]> = [
    ['an unknown outcome', { outcome: 'ok' }, 'FINCH_INVALID_ARGUMENT'],
    ['no outcome', { outcome: undefined }, 'FINCH_INVALID_ARGUMENT'],
    ['an empty decision id', { decisionId: '' }, 'FINCH_INVALID_ARGUMENT'],
    ['a tool id of another type', { toolId: 5 }, 'FINCH_INVALID_ARGUMENT'],
    ['at infinite', { at: Infinity }, 'FINCH_NOT_FINITE'],
    ['at a date', { at: new Date(0) }, 'FINCH_INVALID_ARGUMENT'],
  ];
  it.each(reports)('report: %s', async (_, wrong, code) => {
    await using store = FeedbackStore.memory(fakeOptions());
    const decisionId = decide(store, 1);
    const before = store.health();
    const report = { decisionId, toolId: 'alpha', outcome: 'success' as Outcome, ...wrong };
    await expectCode(store.report(report), code as 'FINCH_DIMENSION');
    expect(store.health()).toEqual(before);
    expect(bytesOf(store.bandit)).toBe('[]');
  });

  it.each([Number.NaN, Infinity, '5' as never, undefined as never])('now() %s', async (broken) => {
    let time = 1000;
    await using store = await openFake(scratch(), { now: () => time });
    const ids = [1, 2].map((seed) => decide(store, seed));
    const report = { decisionId: ids[0] ?? '', toolId: 'alpha', outcome: 'success' } as const;
    await store.report(report);
    await store.flush();
    const before = store.health();
    time = broken;
    const other = { ...report, decisionId: ids[1] ?? '' };
    await expectCode(store.report(other), 'FINCH_INVALID_ARGUMENT');
    await expectCode(store.report({ ...other, at: 5 }), 'FINCH_INVALID_ARGUMENT');
    await expectCode(store.drop(['alpha']), 'FINCH_INVALID_ARGUMENT');
    const decision = { x: context(1), toolIds: tools, priors: priors(3) };
    await expectCode(() => store.decide(decision), 'FINCH_INVALID_ARGUMENT');
    expect(store.health()).toEqual(before);
    time = 1001;
    expect((await store.report(report)).status).toBe('duplicate');
    expect((await store.report(other)).status).toBe('applied');
  });

  it.each([null, undefined, 'd', 5])('%s in place of arguments', async (wrong) => {
    await using store = FeedbackStore.memory(fakeOptions());
    await expectCode(store.report(wrong as never), 'FINCH_INVALID_ARGUMENT');
    await expectCode(() => store.decide(wrong as never), 'FINCH_INVALID_ARGUMENT');
  });

  it.each(['', null, undefined, 5, ['a']])('the folder %j', async (folder) => {
    await expectCode(openFake(folder as never), 'FINCH_INVALID_ARGUMENT');
  });

  it.each([
    { now: 5 as never },
    { maxDecisions: 0 },
    { maxReports: 1.5 },
    { compactBytes: Number.NaN },
    { retryMs: -1 },
    { reportAgeMs: Infinity },
    { sync: { intervalMs: 0 } },
    { sync: 'sometimes' as 'each' },
    { onCorruption: 'ignore' as 'cut' },
  ])('options %j', async (wrong) => {
    await expectCode(openFake(scratch(), wrong), 'FINCH_INVALID_ARGUMENT');
    await expectCode(() => FeedbackStore.memory(fakeOptions(wrong)), 'FINCH_INVALID_ARGUMENT');
  });
});

describe('what was written otherwise', () => {
  it('is refused, naming the difference', async () => {
    for (const compacted of [false, true]) {
      const folder = scratch();
      const store = await openFake(folder, { model: 'm@1' });
      decide(store, 1);
      if (compacted) await store.compact();
      await store.close();
      await expectCode(openFake(folder, { bandit: { dimension: 5 } }), 'FINCH_DIMENSION');
      const gamma = await expectCode(
        openFake(folder, { bandit: { dimension, gamma: 0.9 } }),
        'FINCH_INVALID_ARGUMENT',
      );
      expect(gamma.message).toMatch(/gamma 0\.95.*0\.9/);
      await expectCode(openFake(folder, { model: 'm@2' }), 'FINCH_INVALID_ARGUMENT');
      // Exploration is a matter of scoring alone, and a default may be spelt out.
      const same = { dimension, alpha: 0.5, gamma: 0.95, lambda: 1, form: 'calibrated' as const };
      await (await openFake(folder, { model: 'm@1', bandit: same })).close();
      await (await openFake(folder)).close();
    }
  });
});

describe('reward', () => {
  it('is 1, 0 or nothing', () => {
    expect(rewardOf('success')).toBe(1);
    expect(rewardOf('error')).toBe(0);
    expect(rewardOf('timeout')).toBe(0);
    expect(rewardOf('cancelled')).toBeUndefined();
  });
});
