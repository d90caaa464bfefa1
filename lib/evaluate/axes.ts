import { element, ink, label, line } from './svg.js';

/** A rectangle of the picture, in its units; y grows downwards. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Maps values to positions, linearly. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  at(value: number): number;
}

export function scale(from: number, to: number, start: number, end: number): Scale {
  const span = to - from;
  return {
    from,
    to,
    at: (value) => start + (span === 0 ? 0.5 : (value - from) / span) * (end - start),
  };
}

/** A round step (1, 2 or 5 times a power of ten) that makes at most `most` steps over a span > 0. */
export function roundStep(span: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(span / most));
  for (const factor of [1, 2, 5])
    if (factor * power * most >= span * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/** The multiples of a step within a range. */
export function ticks(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  // Adding 0 turns -0 into 0.
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step + 0);
}

/** A tick's text with as many decimals as its step needs. */
export function tickText(value: number, step: number): string {
  const text = value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return text.replace(/^-(?=0(\.0*)?$)/, '').replace('-', '\u2212');
}

export interface AxesOptions {
  readonly box: Box;
  readonly heading: string;
  readonly x: Scale;
  readonly y: Scale;
  readonly xTicks: readonly { readonly value: number; readonly text: string }[];
  readonly yTicks: readonly { readonly value: number; readonly text: string }[];
  readonly xName: string;
  readonly yName: string;
}

/** Heading, grid, both axes and their names, around a box that holds the data. */
export function axes({ box, heading, x, y, xTicks, yTicks, xName, yName }: AxesOptions): string {
  const bottom = box.y + box.height;
  const right = box.x + box.width;
  const small = { 'font-size': 12, fill: ink.muted };
  const parts = [label(heading, box.x, box.y - 16, { 'font-size': 15, 'font-weight': 600 })];
  for (const { value, text } of yTicks) {
    const at = y.at(value);
    parts.push(line(box.x, at, right, at, { stroke: ink.grid }));
    parts.push(label(text, box.x - 8, at + 4, { ...small, 'text-anchor': 'end' }));
  }
  for (const { value, text } of xTicks) {
    const at = x.at(value);
    parts.push(line(at, bottom, at, bottom + 5, { stroke: ink.axis }));
    parts.push(label(text, at, bottom + 19, { ...small, 'text-anchor': 'middle' }));
  }
  parts.push(line(box.x, bottom, right, bottom, { stroke: ink.axis }));
  const middle = box.y + box.height / 2;
  parts.push(
    label(xName, box.x + box.width / 2, bottom + 42, { fill: ink.muted, 'text-anchor': 'middle' }),
    label(yName, 0, 0, {
      fill: ink.muted,
      'text-anchor': 'middle',
      transform: `translate(${box.x - 46} ${middle}) rotate(-90)`,
    }),
  );
  return element('g', {}, parts.join(''));
}
