import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import { roundStep, ticks, tickText } from '../../lib/evaluate/axes.js';
import { type EvaluationPlot, evaluationPlot } from '../../lib/evaluate/plot.js';
import { type ScorePlot, scorePlot } from '../../lib/evaluate/score-plot.js';
import { seriesStyles } from '../../lib/evaluate/svg.js';
import { parseXml, type XmlElement } from './parse-xml.js';

function all(root: XmlElement, fits: (element: XmlElement) => boolean): XmlElement[] {
  return [...(fits(root) ? [root] : []), ...root.children.flatMap((child) => all(child, fits))];
}
const ofClass = (root: XmlElement, name: string) =>
  all(root, ({ attributes }) => attributes.class === name);
const texts = (root: XmlElement) =>
  all(root, ({ name }) => name === 'text').map(({ text }) => text);
const pointsOf = (element: XmlElement | undefined): [number, number][] =>
  (element?.attributes.points ?? '').split(' ').map((pair) => {
    const [x, y] = pair.split(',').map(Number);
    return [x ?? Number.NaN, y ?? Number.NaN];
  });

const curve = (length: number, speed: number): number[] =>
  Array.from({ length }, (_, i) => 1 - Math.exp(-(i + 1) / speed));

const plot: EvaluationPlot = {
  title: 'Retrieval on <phone> & "desk"',
  subtitle: '83 queries',
  series: [
    { name: 'lexical', values: curve(50, 9) },
    { name: 'hybrid', values: curve(50, 4) },
  ],
  points: [{ name: 'dynamic cut', k: 3.4, value: 0.61 }],
  distribution: { name: 'Tools kept', counts: [0, 5, 3, 0, 2] },
};

const decision: ScorePlot = {
  title: 'Query',
  tools: [0.9, 0.8, 0.5, 0.45, 0.44].map((score, i) => ({ name: `tool_${i}`, score })),
  cut: { k: 3, kScore: 2, kSimilarity: 3 },
  similarities: [0.7, 0.6, 0.65, 0.2],
};

