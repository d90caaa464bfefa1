import { aList, aNumber, aString, fields, optional } from '../check.js';
import { FinchError } from '../errors.js';
import { axes, type Box, roundStep, scale, ticks, tickText } from './axes.js';
import {
  element,
  ink,
  label,
  line,
  marker,
  picture,
  polyline,
  type SeriesStyle,
  seriesStyle,
  shorten,
} from './svg.js';

/** A method's curve: element k − 1 is its value at k, in [0, 1]. */
export interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

/** A method that keeps `k` tools on average, as one point beside the curves. */
export interface CutPoint {
  readonly name: string;
  readonly k: number;
  /** In [0, 1]. */
  readonly value: number;
}

export interface EvaluationPlot {
  readonly title: string;
  readonly subtitle?: string;
  /** One to six read well. */
  readonly series: readonly Series[];
  /** What the curves show. Default `Recall@k`. */
  readonly measure?: string;
  readonly points?: readonly CutPoint[];
  /** The histogram beside the curves; without it they take the whole width. */
  readonly distribution?: {
    /** Heading, such as `Tools kept by the dynamic cut`. */
    readonly name: string;
    /** Element k is the number of queries for which k tools were kept. */
    readonly counts: readonly number[];
  };
}

const aPlot = fields({
  title: aString,
  subtitle: optional(aString),
  series: aList(fields({ name: aString, values: aList(aNumber) })),
  measure: optional(aString),
  points: optional(aList(fields({ name: aString, k: aNumber, value: aNumber }))),
  distribution: optional(fields({ name: aString, counts: aList(aNumber) })),
});

const width = 1200;
const height = 560;

/**
 * Curves of recall@k for several methods and, beside them, how many tools a cut keeps, as one SVG of 1200 × 560.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT (no series, an empty one, no count), FINCH_NOT_FINITE (a value)
 */
export function evaluationPlot(plot: EvaluationPlot): string {
  aPlot(plot, 'evaluationPlot: plot');
  const { series, points = [], distribution, measure = 'Recall@k' } = plot;
  if (series.length === 0) throw invalid('there is no series; pass one curve or more');
  for (const { name, values } of series) {
    if (values.length === 0)
      throw invalid(`the series '${name}' has no values; expected one for each k`);
    checkValues(name, values, 1);
  }
  for (const { name, k, value } of points) {
    checkValues(name, [k], Number.POSITIVE_INFINITY);
    checkValues(name, [value], 1);
  }
  const top = 122;
  const boxHeight = height - top - 72;
  const left: Box = {
    x: 78,
    y: top,
    width: distribution === undefined ? width - 118 : 560,
    height: boxHeight,
  };
  const parts = [heading(plot.title, plot.subtitle), curves(left, measure, series, points)];
  if (distribution !== undefined) {
    const right: Box = { x: 740, y: top, width: width - 740 - 40, height: boxHeight };
    parts.push(histogram(right, distribution.name, distribution.counts));
  }
  const description =
    `${measure} for ${series.map(({ name }) => name).join(', ')}` +
    (distribution === undefined ? '' : `; ${distribution.name}`);
  return picture({ width, height, title: plot.title, description }, parts.join(''));
}

/** The title and the line below it. */
export function heading(title: string, subtitle: string | undefined): string {
  return (
    label(shorten(title, 95), 32, 42, { 'font-size': 22, 'font-weight': 700 }) +
    (subtitle ? label(shorten(subtitle, 160), 32, 68, { 'font-size': 14, fill: ink.muted }) : '')
  );
}

