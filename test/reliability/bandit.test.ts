import { describe, expect, it } from 'vitest';
import { Bandit } from '../../lib/reliability/bandit.js';
import { FeedbackStore } from '../../lib/reliability/feedback-store.js';
import { expectCode, scratch } from './scratch.js';

const dimension = 32;
const tools = ['mail', 'maps', 'music'];
const priors = Float32Array.of(0.5, 0.25, 0.75);

function context(seed: number): Float32Array {
  return Float32Array.from({ length: dimension }, (_, i) => Math.sin(seed * 31 + i * 7 + 1));
}

describe("feedback with the addon's bandit", () => {
  it('comes back to the bit after restarts, with and without a snapshot', async () => {
    const folder = scratch();
    const expected = new Bandit({ dimension });
    let seed = 0;
    for (let round = 0; round < 6; round++) {
      await using store = await FeedbackStore.open(folder, { bandit: { dimension } });
      expect(Buffer.compare(store.bandit.serialize(), expected.serialize())).toBe(0);
      for (let i = 0; i < 20; i++, seed++) {
        const x = context(seed);
        const decisionId = store.decide({ x, toolIds: tools, priors, time: seed });
        const tool = seed % 3;
        const toolId = tools[tool] ?? '';
        const outcome = seed % 5 === 0 ? 'error' : 'success';
        await store.report({ decisionId, toolId, outcome, at: seed * 1000 });
        const y = Float32Array.of(outcome === 'error' ? 0 : 1);
        const prior = priors.slice(tool, tool + 1);
        expected.update([toolId], x, prior, y, Float64Array.of(seed * 1000));
      }
      if (round === 3) {
        await store.drop(['maps']);
        expected.drop(['maps']);
      }
      if (round % 2 === 1) await store.compact();
    }
    expect(expected.arms.count).toBe(3);
    expected.close();
  });

  it('scores a tool that keeps failing down, and a recovered one up again', async () => {
    await using store = FeedbackStore.memory({ bandit: { dimension } });
    const x = context(1);
    let now = 1e12;
    const score = () => {
      const { mean, availability } = store.bandit.score(tools, priors, x, now);
      return { mean: mean[0] ?? 0, availability: availability[0] ?? 0 };
    };
    const run = async (outcome: 'success' | 'timeout', times: number) => {
      for (let i = 0; i < times; i++, now += 1000) {
        const decisionId = store.decide({ x, toolIds: tools, priors, time: now });
        await store.report({ decisionId, toolId: 'mail', outcome, at: now });
      }
    };
    const before = score();
    await run('timeout', 5);
    const failing = score();
    expect(failing.mean).toBeLessThan(before.mean);
    expect(failing.availability).toBeLessThan(0.5);
    await run('success', 30);
    const recovered = score();
    expect(recovered.mean).toBeGreaterThan(failing.mean + 0.2);
    expect(recovered.availability).toBeGreaterThan(0.9);
  });

  it('is closed with its store', async () => {
    const store = FeedbackStore.memory({ bandit: { dimension } });
    await store.close();
    await store.close();
    await expectCode(() => store.bandit.serialize(), 'FINCH_CLOSED');
    const wrong = { bandit: { dimension: 0 } };
    await expectCode(() => FeedbackStore.memory(wrong), 'FINCH_INVALID_ARGUMENT');
  });
});
