// Selectors on replicas, with the addon's bandit.
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  defineTool,
  ReplicatedFeedback,
  Selector,
  ToolIndex,
} from '../../../dist/esm/lib/index.js';
import { WordEncoder } from '../../word-encoder.js';
import { scratch } from '../scratch.js';
import { closing, describeRedis, TestRedis } from './redis-server.js';

const names = Array.from({ length: 300 }, (_, i) => `weather_${i}`);
let index: ToolIndex;
beforeAll(async () => {
  const tools = names.map((name) =>
    defineTool({ name, description: `Weather, kind ${name}`, inputSchema: { type: 'object' } }),
  );
  index = await ToolIndex.build(tools, { encoder: new WordEncoder(384) });
});
afterAll(() => index.close());

async function open(url: string, more: object = {}): Promise<ReplicatedFeedback> {
  const options = { bandit: { dimension: 384 }, redis: { url }, tenant: 't', catalogue: 'c' };
  return closing(await ReplicatedFeedback.open(scratch(), { ...options, sync: 'none', ...more }));
}

describeRedis('Selectors', () => {
  it('learn from what was chosen at one replica and reported at another', async () => {
    const redis = await TestRedis.start();
    const [a, b] = [await open(redis.url), await open(redis.url)];
    const [one, two] = [a, b].map((feedback) => new Selector({ index, feedback })) as [
      Selector,
      Selector,
    ];
    const query = 'weather of kind weather_7';
    const options = { explore: false, cut: { rule: 'fixed', k: 3 } } as const;
    const before = await two.select(query, options);
    const first = before.tools[0]?.id as string;
    for (let i = 0; i < 4; i++) {
      const decision = await one.select(query, options);
      await a.flush();
      while (a.health().unshared > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      expect((await two.report(decision.id, first, false)).status).toBe('queued');
    }
    await b.flush();
    await Promise.all([a.catchUp(), b.catchUp()]);
    expect(a.checksum()).toEqual(b.checksum());
    const after = await one.select(query, options);
    expect(after.candidates.find(({ id }) => id === first)?.reliability.reports).toBe(4);
    expect(after.tools.map(({ id }) => id)).not.toContain(first);
  });

  it('share a state of many arms: the snapshot goes in pieces', async () => {
    const redis = await TestRedis.start();
    const options = { snapshotEvery: 300, keepRecords: 0 };
    const a = await open(redis.url, options);
    for (const [i, name] of names.entries()) {
      const x = Float32Array.from({ length: 384 }, (_, j) => Math.sin(i + j));
      const decisionId = a.decide({ x, toolIds: [name], priors: Float32Array.of(0.5) });
      await a.report({ decisionId, toolId: name, outcome: i % 2 ? 'success' : 'timeout' });
    }
    await a.flush();
    while (a.health().snapshot < 300) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(Number(redis.cli('HGET', 'toolfinch:{t:c}:snapshot', 'chunks'))).toBeGreaterThan(3);
    expect(redis.cli('XLEN', 'toolfinch:{t:c}:stream')).toBe('0');
    const late = await open(redis.url, options);
    expect(late.checksum()).toEqual(a.checksum());
    expect(late.bandit.arms.count).toBe(300);
    expect(Buffer.compare(late.bandit.serialize(), a.bandit.serialize())).toBe(0);
    // Nothing is left in the stream, and it goes on.
    await late.drop(names.slice(0, 150));
    await late.flush();
    await a.catchUp();
    expect(a.bandit.arms.count).toBe(150);
    expect(late.checksum()).toEqual(a.checksum());
  });
});