describe('evaluationPlot', () => {
  const svg = evaluationPlot(plot);
  const root = parseXml(svg);

  it('is XML with the title as it was given', () => {
    expect(root.name).toBe('svg');
    expect(root.attributes).toMatchObject({ width: '1200', height: '560', role: 'img' });
    expect(texts(root)).toContain(plot.title);
    expect(all(root, ({ name }) => name === 'title')[0]?.text).toBe(plot.title);
  });

  it('draws a point for each k, rising, inside the picture', () => {
    const lines = ofClass(root, 'series');
    expect(lines.length).toBe(2);
    for (const one of lines) {
      const points = pointsOf(one);
      expect(points.length).toBe(50);
      for (const [i, [x, y]] of points.entries()) {
        expect(x).toBeGreaterThan(points[i - 1]?.[0] ?? 0);
        expect(y).toBeLessThanOrEqual(points[i - 1]?.[1] ?? 560);
        expect(y).toBeGreaterThan(80);
      }
    }
    // One star beside the curves, one in the legend.
    expect(ofClass(root, 'point').length).toBe(2);
  });

  it('places values in proportion', () => {
    const flat = parseXml(
      evaluationPlot({
        title: '',
        series: [
          { name: 'a', values: [0, 0.25, 0.5, 1] },
          { name: 'b', values: [1, 1, 1, 1] },
        ],
      }),
    );
    const [rising = [], level = []] = ofClass(flat, 'series').map(pointsOf);
    const ys = rising.map(([, y]) => y);
    const topY = level[0]?.[1] ?? Number.NaN;
    const span = (ys[0] as number) - topY;
    expect(ys.map((y) => ((ys[0] as number) - y) / span)).toEqual(
      [0, 0.25, 0.5, 1].map((value) => expect.closeTo(value, 3) as number),
    );
    const xs = rising.map(([x]) => x);
    expect((xs[1] as number) - (xs[0] as number)).toBeCloseTo(
      (xs[3] as number) - (xs[2] as number),
      1,
    );
  });

  it('names every method in the legend, with the mean k of a cut', () => {
    const [legend] = ofClass(root, 'legend');
    expect(legend && texts(legend)).toEqual(['lexical', 'hybrid', 'dynamic cut (mean k 3.4)']);
  });

  it('draws bars as high as their shares, and the mean', () => {
    const bars = ofClass(root, 'bar');
    const heights = bars.map(({ attributes }) => Number(attributes.height));
    expect(heights.length).toBe(4);
    expect(heights.map((h) => h / (heights[0] as number))).toEqual(
      [1, 0.6, 0, 0.4].map((value) => expect.closeTo(value, 3) as number),
    );
    expect(texts(root)).toContain('mean 1.9');
  });

  it('puts many values of k into wider bars', () => {
    const counts = Array.from({ length: 500 }, () => 1);
    const wide = parseXml(evaluationPlot({ ...plot, distribution: { name: 'wide', counts } }));
    expect(ofClass(wide, 'bar').length).toBe(50);
    expect(texts(wide)).toContain('k, tools kept (bars of 10)');
  });

  it('is the same for the same input', () => {
    expect(evaluationPlot(plot)).toBe(svg);
  });

  it('is sound XML whatever the names and numbers', () => {
    const name = fc.string({ unit: 'binary', maxLength: 60 });
    fc.assert(
      fc.property(
        name,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 60 }),
        fc.array(fc.nat(50), { maxLength: 80 }),
        (title, values, counts) => {
          const made = evaluationPlot({
            title,
            subtitle: title,
            series: [{ name: title, values }],
            distribution: { name: title, counts: [...counts, 1] },
          });
          expect(made).not.toMatch(/NaN|Infinity|undefined/);
          expect(pointsOf(ofClass(parseXml(made), 'series')[0]).length).toBe(values.length);
        },
      ),
    );
  });

  it('refuses no series, an empty one, bad values and an empty distribution', () => {
    const bad: [Partial<EvaluationPlot>, string][] = [
      [{ series: [] }, 'FINCH_INVALID_ARGUMENT'],
      [{ series: [{ name: 'a', values: [] }] }, 'FINCH_INVALID_ARGUMENT'],
      [{ series: [{ name: 'a', values: [Number.NaN] }] }, 'FINCH_NOT_FINITE'],
      [{ series: [{ name: 'a', values: [-0.1] }] }, 'FINCH_INVALID_ARGUMENT'],
      [{ series: [{ name: 'a', values: [1.1] }] }, 'FINCH_INVALID_ARGUMENT'],
      [{ points: [{ name: 'a', k: Number.POSITIVE_INFINITY, value: 0 }] }, 'FINCH_NOT_FINITE'],
      [{ distribution: { name: 'a', counts: [] } }, 'FINCH_INVALID_ARGUMENT'],
      [{ distribution: { name: 'a', counts: [0, 0] } }, 'FINCH_INVALID_ARGUMENT'],
      [{ distribution: { name: 'a', counts: [-1] } }, 'FINCH_INVALID_ARGUMENT'],
    ];
    for (const [change, code] of bad) {
      expect(() => evaluationPlot({ ...plot, ...change })).toThrow(
        expect.objectContaining({ name: 'FinchError', code }),
      );
    }
  });
});

