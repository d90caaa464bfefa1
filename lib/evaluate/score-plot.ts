import { aList, aNumber, aString, fields, optional } from '../check.js';
import { FinchError } from '../errors.js';
import { type Box, roundStep, type Scale, scale, ticks, tickText } from './axes.js';
import { heading } from './plot.js';
import { element, ink, label, line, picture, polyline } from './svg.js';

/** One decision: the ranked tools, and where the list was cut. */
export interface ScorePlot {
  readonly title: string;
  readonly subtitle?: string;
  /** Best first. */
  readonly tools: readonly { readonly name: string; readonly score: number }[];
  /** Positions are 1-based, 0 = none: the first `k` tools are kept; the gaps follow tool kScore and kSimilarity. */
  readonly cut: { readonly k: number; readonly kScore: number; readonly kSimilarity: number };
  /** The n − 1 similarities of neighbours; without them the right panel is left out. */
  readonly similarities?: ArrayLike<number>;
  /** Rows to draw, an integer >= 1; the cut is always shown. Default 40. */
  readonly maxRows?: number;
}

const aPlot = fields({
  title: aString,
  subtitle: optional(aString),
  tools: aList(fields({ name: aString, score: aNumber })),
  cut: fields({ k: aNumber, kScore: aNumber, kSimilarity: aNumber }),
  similarities: optional((value, name) => {
    if (!ArrayBuffer.isView(value)) aList(aNumber)(value, name);
  }),
  maxRows: optional(aNumber),
});

const width = 1200;
const rowHeight = 26;
const top = 128;

/**
 * The scores of one decision as rows, the cut between them, the largest score gap and the largest drop of similarity,
 * as an SVG 1200 wide and as high as its rows need.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT (positions outside the list, a wrong number of similarities, maxRows),
 * FINCH_NOT_FINITE (a score or similarity)
 */
export function scorePlot(plot: ScorePlot): string {
  aPlot(plot, 'scorePlot: plot');
  const { tools, cut, maxRows = 40 } = plot;
  check(plot, maxRows);
  const rows = Math.min(
    tools.length,
    Math.max(maxRows, cut.k + 1, cut.kScore + 1, cut.kSimilarity + 2),
  );
  const similarities =
    plot.similarities && Array.from(plot.similarities).slice(0, Math.max(0, rows - 1));
  const height = top + Math.max(1, rows) * rowHeight + (rows < tools.length ? 88 : 66);
  const box: Box = {
    x: 420,
    y: top,
    width: similarities === undefined ? width - 460 : 410,
    height: Math.max(1, rows) * rowHeight,
  };
  const parts = [heading(plot.title, plot.subtitle)];
  if (rows === 0) {
    parts.push(label('No tool was retrieved.', 32, top + 18, { fill: ink.muted }));
  } else {
    parts.push(scores(box, plot, rows));
    if (similarities !== undefined && similarities.length > 0) {
      const right: Box = { x: 900, y: top, width: width - 940, height: box.height };
      parts.push(neighbours(right, similarities, cut.kSimilarity));
    }
    parts.push(cutLine(box, plot));
    if (rows < tools.length) {
      parts.push(
        label(`… and ${tools.length - rows} more, not drawn`, 32, height - 14, { fill: ink.muted }),
      );
    }
  }
  const description = `${cut.k} of ${tools.length} tools kept: ${tools
    .slice(0, cut.k)
    .map(({ name }) => name)
    .join(', ')}`;
  return picture({ width, height, title: plot.title, description }, parts.join(''));
}

function scores(box: Box, { tools, cut }: ScorePlot, rows: number): string {
  const shown = tools.slice(0, rows);
  const values = shown.map(({ score }) => score);
  const { x, parts } = panel(box, 'Score', values);
  for (const [i, { name, score }] of shown.entries()) {
    const y = box.y + (i + 0.5) * rowHeight;
    const kept = i < cut.k;
    const colour = kept ? ink.kept : ink.dropped;
    parts.push(
      label(`${i + 1}`, 52, y + 4.5, { fill: ink.muted, 'font-size': 12, 'text-anchor': 'end' }),
      label(shortName(name, 31), 64, y + 4.5, {
        fill: kept ? ink.text : ink.muted,
        'font-weight': kept ? 600 : 400,
      }),
      line(box.x, y, x.at(score), y, { stroke: colour, 'stroke-opacity': 0.3, 'stroke-width': 2 }),
      element('circle', { class: 'score', cx: x.at(score), cy: y, r: 5.5, fill: colour }),
    );
  }
  const above = values[cut.kScore - 1];
  const below = values[cut.kScore];
  if (above !== undefined && below !== undefined) {
    const y = box.y + cut.kScore * rowHeight;
    parts.push(
      gap(x, below, above, y, `largest gap ${(above - below).toFixed(3)}`, box, 'gap-score'),
    );
  }
  return parts.join('');
}

function neighbours(box: Box, similarities: readonly number[], kSimilarity: number): string {
  const { x, parts } = panel(box, 'Similarity to the next tool', similarities);
  const at = similarities.map((value, i): [number, number] => [
    x.at(value),
    box.y + (i + 1) * rowHeight,
  ]);
  parts.push(polyline(at, { stroke: ink.axis, 'stroke-width': 1.5, class: 'similarities' }));
  for (const [cx, cy] of at) {
    parts.push(element('circle', { class: 'similarity', cx, cy, r: 4, fill: ink.muted }));
  }
  const above = similarities[kSimilarity - 1];
  const below = similarities[kSimilarity];
  if (above !== undefined && below !== undefined) {
    const y = box.y + (kSimilarity + 0.5) * rowHeight;
    const text = `largest drop ${(above - below).toFixed(3)}`;
    parts.push(gap(x, below, above, y, text, box, 'gap-similarity'));
  }
  return parts.join('');
}

