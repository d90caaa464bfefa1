import { aList, aNumber, aString, fields, optional } from '../check.js';
import { FinchError } from '../errors.js';
import { axes, type Box, roundStep, scale, ticks, tickText } from './axes.js';
import { heading } from './plot.js';
import { ink, label, line, marker, picture, polyline, seriesStyle, shorten } from './svg.js';

/** A line through points (x, y), in order. */
export interface LineSeries {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly number[];
  /** A marker on each point; default: only where there are at most 20. */
  readonly markers?: boolean;
}

/** One box of a picture of lines. */
export interface LinePanel {
  readonly heading: string;
  readonly xName: string;
  readonly yName: string;
  readonly series: readonly LineSeries[];
  /** Vertical marks, such as the step at which tools fail. */
  readonly marks?: readonly { readonly x: number; readonly name: string }[];
  /** Names of the x values, in place of numbers. */
  readonly xLabels?: readonly string[];
}

export interface LinePlot {
  readonly title: string;
  readonly subtitle?: string;
  /** One to three, side by side. */
  readonly panels: readonly LinePanel[];
}

const aSeries = fields({ name: aString, x: aList(aNumber), y: aList(aNumber) });
const aPlot = fields({
  title: aString,
  subtitle: optional(aString),
  panels: aList(
    fields({
      heading: aString,
      xName: aString,
      yName: aString,
      series: aList(aSeries),
      marks: optional(aList(fields({ x: aNumber, name: aString }))),
      xLabels: optional(aList(aString)),
    }),
  ),
});

const width = 1200;
const height = 560;

/**
 * Lines in one to three boxes, as one SVG of 1200 × 560. Series of the same name have the same style in every box; the
 * legend stands below them.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT (no panel or series, unequal lengths), FINCH_NOT_FINITE (a value)
 */
export function linePlot(plot: LinePlot): string {
  aPlot(plot, 'linePlot: plot');
  const { panels } = plot;
  if (panels.length < 1 || panels.length > 3)
    throw invalid(`there are ${panels.length} panels; expected 1 to 3`);
  const names = [...new Set(panels.flatMap(({ series }) => series.map(({ name }) => name)))];
  const places = legendPlaces(names);
  const rows = 1 + Math.max(0, ...places.map(({ row }) => row));
  const space = width - 78 - 40;
  const gap = 96;
  const boxWidth = (space - gap * (panels.length - 1)) / panels.length;
  const parts = panels.map((panel, i) =>
    drawPanel(
      {
        x: 78 + i * (boxWidth + gap),
        y: 122,
        width: boxWidth,
        height: height - 122 - 76 - rows * 22,
      },
      panel,
      names,
    ),
  );
  parts.push(
    ...places.map(({ name, row, x }) => {
      const style = seriesStyle(names.indexOf(name));
      const y = height - 14 - (rows - 1 - row) * 22;
      return (
        line(x, y - 4, x + 36, y - 4, {
          stroke: style.colour,
          'stroke-width': 2.5,
          'stroke-dasharray': style.dash,
        }) +
        marker(style, x + 18, y - 4) +
        label(shorten(name, 34), x + 44, y)
      );
    }),
  );
  const description = panels
    .map((panel) => `${panel.heading}: ${panel.yName} over ${panel.xName}`)
    .join('; ');
  return picture(
    { width, height, title: plot.title, description },
    heading(plot.title, plot.subtitle) + parts.join(''),
  );
}

function legendPlaces(names: readonly string[]): { name: string; row: number; x: number }[] {
  const places: { name: string; row: number; x: number }[] = [];
  let row = 0;
  let x = 78;
  for (const name of names) {
    const wide = 70 + Math.min(34, Array.from(name).length) * 7.2;
    if (x + wide > width - 40 && x > 78) {
      row += 1;
      x = 78;
    }
    places.push({ name, row, x });
    x += wide;
  }
  return places;
}

function drawPanel(box: Box, panel: LinePanel, names: readonly string[]): string {
  const { series, marks = [], xLabels } = panel;
  if (series.length === 0) throw invalid(`the panel '${panel.heading}' has no series`);
  for (const { name, x, y } of series) {
    if (x.length !== y.length || x.length === 0) {
      throw invalid(
        `the series '${name}' has ${x.length} x and ${y.length} y; expected as many, 1 or more`,
      );
    }
    const bad = [...x, ...y].find((value) => !Number.isFinite(value));
    if (bad !== undefined) {
      throw new FinchError(
        'FINCH_NOT_FINITE',
        `linePlot: the series '${name}' holds ${bad}; expected finite numbers`,
      );
    }
  }
  const xs = series.flatMap((each) => each.x);
  const ys = series.flatMap((each) => each.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const x = scale(left, right, box.x + 8, box.x + box.width - 8);
  const lowest = Math.min(...ys);
  const highest = Math.max(...ys);
  const yStep = roundStep(Math.max(highest - Math.min(lowest, highest), 1e-9), 5);
  const bottom =
    lowest >= 0 && lowest < (highest - lowest) * 1.5
      ? 0
      : Math.floor(lowest / yStep + 1e-9) * yStep;
  const step = bottom === 0 ? roundStep(Math.max(highest, 1e-9), 5) : yStep;
  const top = Math.max(bottom + step, Math.ceil(highest / step - 1e-9) * step);
  const y = scale(bottom, top, box.y + box.height, box.y);
  const xStep = roundStep(Math.max(right - left, 1e-9), Math.max(2, Math.floor(box.width / 70)));
  const frame = axes({
    box,
    heading: panel.heading,
    x,
    y,
    xTicks:
      xLabels === undefined
        ? ticks(left, right, xStep).map((value) => ({ value, text: tickText(value, xStep) }))
        : xLabels.map((text, value) => ({ value, text })),
    yTicks: ticks(bottom, top, step).map((value) => ({ value, text: tickText(value, step) })),
    xName: panel.xName,
    yName: panel.yName,
  });
  const marked = marks.map(
    ({ x: value, name }) =>
      line(x.at(value), box.y, x.at(value), box.y + box.height, {
        stroke: ink.cut,
        'stroke-width': 1.5,
        'stroke-dasharray': '6 4',
      }) + label(name, x.at(value) + 5, box.y + 12, { 'font-size': 12, fill: ink.cut }),
  );
  const lines = series.map((each) => {
    const style = seriesStyle(names.indexOf(each.name));
    const at = each.x.map((value, i): [number, number] => [x.at(value), y.at(each.y[i] as number)]);
    const path = polyline(at, {
      stroke: style.colour,
      'stroke-width': 2,
      'stroke-linejoin': 'round',
      'stroke-dasharray': style.dash,
      class: 'series',
    });
    const shown = each.markers ?? at.length <= 20;
    return path + (shown ? at.map(([px, py]) => marker(style, px, py)).join('') : '');
  });
  return frame + marked.join('') + lines.join('');
}

function invalid(message: string): FinchError {
  return new FinchError('FINCH_INVALID_ARGUMENT', `linePlot: ${message}`);
}
