// Dense selection goes through one native call: every number of the decision must be what the stages give one by one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import {
  defineTool,
  FeedbackStore,
  retrieve,
  type SelectOptions,
  Selector,
  ToolIndex,
} from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';

const nouns = ['weather', 'mail', 'song', 'table', 'flight', 'invoice', 'photo', 'alarm', 'map'];
const verbs = ['find', 'send', 'book', 'delete', 'list', 'share', 'rate'];
const tools = nouns.flatMap((noun) =>
  verbs.map((verb) =>
    defineTool({
      name: `${verb}_${noun}`,
      description: `Lets you ${verb} a ${noun}, one ${noun} at a time.`,
      inputSchema: { type: 'object', properties: {} },
    }),
  ),
);

let encoder: WordEncoder;
let index: ToolIndex;
beforeAll(async () => {
  encoder = new WordEncoder();
  index = await ToolIndex.build(tools, { encoder });
});
afterAll(() => index.close());

const now = 5_000_000;

async function experienced(): Promise<FeedbackStore> {
  const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
  const selector = new Selector({ index, feedback, method: 'dense', now: () => now - 60_000 });
  for (let i = 0; i < 60; i++) {
    const noun = nouns[i % nouns.length] as string;
    const decision = await selector.select(`${verbs[i % verbs.length]} a ${noun}`);
    const first = decision.tools[0];
    if (first !== undefined) await selector.report(decision.id, first.id, i % 3 !== 0);
  }
  return feedback;
}

describe('dense selection', () => {
  it('is search and rank one by one, to the bit', async () => {
    const feedback = await experienced();
    const settings: SelectOptions[] = [
      {},
      { shortlist: 3 },
      { shortlist: 200, explore: false },
      { allow: tools.slice(10, 40).map(({ id }) => id), cut: { rule: 'fixed', k: 4 } },
      { weights: { semantic: 0.4, bandit: 0.5, prior: 0.1, outage: 1 }, order: 'stable' },
    ];
    for (const store of [feedback, undefined]) {
      const selector = new Selector({
        index,
        ...(store === undefined ? {} : { feedback: store }),
        method: 'dense',
        now: () => now,
      });
      for (const options of settings) {
        for (const noun of nouns) {
          const text = `please find the ${noun}`;
          const decision = await selector.select(text, options);
          expect(decision.stages).toEqual(['encode', 'select:dense']);
          const [vector] = [await encoder.encode([text], { kind: 'query' })];
          const snapshot = index.snapshot();
          const retrieved = await retrieve(
            index,
            snapshot,
            { text, vector },
            { n: options.shortlist ?? 10, method: 'dense', allow: options.allow },
          );
          const fixed = options.cut?.rule === 'fixed';
          const ranked = snapshot.rank(
            store?.bandit.handle ?? null,
            Float64Array.from(retrieved, ({ key }) => key),
            Float32Array.from(retrieved, ({ score }) => score),
            vector,
            {
              now,
              explore: options.explore ?? true,
              minAvailability: 0.5,
              weights: {
                ...(options.weights ?? { semantic: 0.8, bandit: 0.2, prior: 0, outage: 0.5 }),
                clamp: true,
              },
              cut: fixed ? { minK: 4, maxK: 4 } : {},
            },
          );
          snapshot.close();
          expect(decision.candidates.map(({ id }) => id)).toEqual(ranked.ids);
          const dense = new Map(retrieved.map(({ id, score }) => [id, score]));
          decision.candidates.forEach((candidate, i) => {
            expect(candidate.score).toBe(ranked.score[i]);
            expect(candidate.semantic).toBe(ranked.semantic[i]);
            expect(candidate.dense).toBe(dense.get(candidate.id));
            expect(candidate.semanticRank).toBe(ranked.semanticRank[i]);
            expect(candidate.reliability.mean).toBe(ranked.mean[i]);
            expect(candidate.reliability.bonus).toBe(ranked.bonus[i]);
            expect(candidate.reliability.availability).toBe(ranked.availability[i]);
          });
          expect(decision.cut?.k).toBe(ranked.cut.k);
          expect(decision.cut?.similarities).toEqual([...ranked.similarities]);
        }
      }
    }
  });

  it('drops a tool that was removed after the request had its snapshot', async () => {
    let meanwhile = async () => {};
    class Slow extends WordEncoder {
      override async encode(...given: Parameters<WordEncoder['encode']>): Promise<Float32Array> {
        if (given[1]?.kind === 'query') await meanwhile();
        return super.encode(...given);
      }
    }
    const own = await ToolIndex.build(tools, { encoder: new Slow() });
    const selector = new Selector({ index: own, method: 'dense', shortlist: 5 });
    const before = await selector.select('find a map');
    const gone = before.candidates[0]?.id as string;
    meanwhile = async () => {
      await own.remove([gone]);
    };
    const after = await selector.select('find a map');
    expect(after.candidates.map(({ id }) => id)).not.toContain(gone);
    expect(after.candidates).toHaveLength(4);
    expect(after.stages).toContain('rank');
    own.close();
  });
});
