import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  countTokens,
  defineTool,
  estimateTokens,
  metadataPriors,
  type Tool,
} from '../../lib/catalog/index.js';
import { refused } from './fixture.js';

/** The formula written out once more, plainly, in float64. */
function reference(tools: readonly Tool[], cosines: readonly number[]): number[] {
  const table = new Map([
    ['official', 1],
    ['langchain', 0.9],
    ['crewai', 0.9],
    ['llamaindex', 0.9],
    ['n8n', 0.8],
  ]);
  const mid = (list: number[]): number => {
    const s = [...list].sort((a, b) => a - b);
    const lo = s[Math.floor((s.length - 1) / 2)] ?? 0;
    const hi = s[Math.ceil((s.length - 1) / 2)] ?? 0;
    return (lo + hi) / 2;
  };
  const d = tools.map((t) => [...t.description].length);
  const g = tools.map((t) => [...(t.tags ?? []).join('')].length);
  return tools.map((tool, i) => {
    const part = (list: number[]): number => (mid(list) === 0 ? 0 : (list[i] ?? 0) / mid(list));
    const quality = 1 / (1 + Math.exp(-(0.6 * part(d) + 0.4 * part(g) - 1)));
    const source = table.get(tool.official ? 'official' : (tool.source ?? '')) ?? 0.6;
    return 0.5 * Math.max(0, cosines[i] ?? 0) + 0.3 * source + 0.2 * quality;
  });
}

const catalogue = fc.array(
  fc.tuple(
    fc.record(
      {
        name: fc.constant('t'),
        description: fc.string({ maxLength: 80, unit: 'grapheme' }),
        source: fc.constantFrom(
          'official',
          'langchain',
          'crewai',
          'llamaindex',
          'n8n',
          'else',
          'constructor',
        ),
        tags: fc.array(fc.string({ maxLength: 9 }), { maxLength: 4 }),
        official: fc.boolean(),
      },
      { requiredKeys: ['name', 'description'] },
    ),
    fc.float({ min: -1, max: 1, noNaN: true }),
  ),
  { maxLength: 30 },
);

describe('metadataPriors', () => {
  it('agrees with the formula in float64', () => {
    fc.assert(
      fc.property(catalogue, (rows) => {
        const tools = rows.map(([given]) => defineTool(given));
        const cosines = Float32Array.from(rows, ([, cosine]) => cosine);
        const priors = metadataPriors(tools, cosines);
        const expected = reference(tools, [...cosines]);
        expect(priors).toHaveLength(tools.length);
        priors.forEach((prior, i) => {
          expect(Math.abs(prior - (expected[i] ?? Number.NaN))).toBeLessThan(1e-6);
          expect(prior).toBeGreaterThanOrEqual(0);
          expect(prior).toBeLessThanOrEqual(1);
        });
      }),
      { numRuns: 500 },
    );
  });

  const two = ['official', 'mine'].map((source) =>
    defineTool({ name: 'a', description: 'b', source }),
  );

  it('takes another table or a function, and honours a view into a larger array', () => {
    const view = new Float32Array([9, 1, 0, 9]).subarray(1, 3);
    const [first, second] = metadataPriors(two, view, {
      sourceWeights: { MINE: 1 },
      otherWeight: 0,
    });
    const quality = 0.2 / (1 + Math.exp(0.4));
    expect(first).toBeCloseTo(0.5 + quality, 6);
    expect(second).toBeCloseTo(0.3 + quality, 6);
    const same = metadataPriors(two, view, {
      sourceWeights: (tool) => (tool.source === 'mine' ? 1 : 0),
    });
    expect([...same]).toEqual([first, second]);
    expect(metadataPriors([], new Float32Array())).toHaveLength(0);
  });

  it('refuses what is no cosine or weight', () => {
    const run =
      (cosines: number[], options = {}) =>
      () =>
        metadataPriors(two, Float32Array.from(cosines), options);
    refused(run([0]), 'FINCH_DIMENSION', '1 cosines for 2 tools');
    refused(run([0, Number.NaN]), 'FINCH_NOT_FINITE', 'cosine 1');
    refused(run([Number.NEGATIVE_INFINITY, 0]), 'FINCH_NOT_FINITE', 'cosine 0');
    refused(run([0, 1.5]), 'FINCH_INVALID_ARGUMENT', '1.5');
    refused(run([0, 0], { otherWeight: 2 }), 'FINCH_INVALID_ARGUMENT', 'otherWeight');
    refused(run([0, 0], { sourceWeights: { a: -1 } }), 'FINCH_INVALID_ARGUMENT', "'a'");
    refused(run([0, 0], { sourceWeights: () => Number.NaN }), 'FINCH_INVALID_ARGUMENT', 'tool 0');
  });
});

