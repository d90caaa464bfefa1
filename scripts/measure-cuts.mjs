// Compares cuts on labelled queries and prints the tables of docs/cuts.md; draws docs/cuts/curves-*.svg with --plot docs/cuts.
//   node scripts/measure-cuts.mjs DATA [--sets a,b] [--split test] [--limit 1000] [--cache .cache/cuts] [--plot FOLDER]
// DATA holds one dataset a folder. The first run indexes and retrieves, about a minute per 5,000 tools or queries on two cores;
// the cache keeps it. Settings are chosen with --split train --sets metatool,sealtools.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { completenessAt, cutCurve, thresholdCurve } from '../dist/esm/lib/evaluate/index.js';
import { linePlot } from '../dist/esm/lib/evaluate/line-plot.js';
import {
  answerability,
  calibrateAbstention,
  cutList,
  packagedAbstention,
  packagedCut,
} from '../dist/esm/lib/index.js';
import { thresholdsFor } from '../dist/esm/lib/truncate/calibrate.js';
import { barsOf, countReaching, keepScores } from '../dist/esm/lib/truncate/keep-scores.js';
import { candidateLists } from './cut-lists.mjs';
import { random } from './random.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sets: {
      type: 'string',
      default:
        'livemcpbench_xl,livemcpbench,toollens,toolbench_g1,metatool,bfcl,toolalpaca,apibank',
    },
    split: { type: 'string', default: 'test' },
    limit: { type: 'string', default: '1000' },
    cache: { type: 'string', default: '.cache/cuts' },
    plot: { type: 'string' },
  },
});
const [data] = positionals;
if (data === undefined) {
  console.error(
    'usage: node scripts/measure-cuts.mjs DATA [--sets a,b] [--split test] [--limit 1000] [--cache FOLDER] [--plot FOLDER]',
  );
  process.exit(2);
}
const sets = values.sets.split(',');
const ks = [3, 5, 8, 10, 15];
const targets = [0.8, 0.9, 0.95];
const halvings = 40;
const percent = (value) => (value === undefined ? '–' : (100 * value).toFixed(1));
const signed = (value) =>
  value === undefined ? '–' : (value >= 0 ? '+' : '') + (100 * value).toFixed(1);
const mean = (numbers) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** The first n of a list; gold tools behind them are missed. */
const head = ({ scores, embeddings, relevant, gold }, n) => ({
  scores: scores.subarray(0, n),
  embeddings: embeddings.subarray(
    0,
    Math.min(n, scores.length) * (embeddings.length / scores.length),
  ),
  relevant: relevant.filter((position) => position < n),
  gold,
});
const depths = [2, 3, 5, 8, 12, 20, 30, 40, 50];
/** One curve from one point at each depth of the list. */
function overDepths(lists, rule) {
  const points = depths.map((n) =>
    cutCurve(
      lists.map((list) => head(list, n)),
      [rule],
    ),
  );
  const order = points
    .map(({ meanK, completeness }) => [meanK[0], completeness[0]])
    .sort((a, b) => a[0] - b[0]);
  return { meanK: order.map(([k]) => k), completeness: order.map(([, c]) => c) };
}

const families = {
  'fixed k': (lists) =>
    cutCurve(
      lists,
      Array.from({ length: 50 }, (_, i) => ({ rule: 'fixed', k: i + 1 })),
    ),
  threshold: (lists) => thresholdCurve(lists, ({ scores }) => scores),
  'ratio to best': (lists) =>
    thresholdCurve(lists, ({ scores }) => scores.map((score) => score / Math.max(scores[0], 1e-9))),
  elbow: (lists) => overDepths(lists, { rule: 'elbow' }),
  dynamic: (lists) => overDepths(lists, { rule: 'dynamic' }),
  calibrated: (lists) => thresholdCurve(lists, ({ bars }) => bars),
};

function halves(lists, next) {
  const order = lists.map((list) => [next(), list]).sort((a, b) => a[0] - b[0]);
  const middle = Math.floor(lists.length / 2);
  return [order.slice(0, middle), order.slice(middle)].map((half) => half.map(([, list]) => list));
}
const recallAt = ({ relevant, gold }, k) =>
  relevant.filter((position) => position < k).length / gold;