function curves(
  box: Box,
  measure: string,
  series: readonly Series[],
  points: readonly CutPoint[],
): string {
  const last = Math.max(
    2,
    ...series.map(({ values }) => values.length),
    ...points.map(({ k }) => k),
  );
  const largest = Math.max(
    0.01,
    ...series.flatMap(({ values }) => values),
    ...points.map((p) => p.value),
  );
  const yStep = Math.min(0.2, roundStep(largest, 5));
  const yTop = Math.min(1, Math.ceil(largest / yStep - 1e-9) * yStep);
  const x = scale(Math.min(1, ...points.map(({ k }) => k)), last, box.x + 8, box.x + box.width - 8);
  const y = scale(0, yTop, box.y + box.height, box.y);
  const xStep = Math.max(1, roundStep(last, 10));
  const xTicks = [1, ...ticks(x.from, last, xStep).filter((k) => k > 1 && (k - 1) * 30 >= xStep)];
  const frame = axes({
    box,
    heading: measure,
    x,
    y,
    xTicks: xTicks
      .filter((k, i) => i === 0 || x.at(k) - x.at(1) > 16)
      .map((k) => ({ value: k, text: tickText(k, 1) })),
    yTicks: ticks(0, yTop, yStep).map((v) => ({ value: v, text: percent(v, yStep) })),
    xName: 'k, tools given to the model',
    yName: 'Mean over queries (%)',
  });
  const lines = series.map(({ values }, i) => {
    const style = seriesStyle(i);
    const at = values.map((value, k): [number, number] => [x.at(k + 1), y.at(value)]);
    // Markers stand apart from those of the other series, so that equal curves show both.
    const markers = at
      .filter((_, k) => k === 0 || (k + 1 - i * markerShift(xStep)) % xStep === 0)
      .map(([px, py]) => marker(style, px, py))
      .join('');
    const path = polyline(at, {
      stroke: style.colour,
      'stroke-width': 2.5,
      'stroke-linejoin': 'round',
      'stroke-dasharray': style.dash,
      class: 'series',
    });
    return path + element('g', { class: 'markers' }, markers);
  });
  const crosses = points.map((point, i) =>
    cross(x.at(point.k), y.at(point.value), seriesStyle(series.length + i)),
  );
  return frame + lines.join('') + crosses.join('') + legend(box, series, points);
}

function markerShift(step: number): number {
  return step >= 5 ? 1 : 0;
}

/** A star for methods that choose k themselves. */
function cross(x: number, y: number, { colour }: SeriesStyle): string {
  const arms = [
    [7, 0],
    [0, 7],
    [5, 5],
    [5, -5],
  ] as const;
  const strokes = (attributes: { stroke: string; 'stroke-width': number }): string =>
    arms.map(([dx, dy]) => line(x - dx, y - dy, x + dx, y + dy, attributes)).join('');
  return element(
    'g',
    { class: 'point' },
    strokes({ stroke: ink.ground, 'stroke-width': 5 }) +
      strokes({ stroke: colour, 'stroke-width': 2 }),
  );
}

/** In the lower right corner, which rising curves leave free. */
function legend(box: Box, series: readonly Series[], points: readonly CutPoint[]): string {
  const rowHeight = 22;
  const names = [
    ...series.map(({ name }) => shorten(name, 34)),
    ...points.map(({ name, k }) => `${shorten(name, 34)} (mean k ${k.toFixed(1)})`),
  ];
  const longest = Math.max(...names.map((name) => Array.from(name).length));
  const frame = { width: longest * 7.6 + 66, height: names.length * rowHeight + 12 };
  const x = box.x + box.width - frame.width - 12;
  const y = box.y + box.height - frame.height - 12;
  const rows = names.map((name, i) => {
    const style = seriesStyle(i);
    const at = y + 6 + rowHeight * (i + 0.5);
    const sign =
      i < series.length
        ? line(x + 10, at, x + 46, at, {
            stroke: style.colour,
            'stroke-width': 2.5,
            'stroke-dasharray': style.dash,
          }) + marker(style, x + 28, at)
        : cross(x + 28, at, style);
    return sign + label(name, x + 56, at + 4.5);
  });
  const back = element('rect', {
    x,
    y,
    ...frame,
    rx: 4,
    fill: ink.ground,
    'fill-opacity': 0.92,
    stroke: ink.grid,
  });
  return element('g', { class: 'legend' }, back + rows.join(''));
}

