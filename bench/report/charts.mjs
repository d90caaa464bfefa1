// Charts with logarithmic axes, on the drawing functions of lib/evaluate.
import { axes, scale } from '../../dist/esm/lib/evaluate/axes.js';
import {
  element,
  ink,
  label,
  line,
  marker,
  picture,
  polyline,
  seriesStyle,
} from '../../dist/esm/lib/evaluate/svg.js';

const width = 1200;
const height = 620;
/** Where the data are; the legend stands to the right. */
const box = { x: 90, y: 122, width: width - 90 - 330, height: height - 122 - 72 };
/** Ten colours with a contrast of 3 : 1 on white. */
const barColours = [
  '#0072b2',
  '#d55e00',
  '#00815f',
  '#a3487d',
  '#4a4a4a',
  '#8a6d00',
  '#5b4b9a',
  '#7a3b00',
  '#0a7d8c',
  '#b3123e',
];

/** Maps values to positions by their logarithms; both ends are powers of ten or the data's. */
function logScale(from, to, start, end) {
  const inner = scale(Math.log10(from), Math.log10(to), start, end);
  return { from, to, at: (value) => inner.at(Math.log10(value)) };
}

/** 1, 2 and 5 times the powers of ten within a range, or the powers alone where that is many. */
function logTicks(from, to) {
  const decades = Math.log10(to / from);
  const factors = decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= from * (1 - 1e-9) && value <= to * (1 + 1e-9))
        ticks.push({ value, text: short(value) });
    }
  }
  return ticks;
}

function short(value) {
  if (value >= 1e6) return `${value / 1e6}M`;
  if (value >= 1e4) return `${value / 1e3}k`;
  return String(Number(value.toPrecision(3)));
}

/** A chart of lines and points; series: { name, points: [[x, y]], limit? }: limits are dashed, in the colour of series i. */
export function logChart({
  title,
  subtitle,
  description,
  heading,
  xName,
  yName,
  series,
  xRange,
  yRange,
}) {
  const x = logScale(...xRange, box.x, box.x + box.width);
  const y = logScale(...yRange, box.y + box.height, box.y);
  const parts = [
    label(title, 32, 42, { 'font-size': 22, 'font-weight': 700 }),
    label(subtitle, 32, 68, { 'font-size': 14, fill: ink.muted }),
    axes({
      box,
      heading,
      x,
      y,
      xTicks: logTicks(...xRange),
      yTicks: logTicks(...yRange),
      xName,
      yName,
    }),
  ];
  series.forEach(({ name, points, limit }, i) => {
    const style = seriesStyle(limit ?? i);
    const stroke =
      limit === undefined
        ? { stroke: style.colour, 'stroke-width': 2.5 }
        : { stroke: style.colour, 'stroke-width': 1.5, 'stroke-dasharray': '6 4' };
    const at = points.map(([px, py]) => [x.at(px), y.at(py)]);
    const key = box.x + box.width + 28;
    const row = box.y + 14 + i * 24;
    parts.push(polyline(at, stroke), line(key, row - 4, key + 26, row - 4, stroke));
    parts.push(label(name, key + 34, row));
    if (limit === undefined)
      parts.push(...at.map(([px, py]) => marker(style, px, py)), marker(style, key + 13, row - 4));
  });
  return picture({ width, height, title, description }, element('g', {}, parts.join('')));
}

/** Groups of bars from 1 (equal) on a logarithmic scale; groups: [{ name, bars: [{ name, value }] }]. */
export function barChart({ title, subtitle, description, heading, yName, groups }) {
  const values = groups.flatMap(({ bars }) => bars.map(({ value }) => value));
  const yRange = [
    Math.min(0.5, ...values.map((v) => v * 0.8)),
    Math.max(2, ...values.map((v) => v * 1.25)),
  ];
  const y = logScale(...yRange, box.y + box.height, box.y);
  const names = [...new Set(groups.flatMap(({ bars }) => bars.map(({ name }) => name)))];
  const slot = box.width / groups.length;
  const x = scale(0, groups.length, box.x, box.x + box.width);
  const parts = [
    label(title, 32, 42, { 'font-size': 22, 'font-weight': 700 }),
    label(subtitle, 32, 68, { 'font-size': 14, fill: ink.muted }),
    axes({
      box,
      heading,
      x,
      y,
      xTicks: groups.map(({ name }, i) => ({ value: i + 0.5, text: name })),
      yTicks: logTicks(...yRange),
      xName: '',
      yName,
    }),
  ];
  groups.forEach(({ bars }, g) => {
    const wide = (slot * 0.8) / names.length;
    for (const { name, value } of bars) {
      const i = names.indexOf(name);
      const left = box.x + g * slot + slot * 0.1 + i * wide;
      const top = Math.min(y.at(value), y.at(1));
      parts.push(
        element('rect', {
          x: left,
          y: top,
          width: wide * 0.9,
          height: Math.max(1, Math.abs(y.at(value) - y.at(1))),
          fill: barColours[i % barColours.length],
        }),
        label(
          value >= 10 ? value.toFixed(0) : value.toFixed(1),
          left + wide * 0.45,
          y.at(value) + (value >= 1 ? -5 : 14),
          {
            'font-size': 10,
            'text-anchor': 'middle',
          },
        ),
      );
    }
  });
  parts.push(
    line(box.x, y.at(1), box.x + box.width, y.at(1), { stroke: ink.text, 'stroke-width': 1.5 }),
  );
  names.forEach((name, i) => {
    const key = box.x + box.width + 28;
    const row = box.y + 14 + i * 24;
    parts.push(
      element('rect', {
        x: key,
        y: row - 11,
        width: 14,
        height: 14,
        fill: barColours[i % barColours.length],
      }),
      label(name, key + 24, row),
    );
  });
  return picture({ width, height, title, description }, element('g', {}, parts.join('')));
}