const curves = new Map();
const recallRows = [];
const transferRows = [];
const abstainRows = [];
for (const set of sets) {
  const { lists: all, pipeline } = await candidateLists(data, values.cache, set, values.split);
  const share = Math.min(1, Number(values.limit) / all.length);
  const lists = all
    .filter(({ gold }, i) => gold > 0 && Math.floor((i + 1) * share) > Math.floor(i * share))
    .map((list) => ({ ...list, bars: barsOf(keepScores(list, packagedCut.weights)) }));
  curves.set(
    set,
    Object.fromEntries(Object.entries(families).map(([name, curve]) => [name, curve(lists)])),
  );

  // Calibrated on one half at random, measured on the other, again and again.
  const next = random(7);
  const splits = Array.from({ length: halvings }, () => halves(lists, next));
  const ceiling = mean(lists.map((list) => recallAt(list, 50)));
  const cells = targets.map((target) => {
    const reached = [];
    const kept = [];
    for (const [half, other] of splits) {
      const bars = half.map((list) => list.bars);
      const wanted = { targets: [target], measure: 'recall', among: 'all' };
      let threshold;
      try {
        [{ threshold }] = thresholdsFor(half, bars, wanted, pipeline.shortlist);
      } catch {
        continue;
      }
      const cut = other.map((list) => Math.max(1, countReaching(list.bars, threshold)));
      reached.push(mean(other.map((list, i) => recallAt(list, cut[i]))));
      kept.push(mean(cut));
    }
    return reached.length < halvings / 2
      ? 'refused'
      : `${percent(mean(reached))} at ${mean(kept).toFixed(1)}`;
  });
  recallRows.push([set, lists.length, percent(ceiling), ...cells]);

  const found = lists.filter(({ relevant }) => relevant.length > 0);
  transferRows.push([
    set,
    ...targets.map((target) => {
      const cut = found.map((list) => cutList(list, { rule: 'calibrated', target }).k);
      const among = found.map((list, i) =>
        recallAt({ ...list, gold: list.relevant.length }, cut[i]),
      );
      return `${percent(mean(among))} at ${mean(cut).toFixed(1)}`;
    }),
  ]);

  const { lists: offTopic } = await candidateLists(data, values.cache, set, 'off');
  const off = offTopic.filter((_, i) => i % 2 === (values.split === 'train' ? 0 : 1));
  const removed = lists.map((list) => ({ scores: Float32Array.from(list.removed) }));
  const below = (some, threshold) =>
    mean(some.map((list) => (answerability(list) < threshold ? 1 : 0)));
  const own = splits.map(([half, other]) => {
    const { threshold } = calibrateAbstention(half, { pipeline });
    return [below(other, threshold), below(off, threshold), below(removed, threshold)];
  });
  const line = (wrong, right, gone) => [
    percent(wrong),
    percent(right),
    percent(right + wrong === 0 ? undefined : right / (right + wrong)),
    percent(gone),
  ];
  const packaged = [lists, off, removed].map((some) => below(some, packagedAbstention.threshold));
  abstainRows.push([
    set,
    ...line(...[0, 1, 2].map((i) => mean(own.map((each) => each[i])))),
    ...line(...packaged),
  ]);
  console.error(`${set}: ${lists.length} queries`);
}

const names = Object.keys(families);
console.log('## Completeness at equal mean k\n');
for (const k of ks) {
  const rows = sets.map((set) => [
    set,
    ...names.map((name) => {
      const value = completenessAt(curves.get(set)[name], k);
      if (name === 'fixed k') return percent(value);
      const fixed = completenessAt(curves.get(set)['fixed k'], k);
      return signed(value === undefined ? undefined : value - fixed);
    }),
  ]);
  const averages = names.map((name) => {
    const both = sets
      .map((set) => [
        completenessAt(curves.get(set)[name], k),
        completenessAt(curves.get(set)['fixed k'], k),
      ])
      .filter(([value]) => value !== undefined);
    if (both.length < sets.length) return '–';
    return name === 'fixed k'
      ? percent(mean(both.map(([value]) => value)))
      : signed(mean(both.map(([value, fixed]) => value - fixed)));
  });
  console.log(
    `Mean k = ${k}\n\n${table(['set', ...names], [...rows, ['**mean**', ...averages]])}\n`,
  );
}
const ownK = sets.map((set) => {
  const { meanK, completeness } = curves.get(set).dynamic;
  const at = meanK.map((k, i) => [k, completeness[i]]).find(([k]) => k > 4) ?? [
    meanK.at(-1),
    completeness.at(-1),
  ];
  return [
    set,
    at[0].toFixed(2),
    percent(at[1]),
    ...['fixed k', 'calibrated'].map((name) =>
      percent(completenessAt(curves.get(set)[name], at[0])),
    ),
  ];
});
console.log(
  `At the dynamic cut's own mean k\n\n${table(['set', 'mean k', 'dynamic', 'fixed k', 'calibrated'], ownK)}\n`,
);
console.log(
  `## Recall targets, calibrated per catalogue\n\n${table(['set', 'queries', 'recall of all 50', ...targets.map(percent)], recallRows)}\n`,
);
console.log(
  `## The packaged calibration, share of the retrieved gold tools\n\n${table(['set', ...targets.map(percent)], transferRows)}\n`,
);
console.log(
  `## Abstaining\n\n${table(['set', 'wrongly none', 'off-topic none', 'precision', 'gold removed none', 'packaged: wrongly none', 'off-topic none', 'precision', 'gold removed none'], abstainRows)}`,
);

if (values.plot !== undefined) {
  mkdirSync(values.plot, { recursive: true });
  for (let at = 0; at < sets.length; at += 2) {
    const shown = sets.slice(at, at + 2);
    const panels = shown.map((set) => ({
      heading: set,
      xName: 'mean k',
      yName: 'Completeness, %',
      series: names.map((name) => {
        const { meanK, completeness } = curves.get(set)[name];
        const points = meanK.map((k, i) => [k, 100 * completeness[i]]).filter(([k]) => k <= 20);
        return {
          name,
          x: points.map(([k]) => k),
          y: points.map(([, value]) => value),
          markers: false,
        };
      }),
    }));
    const title = 'Every gold tool kept, over the mean number of tools kept';
    writeFileSync(
      path.join(values.plot, `curves-${at / 2 + 1}.svg`),
      linePlot({ title, subtitle: 'test queries, hybrid retrieval of 50 candidates', panels }),
    );
  }
}
