import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MonotoneClock } from '../../lib/reliability/clock.js';
import { FeedbackStore } from '../../lib/reliability/feedback-store.js';
import { FakeBandit } from './fake-bandit.js';
import { bytesOf, context, dimension, fakeOptions, openFake, priors, scratch } from './scratch.js';

const day = 24 * 3600 * 1000;

describe('the clock', () => {
  it('never goes back, keeps the pace while ahead, and is the system clock again once that has caught up', () => {
    const readings = fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1 });
    fc.assert(
      fc.property(readings, fc.option(fc.integer({ min: -1000, max: 2000 })), (system, earlier) => {
        let read = 0;
        const clock = new MonotoneClock(() => read);
        if (earlier !== null) clock.notBefore(earlier);
        let time = earlier ?? Number.NEGATIVE_INFINITY;
        let before = system[0] ?? 0;
        for (read of system) {
          const now = clock.now();
          expect(now).toBeGreaterThanOrEqual(time);
          if (read >= time) expect(now).toBe(read);
          else expect(now - time).toBe(Math.max(0, read - before));
          expect(clock.at(read)).toBe(now);
          expect(clock.at(read - 5)).toBe(now - 5);
          [time, before] = [now, read];
        }
      }),
    );
  });

  it('takes no time from what is none', () => {
    const clock = new MonotoneClock(() => 7);
    for (const none of [Number.NaN, Infinity, -Infinity]) clock.notBefore(none);
    expect(clock.now()).toBe(7);
  });
});

describe('a feedback store whose system clock steps back', () => {
  /** Decides and reports `count` times, and says when the bandit was told that each was. */
  async function learn(store: FeedbackStore<FakeBandit>, seeds: number[], at?: number) {
    for (const seed of seeds) {
      const decisionId = store.decide({ x: context(seed), toolIds: ['tool'], priors: priors(1) });
      await store.report({ decisionId, toolId: 'tool', outcome: 'error', at });
    }
  }

  function expected(times: number[]): string {
    const bandit = new FakeBandit({ dimension });
    for (const [i, time] of times.entries()) {
      bandit.update(['tool'], context(i), priors(1), Float32Array.of(0), Float64Array.of(time));
    }
    return bytesOf(bandit);
  }

  it('goes on from where it was, in memory and while open', async () => {
    let system = 400 * day;
    const now = () => system;
    for (const store of [
      FeedbackStore.memory(fakeOptions({ now })),
      await openFake(scratch(), { now }),
    ]) {
      system = 400 * day;
      await learn(store, [0]);
      system = 35 * day;
      await learn(store, [1]);
      expect(store.now()).toBe(400 * day);
      system += 1000;
      // A time that the caller gives is one of the system clock.
      await learn(store, [2], system - 300);
      expect(store.now()).toBe(400 * day + 1000);
      system = 401 * day;
      expect(store.now()).toBe(401 * day);
      expect(bytesOf(store.bandit)).toBe(expected([400 * day, 400 * day, 400 * day + 700]));
      await store.close();
    }
  });

  it.each(['log', 'snapshot'])(
    'goes on from the last outcome of its %s when opened again',
    async (kept) => {
      const folder = scratch();
      const first = await openFake(folder, { now: () => 400 * day });
      await learn(first, [0]);
      if (kept === 'snapshot') await first.compact();
      // A decision may carry any time: it says nothing of the clock.
      first.decide({ x: context(9), toolIds: [], priors: priors(0), time: 9999 * day });
      await first.close();

      let system = 35 * day;
      const second = await openFake(folder, { now: () => system });
      expect(second.now()).toBe(400 * day);
      system += 60_000;
      await learn(second, [1]);
      const bytes = bytesOf(second.bandit);
      expect(bytes).toBe(expected([400 * day, 400 * day + 60_000]));
      await second.close();
      await using third = await openFake(folder, { now: () => 500 * day });
      expect(bytesOf(third.bandit)).toBe(bytes);
      expect(third.now()).toBe(500 * day);
    },
  );
});