describe('scorePlot', () => {
  const root = parseXml(scorePlot(decision));

  it('draws every score, every similarity, the cut and both gaps', () => {
    expect(ofClass(root, 'score').length).toBe(5);
    expect(ofClass(root, 'similarity').length).toBe(4);
    expect(pointsOf(ofClass(root, 'similarities')[0]).length).toBe(4);
    expect(texts(root)).toEqual(
      expect.arrayContaining([
        'tool_0',
        'tool_4',
        'largest gap 0.300',
        'largest drop 0.450',
        'keep 3 of 5',
      ]),
    );
  });

  it('tells the tools kept from those dropped by colour', () => {
    const fills = ofClass(root, 'score').map(({ attributes }) => attributes.fill);
    expect(new Set(fills.slice(0, 3)).size).toBe(1);
    expect(new Set(fills.slice(3)).size).toBe(1);
    expect(fills[0]).not.toBe(fills[3]);
  });

  it('cuts a long name in the middle', () => {
    const tools = [{ name: 'filesystem-server/read_many_text_files', score: 1 }];
    const cut = { k: 1, kScore: 0, kSimilarity: 0 };
    const shown = texts(parseXml(scorePlot({ title: 't', tools, cut })));
    expect(shown).toContain('filesyste…/read_many_text_files');
  });

  it('puts the cut between the last tool kept and the first one dropped', () => {
    const y = (element: XmlElement | undefined): number => Number(element?.attributes.cy);
    const scores = ofClass(root, 'score');
    const cut = Number(ofClass(root, 'cut')[0]?.children[0]?.attributes.y1);
    expect(y(scores[2])).toBeLessThan(cut);
    expect(y(scores[3])).toBeGreaterThan(cut);
  });

  it('takes lists without a gap: none, one and two tools, equal scores', () => {
    const none = { k: 0, kScore: 0, kSimilarity: 0 };
    const draw = (scores: number[], cut = none, similarities?: number[]) => {
      const tools = scores.map((score, i) => ({ name: `t${i}`, score }));
      const svg = scorePlot({ title: 't', tools, cut, ...(similarities && { similarities }) });
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
      return parseXml(svg);
    };
    expect(texts(draw([]))).toContain('No tool was retrieved.');
    expect(texts(draw([0.5], { ...none, k: 1 }, []))).toContain('keep 1 of 1');
    expect(texts(draw([0.5, 0.5], { ...none, k: 1, kScore: 1 }, [1]))).toContain(
      'largest gap 0.000',
    );
    expect(ofClass(draw([-0.2, -0.2, -0.2]), 'score').length).toBe(3);
    expect(ofClass(draw([1e-9, 0]), 'score').length).toBe(2);
  });

  it('draws long lists as far as the cut and says what it left out', () => {
    const tools = Array.from({ length: 200 }, (_, i) => ({ name: `t${i}`, score: 1 - i / 200 }));
    const cut = { k: 60, kScore: 60, kSimilarity: 0 };
    const long = parseXml(scorePlot({ title: 't', tools, cut }));
    expect(ofClass(long, 'score').length).toBe(61);
    expect(texts(long)).toContain('… and 139 more, not drawn');
  });

  it('refuses positions outside the list, wrong lengths and values that are not finite', () => {
    const bad: [Partial<ScorePlot>, string][] = [
      [{ cut: { k: 6, kScore: 1, kSimilarity: 1 } }, 'FINCH_INVALID_ARGUMENT'],
      [{ cut: { k: 1, kScore: 5, kSimilarity: 1 } }, 'FINCH_INVALID_ARGUMENT'],
      [{ cut: { k: 1, kScore: 1, kSimilarity: 4 } }, 'FINCH_INVALID_ARGUMENT'],
      [{ cut: { k: 0.5, kScore: 1, kSimilarity: 1 } }, 'FINCH_INVALID_ARGUMENT'],
      [{ similarities: [0.1] }, 'FINCH_INVALID_ARGUMENT'],
      [{ maxRows: 0 }, 'FINCH_INVALID_ARGUMENT'],
      [{ similarities: [0, 0, 0, Number.NaN] }, 'FINCH_NOT_FINITE'],
    ];
    for (const [change, code] of bad) {
      expect(() => scorePlot({ ...decision, ...change })).toThrow(FinchError);
      expect(() => scorePlot({ ...decision, ...change })).toThrow(
        expect.objectContaining({ code }),
      );
    }
  });
});

describe('axes', () => {
  it('have round steps, few enough', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
        fc.integer({ min: 2, max: 12 }),
        (span, most) => {
          const step = roundStep(span, most);
          expect(span / step).toBeLessThanOrEqual(most * (1 + 1e-6));
          expect(span / step).toBeGreaterThan(most / 2.6);
          expect(step.toExponential(0).slice(0, 1)).toMatch(/[125]/);
        },
      ),
    );
  });

  it('write as many decimals as the step needs', () => {
    expect(ticks(0, 1, 0.25)).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(ticks(-0.1, 0.1, 0.1).map((v) => tickText(v, 0.1))).toEqual(['\u22120.1', '0.0', '0.1']);
    expect(tickText(20, 10)).toBe('20');
    expect(tickText(0.05, 0.05)).toBe('0.05');
  });
});

describe('the colours of series', () => {
  it('have a contrast of 3 : 1 or more on white and differ', () => {
    const luminance = (hex: string): number => {
      const [r, g, b] = [1, 3, 5].map((at) => {
        const c = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
      }) as [number, number, number];
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    for (const { colour } of seriesStyles)
      expect(1.05 / (luminance(colour) + 0.05)).toBeGreaterThan(3);
    expect(new Set(seriesStyles.map(({ colour }) => colour)).size).toBe(seriesStyles.length);
  });
});