describe('tokens', () => {
  it('counts close to what byte-pair encodings give', () => {
    // Counts of o200k_base, taken once with a tokenizer.
    const known: [string, number][] = [
      [
        '{"name":"set_alarm","description":"Sets an alarm for a time of day.","parameters":{"type":"object","properties":{"time":{"type":"string","format":"date-time"},"label":{"type":"string"}},"required":["time"]}}',
        49,
      ],
      [
        'Returns the weather forecast of the coming days for a place, in metric or imperial units.',
        18,
      ],
      [
        '{"name":"getHTTPResponseHeaders","description":"","parameters":{"type":"object","properties":{}}}',
        21,
      ],
      ['1234567890 42', 6],
      ['使用必应搜索指定的关键词，并返回搜索结果列表', 12],
      ['Öffnet die Garage und schaltet das Licht ein.', 12],
    ];
    for (const [text, tokens] of known) {
      expect([text, Math.abs(countTokens(text) - tokens) <= Math.max(2, 0.3 * tokens)]).toEqual([
        text,
        true,
      ]);
    }
    expect(countTokens('')).toBe(0);
  });

  it('counts name, description and schema, and asks the counter of the host', () => {
    const bare = defineTool({ name: 'a', description: 'b' });
    const rich = defineTool({
      name: 'a',
      description: 'b',
      parameters: {
        type: 'object',
        properties: { query: { type: 'string', description: 'What to look for' } },
      },
    });
    expect(estimateTokens(rich)).toBeGreaterThan(estimateTokens(bare) + 10);
    const seen: string[] = [];
    const counted = estimateTokens(rich, (text) => seen.push(text) && 41.5);
    expect([counted, seen]).toEqual([50, [expect.stringContaining('"query":{"type":"string"')]]);
    expect(estimateTokens(bare, () => 0)).toBeGreaterThan(0);
    for (const odd of [Number.NaN, -1, Number.POSITIVE_INFINITY, '5']) {
      refused(() => estimateTokens(bare, () => odd as number), 'FINCH_INVALID_ARGUMENT', 'counter');
    }
  });
});

describe("a tool's own record", () => {
  const tool = (reliability?: { uses: number; successRate?: number }) =>
    defineTool({ name: 't', description: 'does it', ...(reliability && { reliability }) });
  const prior = (reliability?: { uses: number; successRate?: number }, trackRecord?: boolean) =>
    metadataPriors(
      [tool(reliability)],
      Float32Array.of(0.4),
      trackRecord === undefined ? {} : { trackRecord },
    )[0] as number;

  it('outweighs the fields as it grows', () => {
    const fields = prior();
    expect(prior({ uses: 20, successRate: 1 })).toBeCloseTo((fields + 1) / 2, 6);
    expect(prior({ uses: 20, successRate: 0 })).toBeCloseTo(fields / 2, 6);
    expect(prior({ uses: 58_901, successRate: 0.9972 })).toBeCloseTo(0.997, 3);
    expect(prior({ uses: Number.MAX_VALUE, successRate: 0.25 })).toBeCloseTo(0.25, 6);
    expect(prior({ uses: 0, successRate: 0 })).toBe(fields);
  });

  it('is passed over without a success rate, and when it is switched off', () => {
    expect(prior({ uses: 1000 })).toBe(prior());
    expect(prior({ uses: 1000, successRate: 0.1 }, false)).toBe(prior());
    refused(() => prior({ uses: 1, successRate: 1 }, 'no' as never), 'FINCH_INVALID_ARGUMENT');
  });
});
