import { describe, expect, it } from 'vitest';
import { mulberry32 as seededRandom } from '../../dist/esm/lib/evaluate/random.js';
import { Bandit, FeedbackStore } from '../../dist/esm/lib/index.js';

const gamma = 0.95;
const most = 3;

interface Tool {
  failures: number;
  level: number;
  time: number;
  outcomes: number[];
}

/** Trials once more, from their description, with every outcome kept instead of sums. */
class Reference {
  readonly tools = new Map<string, Tool>();
  budgets = { first: most, repeated: most };
  time = 0;

  relaxed(tool: Tool, now: number): number {
    const halfLife = Math.min(3_600_000, 30_000 * 2 ** (Math.max(1, tool.failures) - 1));
    const elapsed = Math.max(0, now - tool.time);
    return 1 - (1 - tool.level) * 2 ** (-elapsed / halfLife);
  }

  suspended({ failures, outcomes }: Tool): boolean {
    if (failures === 0) return false;
    const before = outcomes.slice(0, outcomes.length - failures);
    let [n, s] = [0, 0];
    for (const y of before) [n, s] = [gamma * n + 1, gamma * s + y];
    return (1 - (s + 0.5) / (n + 0.5)) ** failures < 0.05;
  }

  budget(kind: 'first' | 'repeated', now: number): number {
    return Math.min(most, this.budgets[kind] + Math.max(0, now - this.time) / 3_600_000);
  }

  availability(id: string, now: number): number {
    const tool = this.tools.get(id);
    if (tool === undefined || !this.suspended(tool)) return 1;
    const kind = tool.failures > 1 ? 'repeated' : 'first';
    if (this.relaxed(tool, now) >= 0.5 && this.budget(kind, now) >= 1) return 1;
    return Math.min(0.499, this.relaxed(tool, now) / 2);
  }

  report(id: string, y: number, now: number): void {
    const tool = this.tools.get(id) ?? { failures: 0, level: 1, time: 0, outcomes: [] };
    this.tools.set(id, tool);
    const { first, repeated } = {
      first: Math.min(most, this.budget('first', now) + 0.0025),
      repeated: Math.min(most, this.budget('repeated', now) + 0.0025),
    };
    this.budgets = { first, repeated };
    this.time = Math.max(this.time, now);
    if (this.suspended(tool)) {
      const kind = tool.failures > 1 ? 'repeated' : 'first';
      if (y === 1) {
        this.budgets = { first: Math.min(most, first + 2), repeated: Math.min(most, repeated + 2) };
      } else if (this.budgets[kind] >= 1) this.budgets[kind] -= 1;
    }
    tool.level = 0.5 * (tool.outcomes.length === 0 ? 1 : this.relaxed(tool, now)) + 0.5 * y;
    tool.failures = y === 1 ? 0 : tool.failures + 1;
    tool.time = now;
    tool.outcomes.push(y);
  }
}

const one = Float32Array.of(1);
const half = Float32Array.of(0.5);
function report(bandit: Bandit, id: string, y: number, now: number, x: Float32Array | null = one) {
  bandit.update([id], x, half, Float32Array.of(y), Float64Array.of(now));
}
function availability(bandit: Bandit, id: string, now: number): number {
  return bandit.score([id], half, one, now).availability[0] as number;
}

