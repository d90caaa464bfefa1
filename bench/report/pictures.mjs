// Roofline, speed-up bars and growth curves of a report, as SVG texts by file name.
import { peakOf } from '../limits.mjs';
import { barChart, logChart } from './charts.mjs';
import { sizeText } from './numbers.mjs';

export function pictures(report) {
  const { exact = [], growth = [], ann = [] } = report.results;
  const made = {};
  const machine = `${report.machine.cpu}, ${report.machine.isa}`;
  for (const threads of new Set(exact.map((cell) => cell.threads))) {
    const cells = exact.filter((cell) => cell.threads === threads);
    made[`roofline-${threads}.svg`] = roofline(cells, threads, machine);
    for (const [size, group] of byShape(cells.filter(({ rows }) => rows.some(({ ours }) => !ours))))
      made[`speedup-${size}-${threads}.svg`] = speedUps(group, threads, machine);
  }
  for (const curve of ['vectors', 'queries']) {
    const points = growth.filter((point) => point.curve === curve);
    if (points.length > 1) made[`growth-${curve}.svg`] = growthCurve(points, curve, machine);
  }
  ann.forEach((run, i) => {
    made[`ann-${i + 1}.svg`] = annCurve(run, machine);
  });
  return made;
}

function byShape(cells) {
  const shapes = new Map();
  for (const cell of cells) {
    const size = `${cell.count}x${cell.dimension}`;
    shapes.set(size, [...(shapes.get(size) ?? []), cell]);
  }
  return shapes;
}

const bytesOf = { f32: 4, bf16: 2, f16: 2, i8: 1 };

/** Operations per byte of the matrix against operations per second, under the roofs of the largest shape. */
function roofline(cells, threads, machine) {
  const largest = Math.max(...cells.map(({ count, dimension }) => count * dimension));
  const shown = cells.filter(({ count, dimension }) => count * dimension === largest);
  const { count, dimension, limits } = shown[0];
  const storages = Object.keys(shown[0].floors);
  const points = (storage, name) =>
    shown
      .map((cell) => ({ cell, row: cell.rows.find((row) => row.name === name) }))
      .filter(({ row }) => row)
      .map(({ cell, row }) => [
        (2 * cell.batch) / bytesOf[storage],
        (2 * count * dimension * cell.batch) / (row.ms.median / 1000) / 1e9,
      ]);
  const series = storages.map((storage) => ({
    name: `toolfinch ${storage}`,
    points: points(storage, `toolfinch ${storage}`),
  }));
  for (const peer of ['onnxruntime-node', 'usearch f32']) {
    const found = points('f32', peer);
    if (found.length > 0) series.push({ name: peer, points: found });
  }
  const all = series.flatMap((one) => one.points);
  const xRange = [Math.min(...all.map(([x]) => x)) / 1.5, Math.max(...all.map(([x]) => x)) * 1.5];
  const roofs = storages.map((storage, i) => {
    const bandwidth = bandwidthOf(limits, count * dimension * bytesOf[storage]);
    const peak = peakOf(new Map(Object.entries(limits)), storage);
    const corner = Math.min(xRange[1], Math.max(xRange[0], peak / bandwidth));
    const roof = (x) => Math.min(peak, bandwidth * x) / 1e9;
    return {
      name: `limit of ${storage}`,
      limit: i,
      points: [xRange[0], corner, xRange[1]].map((x) => [x, roof(x)]),
    };
  });
  series.push(...roofs);
  const ys = series.flatMap((one) => one.points.map(([, y]) => y));
  return logChart({
    title: 'Exact search under the roofs of the machine',
    subtitle: `${sizeText(count, dimension)}, ${threads} thr., batches ${shown.map(({ batch }) => batch).join(', ')}; ${machine}`,
    description:
      'Arithmetic intensity against operations per second, with the limits by bandwidth and arithmetic',
    heading: 'Operations per second',
    xName: 'operations per byte of the matrix',
    yName: 'billion operations/s',
    series,
    xRange,
    yRange: [Math.min(...ys) / 1.5, Math.max(...ys) * 1.5],
  });
}

function bandwidthOf(limits, bytes) {
  const reads = Object.entries(limits).filter(([name]) => name.startsWith('read '));
  const distance = ([name]) => Math.abs(Math.log(Number(name.slice(5)) / bytes));
  return reads.sort((a, b) => distance(a) - distance(b))[0][1];
}

function speedUps(cells, threads, machine) {
  const groups = cells
    .map((cell) => ({
      name: `batch ${cell.batch}`,
      bars: cell.rows
        .filter(({ ours }) => !ours)
        .map(({ name, oursIsFaster }) => ({ name, value: oursIsFaster.median })),
    }))
    .filter(({ bars }) => bars.length > 0);
  return barChart({
    title: 'How many times as fast as its peers: toolfinch f32, exact',
    subtitle: `${sizeText(cells[0].count, cells[0].dimension)}, ${threads} thr.; above 1 Toolfinch is faster; ${machine}`,
    description: 'Ratio of times, peers over Toolfinch, by shape and batch',
    heading: 'Time of the peer over ours',
    yName: 'times as fast',
    groups,
  });
}

function growthCurve(points, curve, machine) {
  const names = [...new Set(points.flatMap(({ ms }) => Object.keys(ms)))];
  const series = names.map((name) => ({
    name,
    points: points
      .filter(({ ms }) => ms[name])
      .map((point) => [curve === 'vectors' ? point.count : point.batch, point.ms[name].median]),
  }));
  const all = series.flatMap((one) => one.points);
  const { dimension, count, threads } = points[0];
  return logChart({
    title: `How the time grows with the number of ${curve}`,
    subtitle: `${curve === 'vectors' ? `dimension ${dimension}, 1 query` : sizeText(count, dimension)}, ${threads} thr.; ${machine}`,
    description: `Milliseconds a call against the number of ${curve}`,
    heading: 'Milliseconds a call',
    xName: curve,
    yName: 'ms',
    series,
    xRange: [Math.min(...all.map(([x]) => x)), Math.max(...all.map(([x]) => x))],
    yRange: [Math.min(...all.map(([, y]) => y)) / 1.5, Math.max(...all.map(([, y]) => y)) * 1.5],
  });
}

/** The part of a miss against queries per second: down and to the right is better. */
function annCurve({ count, dimension, threads, curves }, machine) {
  const miss = (recall) => Math.max(1 - recall, 1e-4);
  const series = curves.map(({ name, points }) => ({
    name,
    points: points.map(({ recall, queriesPerSecond }) => [queriesPerSecond, miss(recall)]),
  }));
  const all = series.flatMap((one) => one.points);
  return logChart({
    title: 'Approximate search: misses against speed',
    subtitle: `${sizeText(count, dimension)}, clustered, ${threads} thr.; lower and further right is better; ${machine}`,
    description: '1 - recall@10 against queries per second',
    heading: '1 - recall@10 (1e-4 stands for none missed)',
    xName: 'queries/s',
    yName: 'missed',
    series,
    xRange: [Math.min(...all.map(([x]) => x)) / 1.3, Math.max(...all.map(([x]) => x)) * 1.3],
    yRange: [5e-5, Math.max(0.1, ...all.map(([, y]) => y)) * 1.3],
  });
}