/** Heading, vertical grid and the value axis below the rows. */
function panel(box: Box, name: string, values: readonly number[]): { x: Scale; parts: string[] } {
  const low = Math.min(...values);
  const high = Math.max(...values);
  // Equal values still need a span to draw in.
  const span = high - low > 1e-6 ? high - low : Math.max(0.1, Math.abs(high) * 0.1);
  const step = roundStep(span * 1.15, box.width > 300 ? 7 : 4);
  const from = Math.floor((low - span * 0.05) / step) * step;
  const to = Math.ceil((high + span * 0.05) / step) * step;
  const x = scale(from, to, box.x, box.x + box.width);
  const bottom = box.y + box.height;
  const parts = [label(name, box.x, box.y - 18, { 'font-size': 15, 'font-weight': 600 })];
  for (const value of ticks(from, to, step)) {
    const at = x.at(value);
    parts.push(
      line(at, box.y, at, bottom, { stroke: ink.grid }),
      label(tickText(value, step), at, bottom + 20, {
        'font-size': 12,
        fill: ink.muted,
        'text-anchor': 'middle',
      }),
    );
  }
  parts.push(line(box.x, bottom, box.x + box.width, bottom, { stroke: ink.axis }));
  return { x, parts };
}

/** A bracket from one value to another with its text beside it. */
function gap(
  x: Scale,
  low: number,
  high: number,
  y: number,
  text: string,
  box: Box,
  className: string,
): string {
  const from = x.at(low);
  const to = x.at(high);
  const stroke = { stroke: ink.cut, 'stroke-width': 2 };
  const onRight = to + text.length * 7 + 12 < box.x + box.width;
  const inner = !onRight && to - from > text.length * 7 + 12;
  const place = onRight
    ? { x: to + 9, y: y + 4.5, anchor: 'start' }
    : inner
      ? { x: (from + to) / 2, y: y - 6, anchor: 'middle' }
      : { x: from - 9, y: y + 4.5, anchor: 'end' };
  return element(
    'g',
    { class: className },
    line(from, y, to, y, stroke) +
      line(from, y - 5, from, y + 5, stroke) +
      line(to, y - 5, to, y + 5, stroke) +
      label(text, place.x, place.y, {
        'font-size': 12,
        'font-weight': 600,
        fill: ink.cut,
        'text-anchor': place.anchor,
        stroke: ink.ground,
        'stroke-width': 4,
        'paint-order': 'stroke',
      }),
  );
}

/** Cuts in the middle: the front tells the server, the end the tool. */
function shortName(name: string, most: number): string {
  const characters = Array.from(name);
  if (characters.length <= most) return name;
  return `${characters.slice(0, 9).join('')}…${characters.slice(10 - most).join('')}`;
}

function cutLine(box: Box, { tools, cut }: ScorePlot): string {
  const y = box.y + cut.k * rowHeight;
  const tag = `keep ${cut.k} of ${tools.length}`;
  return element(
    'g',
    { class: 'cut' },
    line(32, y, box.x - 6, y, { stroke: ink.cut, 'stroke-width': 2 }) +
      line(box.x - 6, y, width - 40, y, {
        stroke: ink.cut,
        'stroke-width': 1.5,
        'stroke-dasharray': '4 5',
      }) +
      label(tag, box.x - 12, y - 7, {
        'font-size': 12,
        'font-weight': 600,
        fill: ink.cut,
        'text-anchor': 'end',
        stroke: ink.ground,
        'stroke-width': 4,
        'paint-order': 'stroke',
      }),
  );
}

function check({ tools, cut, similarities }: ScorePlot, maxRows: number): void {
  const n = tools.length;
  if (!Number.isInteger(maxRows) || maxRows < 1) {
    throw invalid(`maxRows is ${maxRows}, expected an integer of 1 or more`);
  }
  for (const [name, most] of [
    ['k', n],
    ['kScore', Math.max(0, n - 1)],
    ['kSimilarity', Math.max(0, n - 2)],
  ] as const) {
    const value = cut[name];
    if (!Number.isInteger(value) || value < 0 || value > most) {
      throw invalid(
        `cut.${name} is ${value}, expected an integer from 0 to ${most} for ${n} tools`,
      );
    }
  }
  if (similarities !== undefined && similarities.length !== Math.max(0, n - 1)) {
    throw invalid(
      `there are ${similarities.length} similarities, expected ${Math.max(0, n - 1)} for ${n} tools`,
    );
  }
  const values = [...tools.map(({ score }) => score), ...Array.from(similarities ?? [])];
  const bad = values.find((value) => !Number.isFinite(value));
  if (bad !== undefined) {
    throw new FinchError(
      'FINCH_NOT_FINITE',
      `scorePlot: a value is ${bad}, expected finite numbers`,
    );
  }
}

function invalid(message: string): FinchError {
  return new FinchError('FINCH_INVALID_ARGUMENT', `scorePlot: ${message}`);
}