function histogram(box: Box, name: string, counts: readonly number[]): string {
  checkValues(name, counts, Number.POSITIVE_INFINITY);
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!(total > 0))
    throw invalid('the distribution counts no query; expected one count or more above 0');
  const mean = counts.reduce((sum, count, k) => sum + count * k, 0) / total;
  const first = counts.findIndex((count) => count > 0);
  const last = counts.findLastIndex((count) => count > 0);
  // More than 50 bars no longer read; wider ones hold several k.
  const binWidth = Math.ceil((last - first + 1) / 50);
  const bins: { readonly from: number; readonly share: number }[] = [];
  for (let from = first; from <= last; from += binWidth) {
    const inside = counts.slice(from, from + binWidth);
    bins.push({ from, share: inside.reduce((sum, count) => sum + count, 0) / total });
  }
  const largest = Math.max(...bins.map(({ share }) => share));
  const yStep = roundStep(largest, 5);
  // Headroom for the label of the mean.
  const yTop = Math.ceil((largest * 1.08) / yStep - 1e-9) * yStep;
  const end = first + bins.length * binWidth;
  // A handful of bars keeps to a bar's usual width instead of filling the box.
  const shown = Math.max(end - first, 8 * binWidth);
  const x = scale(first - 0.5, first - 0.5 + shown, box.x, box.x + box.width);
  const y = scale(0, yTop, box.y + box.height, box.y);
  const xStep = Math.max(1, roundStep(shown, 10));
  const frame = axes({
    box,
    heading: shorten(name, 52),
    x,
    y,
    xTicks: ticks(first, first + shown - 1, xStep).map((k) => ({ value: k, text: String(k) })),
    yTicks: ticks(0, Math.min(1, yTop), yStep).map((v) => ({ value: v, text: percent(v, yStep) })),
    xName: binWidth === 1 ? 'k, tools kept' : `k, tools kept (bars of ${binWidth})`,
    yName: 'Queries (%)',
  });
  const bars = bins.map(({ from, share }) => {
    const start = x.at(from - 0.5);
    const space = x.at(from + binWidth - 0.5) - start;
    const gap = Math.min(4, space * 0.15);
    return element('rect', {
      class: 'bar',
      x: start + gap / 2,
      y: y.at(share),
      width: space - gap,
      height: y.at(0) - y.at(share),
      fill: ink.kept,
    });
  });
  const at = x.at(mean);
  const onRight = at < box.x + box.width * 0.65;
  const meanLine =
    line(at, box.y - 2, at, box.y + box.height, {
      stroke: ink.cut,
      'stroke-width': 2,
      'stroke-dasharray': '6 4',
      class: 'mean',
    }) +
    label(`mean ${mean.toFixed(1)}`, at + (onRight ? 8 : -8), box.y + 12, {
      fill: ink.cut,
      'font-weight': 600,
      'text-anchor': onRight ? 'start' : 'end',
      stroke: ink.ground,
      'stroke-width': 4,
      'paint-order': 'stroke',
    });
  return frame + bars.join('') + meanLine;
}

function percent(value: number, step: number): string {
  return tickText(value * 100, step * 100);
}

function checkValues(name: string, values: readonly number[], most: number): void {
  const bad = values.find((value) => !(value >= 0 && value <= most && Number.isFinite(value)));
  if (bad === undefined) return;
  const range = most === 1 ? 'from 0 to 1' : 'of 0 or more';
  throw new FinchError(
    Number.isFinite(bad) ? 'FINCH_INVALID_ARGUMENT' : 'FINCH_NOT_FINITE',
    `evaluationPlot: '${name}' holds ${bad}; expected finite numbers ${range}`,
  );
}

function invalid(message: string): FinchError {
  return new FinchError('FINCH_INVALID_ARGUMENT', `evaluationPlot: ${message}`);
}
