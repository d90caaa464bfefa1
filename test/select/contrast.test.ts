import { describe, expect, it } from 'vitest';
import { defineTool, FeedbackStore, Selector, ToolIndex } from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';

const schema = { type: 'object' } as const;
const tools = [
  defineTool({
    name: 'convert',
    description: 'Converts lengths and temperatures.',
    inputSchema: schema,
  }),
  defineTool({
    name: 'thermometer',
    description: 'Converts temperatures, slowly.',
    inputSchema: schema,
  }),
];
const lengths = ['convert 5 lengths miles', 'convert lengths feet', 'convert 9 lengths of inches'];
const degrees = ['convert temperatures celsius', 'convert 70 temperatures fahrenheit'];

describe('a tool that fails for one kind of query', () => {
  it('is left out for that kind alone, and the record says why', async () => {
    const index = await ToolIndex.build(tools, { encoder: new WordEncoder() });
    const { dimension } = index.encoder;
    let now = 1e12;
    const feedback = FeedbackStore.memory({ bandit: { dimension }, now: () => now });
    const cut = { rule: 'fixed', k: 2 } as const;
    const selector = new Selector({ index, feedback, cut, floor: 0 });
    const convert = tools[0]?.id as string;
    const ask = async (query: string) => {
      now += 1000;
      const { id, tools: chosen, candidates } = await selector.select(query);
      const record = candidates.find((candidate) => candidate.id === convert);
      return { id, offered: chosen.some((each) => each.id === convert), record };
    };
    const tell = async (query: string, works: boolean) => {
      const { id } = await ask(query);
      await selector.report(id, convert, works);
    };
    for (const query of [...lengths, ...degrees, ...lengths]) await tell(query, true);
    expect((await ask(degrees[0] as string)).record?.reliability.contrast).toBeUndefined();
    await tell(degrees[0] as string, false);
    for (const query of lengths) await tell(query, true);

    const other = await ask(lengths[1] as string);
    expect(other.offered).toBe(true);
    expect(other.record?.reliability.contrast).toBeGreaterThan(0);
    expect(other.record?.reliability.availability).toBe(1);
    const same = await ask(degrees[1] as string);
    expect(same.offered).toBe(false);
    expect(same.record).toMatchObject({ fate: 'unhealthy', unhealthy: true });
    expect(same.record?.reliability.contrast).toBeLessThan(0);
    expect(same.record?.reliability.availability).toBeLessThan(0.5);
    // Half a minute later it is tried again.
    now += 30_000;
    expect((await ask(degrees[1] as string)).offered).toBe(true);
    await feedback.close();
    index.close();
  });
});
