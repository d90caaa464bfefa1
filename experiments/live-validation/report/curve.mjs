import { axes, roundStep, scale, ticks } from '../../../dist/esm/lib/evaluate/axes.js';
import {
  element,
  ink,
  label,
  line,
  picture,
  polyline,
  seriesStyle,
} from '../../../dist/esm/lib/evaluate/svg.js';
import { curveMethods } from '../settings.mjs';
import { runningTasks, solvedShare } from './measure.mjs';

const width = 1200;
const height = 560;
const box = { x: 78, y: 122, width: 860, height: 560 - 122 - 72 };

/**
 * The success rate of the last tasks, task by task, mean over seeds, for every method: an SVG.
 *
 * @param {import('../experiment.mjs').Results} results
 */
export function successCurve({ settings, runs }) {
  const { before, during, after } = settings.tasks;
  const total = before + during + after;
  const shown = settings.methods.filter((method) => curveMethods.includes(method));
  const series = shown.map((method) => {
    const own = runs.filter((run) => run.method === method);
    return Array.from({ length: total - runningTasks + 1 }, (_, i) => {
      const shares = own.map(({ records }) => solvedShare(records.slice(i, i + runningTasks)));
      return shares.reduce((a, b) => a + b, 0) / Math.max(1, shares.length);
    });
  });
  const lowest = Math.max(0, Math.floor(Math.min(...series.flat()) * 10) / 10);
  const x = scale(0, total, box.x, box.x + box.width);
  const y = scale(lowest, 1, box.y + box.height, box.y);
  const parts = [
    label('Tasks solved while servers fail and recover', 32, 42, {
      'font-size': 22,
      'font-weight': 700,
    }),
    label(
      `Share of the last ${runningTasks} tasks, mean over ${settings.seeds.length} seeds`,
      32,
      68,
      { 'font-size': 14, fill: ink.muted },
    ),
    axes({
      box,
      heading: 'Success rate',
      x,
      y,
      xTicks: ticks(0, total, roundStep(total, 10)).map((value) => ({
        value,
        text: String(value),
      })),
      yTicks: ticks(lowest, 1, 0.1).map((value) => ({
        value,
        text: String(Math.round(100 * value)),
      })),
      xName: 'Task',
      yName: 'Solved (%)',
    }),
  ];
  /** @type {[number, string][]} */
  const marks = [
    [before, 'faults begin'],
    [before + during, 'faults end'],
  ];
  for (const [at, text] of marks) {
    parts.push(
      line(x.at(at), box.y, x.at(at), box.y + box.height, {
        stroke: ink.cut,
        'stroke-width': 1.5,
        'stroke-dasharray': '4 5',
      }),
      label(text, x.at(at) + 6, box.y + 12, { 'font-size': 12, fill: ink.cut }),
    );
  }
  shown.forEach((method, i) => {
    const { colour, dash } = seriesStyle(i);
    const stroke = { stroke: colour, 'stroke-width': 2.2, 'stroke-dasharray': dash };
    const points = (series[i] ?? []).map(
      (value, at) => /** @type {[number, number]} */ ([x.at(at + runningTasks), y.at(value)]),
    );
    const row = box.y + 12 + i * 26;
    parts.push(
      polyline(points, { ...stroke, 'stroke-linejoin': 'round', class: 'series' }),
      line(box.x + box.width + 24, row, box.x + box.width + 60, row, stroke),
      label(method, box.x + box.width + 70, row + 4),
    );
  });
  return picture(
    {
      width,
      height,
      title: 'Tasks solved while servers fail and recover',
      description: `Success rate over tasks for ${shown.join(', ')}`,
    },
    element('g', {}, parts.join('')),
  );
}