describe('trials of tools that failed', () => {
  it('are what an independent reading of their rule says, over random outcomes', () => {
    for (const seed of [1, 2, 3, 4]) {
      const random = seededRandom(seed);
      const reference = new Reference();
      using bandit = new Bandit({ dimension: 1 });
      let now = 1e6;
      let suspended = 0;
      for (let i = 0; i < 1500; i++) {
        now += random() < 0.02 ? 600_000 * random() : 3000 * random();
        const id = `tool ${Math.floor(random() * 8)}`;
        const given = availability(bandit, id, now);
        expect(given).toBeCloseTo(reference.availability(id, now), 5);
        if (given < 0.5) suspended += 1;
        const works = Math.sin(Number(id.at(-1)) + i / 150) > -0.3 || random() < 0.1;
        report(bandit, id, Number(works), now);
        reference.report(id, Number(works), now);
      }
      expect(suspended).toBeGreaterThan(50);
    }
  });

  it('cost at most their share of the requests, however many tools are down', () => {
    using bandit = new Bandit({ dimension: 1, availabilityHalfLifeMax: 1e12 });
    let failedTrials = 0;
    const requests = 20_000;
    const suspended = new Set<string>();
    for (let i = 0; i < requests; i++) {
      const now = 1e6 + 1000 * i;
      const id = `tool ${i % 500}`;
      if (availability(bandit, id, now) >= 0.5) {
        if (suspended.has(id)) failedTrials += 1;
        report(bandit, id, 0, now);
        suspended.add(id);
      } else {
        report(bandit, 'the one that works', 1, now);
      }
    }
    expect(failedTrials).toBeGreaterThan(20);
    expect(failedTrials).toBeLessThanOrEqual(2 * 0.0025 * requests + 2 * most);
  });

  it('let every tool return as fast as it is asked for once tools work again', () => {
    using bandit = new Bandit({ dimension: 1 });
    const ids = Array.from({ length: 200 }, (_, i) => `tool ${i}`);
    for (const [i, id] of ids.entries()) report(bandit, id, 0, 1e6 + i);
    const back = 1e6 + 3_600_000;
    const offered = ids.filter((id, i) => {
      const isOffered = availability(bandit, id, back + i) >= 0.5;
      if (isOffered) report(bandit, id, 1, back + i);
      return isOffered;
    });
    expect(offered).toHaveLength(ids.length);
  });

  it('are not needed for a tool that fails every other time: that is no outage', () => {
    using bandit = new Bandit({ dimension: 1 });
    for (let i = 0; i < 40; i++) report(bandit, 'coin', i % 2, 1000 * i);
    report(bandit, 'coin', 0, 41_000);
    expect(availability(bandit, 'coin', 41_000)).toBe(1);
    for (let i = 0; i < 6; i++) report(bandit, 'coin', 0, 42_000 + i);
    expect(availability(bandit, 'coin', 42_006)).toBeLessThan(0.5);
  });

  it('can be free: availability is then the relaxing estimate', () => {
    using bandit = new Bandit({ dimension: 1, freeTrials: true });
    report(bandit, 'a', 0, 0);
    expect(availability(bandit, 'a', 0)).toBe(0.5);
    expect(availability(bandit, 'a', 30_000)).toBeCloseTo(0.75, 6);
  });

  it('keep their budget in the state', () => {
    const spend = (bandit: Bandit) => {
      for (let i = 0; i < 12; i++) report(bandit, `tool ${i}`, 0, 1000 * i);
      for (let i = 0; i < 12; i++) report(bandit, `tool ${i}`, 0, 20_000 + i);
    };
    using original = new Bandit({ dimension: 1 });
    spend(original);
    using copy = new Bandit({ dimension: 1 });
    copy.deserialize(original.serialize());
    report(original, 'fresh', 1, 30_000);
    report(copy, 'fresh', 1, 30_000);
    report(original, 'fresh', 0, 31_000);
    report(copy, 'fresh', 0, 31_000);
    expect(copy.serialize()).toEqual(original.serialize());
    // First trials have no room left: in a bandit that spent nothing, this one would be due.
    expect(availability(copy, 'fresh', 31_000)).toBeLessThan(0.5);
    using idle = new Bandit({ dimension: 1 });
    report(idle, 'fresh', 1, 30_000);
    report(idle, 'fresh', 0, 31_000);
    expect(availability(idle, 'fresh', 31_000)).toBe(1);
  });

  it('refuses a share out of range', () => {
    for (const trialShare of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => new Bandit({ dimension: 1, trialShare }), String(trialShare)).toThrowError(
        expect.objectContaining({ name: 'FinchError' }),
      );
    }
  });
});

describe('a health check', () => {
  it('changes availability and leaves the context alone', () => {
    using bandit = new Bandit({ dimension: 2 });
    const x = Float32Array.of(0.6, 0.8);
    const update = (y: number, context: Float32Array | null, now: number) =>
      bandit.update(['a'], context, half, Float32Array.of(y), Float64Array.of(now));
    update(1, x, 0);
    update(0, x, 1000);
    update(0, x, 2000);
    const mean = () => bandit.score(['a'], half, x, 3000).mean[0];
    const before = mean();
    expect(bandit.score(['a'], half, x, 3000).availability[0]).toBeLessThan(0.5);
    update(1, null, 3000);
    expect(mean()).toBe(before);
    const after = bandit.score(['a'], half, x, 3000);
    expect(after.availability[0]).toBe(1);
    expect(after.lastOutcome[0]).toBe(1);
    expect(after.updates[0]).toBe(4);
  });

  it('is kept by a feedback store like any report', async () => {
    let now = 1e9;
    const store = FeedbackStore.memory({ bandit: { dimension: 1 }, now: () => now });
    const fail = async () => {
      now += 1000;
      const decisionId = store.decide({ x: one, toolIds: ['a'], priors: half });
      await store.report({ decisionId, toolId: 'a', outcome: 'error' });
    };
    for (let i = 0; i < 3; i++) await fail();
    expect(availability(store.bandit, 'a', now)).toBeLessThan(0.5);
    expect(await store.reportHealth('a', 'success')).toEqual({ durable: false });
    expect(availability(store.bandit, 'a', now)).toBe(1);
    expect(await store.reportHealth('a', 'cancelled')).toEqual({ durable: false });
    await expect(store.reportHealth('a', 'maybe' as never)).rejects.toMatchObject({
      code: 'FINCH_INVALID_ARGUMENT',
    });
    await expect(store.reportHealth('', 'error')).rejects.toMatchObject({
      code: 'FINCH_INVALID_ARGUMENT',
    });
    await store.close();
    await expect(store.reportHealth('a', 'error')).rejects.toMatchObject({ code: 'FINCH_CLOSED' });
  });
});
