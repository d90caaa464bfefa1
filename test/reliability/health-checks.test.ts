import { describe, expect, it } from 'vitest';
import { FeedbackStore, type HealthCheckOptions, HealthChecks } from '../../dist/esm/lib/index.js';

const one = Float32Array.of(1);
const half = Float32Array.of(0.5);

/** A store whose tools can be made to fail, on a clock that only the test moves. */
function world(options: Partial<HealthCheckOptions> = {}) {
  let now = 1e9;
  const store = FeedbackStore.memory({ bandit: { dimension: 1 }, now: () => now });
  const broken = new Set<string>();
  const asked: string[] = [];
  const checks = new HealthChecks({
    feedback: store,
    toolIds: () => ['a', 'b', 'c', 'never called'],
    probe: (id) => {
      asked.push(id);
      return !broken.has(id);
    },
    intervalMs: 1000,
    maxIntervalMs: 8000,
    ...options,
  });
  const call = async (id: string, outcome: 'success' | 'error') => {
    const decisionId = store.decide({ x: one, toolIds: [id], priors: half });
    await store.report({ decisionId, toolId: id, outcome });
  };
  const availability = (id: string) =>
    store.bandit.score([id], half, one, now).availability[0] as number;
  const later = (ms: number) => {
    now += ms;
  };
  return { store, broken, asked, checks, call, availability, later };
}

describe('HealthChecks', () => {
  it('asks only after tools whose latest call failed, and brings back those that work', async () => {
    const { store, broken, asked, checks, call, availability } = world();
    await call('a', 'error');
    await call('a', 'error');
    await call('b', 'error');
    await call('c', 'success');
    broken.add('b');
    expect(await checks.failing()).toEqual(['a', 'b']);
    expect(await checks.run()).toBe(1);
    expect(asked.sort()).toEqual(['a', 'b']);
    expect(availability('a')).toBe(1);
    expect(await checks.failing()).toEqual(['b']);
    await store.close();
  });

  it('does not ask again before the interval is over, and reports no failure', async () => {
    const { store, broken, asked, checks, call, later } = world();
    broken.add('a');
    await call('a', 'error');
    await checks.run();
    const reports = store.health().sequence;
    await checks.run();
    expect(asked).toEqual(['a']);
    later(1000);
    await checks.run();
    expect(asked).toEqual(['a', 'a']);
    expect(store.health().sequence).toBe(reports);
    await store.close();
  });

  it('asks ever more rarely after a tool that passes its checks and then fails', async () => {
    const { store, asked, checks, call, later } = world();
    const gaps: number[] = [];
    let waited = 0;
    for (let i = 0; i < 60; i++) {
      await call('a', 'error');
      const before = asked.length;
      await checks.run();
      if (asked.length > before) {
        gaps.push(waited);
        waited = 0;
      }
      later(500);
      waited += 500;
    }
    expect(gaps.slice(0, 5)).toEqual([0, 2500, 4500, 8500, 8500]);
    await store.close();
  });

  it('takes a rejection, a wrong answer and a silence for a failure', async () => {
    for (const probe of [
      () => Promise.reject(new Error('no')),
      () => {
        throw new Error('no');
      },
      () => 'yes' as unknown as boolean,
      () => new Promise<boolean>(() => undefined),
    ]) {
      const { store, checks, call, availability } = world({ probe, timeoutMs: 20 });
      await call('a', 'error');
      expect(await checks.run()).toBe(0);
      await call('a', 'error');
      expect(availability('a')).toBeLessThan(0.5);
      await store.close();
    }
  });

  it('runs by itself until it is stopped, and leaves no probe waiting', async () => {
    let asked = 0;
    const { store, checks, call } = world({
      intervalMs: 5,
      maxIntervalMs: 5,
      probe: (_id, { signal }) => {
        asked += 1;
        return new Promise<boolean>((resolve) => {
          signal.addEventListener('abort', () => resolve(true), { once: true });
        });
      },
    });
    await call('a', 'error');
    checks.start();
    checks.start();
    while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const before = store.health().sequence;
    checks.stop();
    await new Promise((resolve) => setTimeout(resolve, 30));
    // It was told to stop: what a probe answers then is not reported.
    expect(store.health().sequence).toBe(before);
    expect(asked).toBe(1);
    checks[Symbol.dispose]();
    await store.close();
  });

  it('refuses options that make no sense', () => {
    const good = {
      feedback: { now: () => 0, reportHealth: async () => undefined, bandit: {}, dimension: 1 },
      toolIds: () => [],
      probe: () => true,
    };
    const make = (bad: object) => () => new HealthChecks({ ...good, ...bad } as never);
    expect(make({})).not.toThrow();
    for (const bad of [
      { feedback: undefined },
      { toolIds: 1 },
      { probe: null },
      { intervalMs: 0 },
      { intervalMs: 'soon' },
      { maxIntervalMs: 10 },
      { timeoutMs: Number.NaN },
      { concurrency: 0.5 },
    ]) {
      expect(make(bad), JSON.stringify(bad)).toThrowError(
        expect.objectContaining({ code: 'FINCH_INVALID_ARGUMENT' }),
      );
    }
  });
});
