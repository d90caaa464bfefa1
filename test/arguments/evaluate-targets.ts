// Evaluation, with arguments it takes.
import path from 'node:path';

import * as evaluation from '../../dist/esm/lib/evaluate/index.js';
import type { Tool } from '../../dist/esm/lib/index.js';
import type { Entry } from './hostile.js';

interface Given {
  tool: Tool;
  /** Holds no dataset. */
  folder: string;
  /** A new path with that ending. */
  file: (ending: string) => string;
}

export function evaluateTargets({ tool, folder, file }: Given): readonly Entry[] {
  const targets: Entry[] = [];
  const add = (...entry: Entry) => targets.push(entry);
  const { signal } = new AbortController();
  const onProgress = () => undefined;
  const query = { id: 'q', text: 'ring', split: 'test', gold: new Map([['set_alarm', 1]]) };
  const gold = new Set(['a']);
  const run = { concurrency: 2, resamples: 10, confidence: 0.9, seed: 3, signal };
  add('adaptiveCompleteness', evaluation.adaptiveCompleteness, () => [[{ kept: ['a'], gold }]]);
  add('bootstrapMeans', evaluation.bootstrapMeans, () => [
    [[1, 2]],
    { resamples: 5, confidence: 0.9, seed: 2 },
  ]);
  const { completenessAtK, ndcgAtK, recallAtK, reciprocalRank } = evaluation;
  for (const measure of [completenessAtK, ndcgAtK, recallAtK, reciprocalRank]) {
    add(measure.name, measure, () => [['a'], gold, 1]);
  }
  add('goldPositions', evaluation.goldPositions, () => [['a'], new Map([['a', 1]])]);
  add('goldSize', evaluation.goldSize, () => [gold]);
  add('curveAt', evaluation.curveAt, () => [[0.5, 1], 1.5]);
  add('evaluateCut', evaluation.evaluateCut, () => [
    [query],
    () => ['set_alarm'],
    { ...run, onProgress },
  ]);
  add('evaluateRanking', evaluation.evaluateRanking, () => [
    [query],
    () => ['set_alarm'],
    { ...run, onProgress, k: 1, depth: 5 },
  ]);
  const picture = {
    title: 't',
    subtitle: 's',
    series: [{ name: 'n', values: [0.5, 1] }],
    measure: 'm',
    points: [{ name: 'n', k: 1.5, value: 0.5 }],
    distribution: { name: 'n', counts: [1, 2] },
  };
  add('evaluationPlot', evaluation.evaluationPlot, () => [picture]);
  const scores = {
    title: 't',
    subtitle: 's',
    tools: [
      { name: 'a', score: 1 },
      { name: 'b', score: 0.5 },
    ],
    cut: { k: 1, kScore: 1, kSimilarity: 0 },
    similarities: [0.5],
    maxRows: 3,
  };
  add('scorePlot', evaluation.scorePlot, () => [scores]);
  const svg = evaluation.evaluationPlot(picture);
  const fontFiles = [path.resolve('no-such.ttf')];
  add('renderPng', evaluation.renderPng, () => [svg, { scale: 1, fontFiles }], true);
  add('writePicture', evaluation.writePicture, () => [file('svg'), svg, { scale: 1, fontFiles }]);
  const dataset = { name: 'n', tools: [tool], queries: [query], unanswerable: [], warnings: [] };
  add('selectQueries', evaluation.selectQueries, () => [
    dataset,
    { split: 'test', kind: undefined },
  ]);
  add('loadDataset', evaluation.loadDataset, () => [folder], true);

  return targets;
}
