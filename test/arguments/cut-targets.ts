// Cuts and abstaining, with arguments they take.
import * as evaluation from '../../dist/esm/lib/evaluate/index.js';
import * as toolfinch from '../../dist/esm/lib/index.js';
import type { Entry } from './hostile.js';

export function cutTargets(
  index: toolfinch.ToolIndex,
  selector: toolfinch.Selector,
): readonly Entry[] {
  const targets: Entry[] = [];
  const add = (...entry: Entry) => targets.push(entry);
  const { signal } = new AbortController();
  const cut = { minK: 1, maxK: 2, signals: ['score', 'similarity'], boundary: 'before' };
  const one = Float32Array.of(1, 0);
  add('dynamicCut', toolfinch.dynamicCut, () => [one, Float32Array.of(1, 0, 0, 1), cut]);
  add('dynamicCutBatch', toolfinch.dynamicCutBatch, () => [
    one,
    Float32Array.of(1, 0, 0, 1),
    Float64Array.of(0, 2),
    cut,
  ]);
  const costed = { id: 'a', tokens: 5 };
  add('withinBudget', toolfinch.withinBudget, () => [
    [costed],
    [costed],
    { maxTools: 2, maxTokens: 20 },
  ]);

  add('labelledLists', toolfinch.labelledLists, () => [
    index,
    [{ text: 'ring', gold: ['set_alarm'] }],
    { method: 'hybrid', shortlist: 5, onProgress: () => undefined, signal },
  ]);
  add('labelsFromOutcomes', toolfinch.labelsFromOutcomes, () => [
    [{ decision: { id: 'd', query: 'ring' }, toolId: 'set_alarm', ok: true }],
  ]);
  const abstention = {
    kind: 'abstention',
    version: 1,
    pipeline: { encoder: index.encoder.model, method: 'hybrid', shortlist: 10 },
    falseAbstention: 0.1,
    threshold: 0.2,
    queries: 20,
  };
  add(
    'Selector#select, calibrated',
    (...a: [never]) => selector.select(...a),
    () => ['ring', { abstain: abstention, cut: { rule: 'elbow', sensitivity: 1 }, shortlist: 5 }],
  );

  const labelledList = {
    scores: [1, 0.5],
    embeddings: Float32Array.of(1, 0, 0, 1),
    relevant: [0],
    gold: 1,
  };
  const labelledOnes = () => Array.from({ length: 30 }, () => labelledList);
  const pipeline = { encoder: 'e', method: 'hybrid', shortlist: 2, reranker: 'r', candidates: 50 };
  const calibrateOptions = {
    pipeline,
    targets: [0.9],
    measure: 'recall',
    among: 'all',
    weights: { standing: 1, share: 1, similarity: -1 },
  };
  const calibration = toolfinch.calibrateCut(labelledOnes(), calibrateOptions as never);
  for (const rule of [
    { rule: 'dynamic', ...cut },
    { rule: 'fixed', k: 1 },
    { rule: 'threshold', score: 0.5, minK: 1, maxK: 2 },
    { rule: 'ratio', ratio: 0.5, minK: 1, maxK: 2 },
    { rule: 'elbow', sensitivity: 1, minK: 1, maxK: 2 },
    { rule: 'calibrated', target: 0.9, calibration, minK: 1, maxK: 2 },
  ]) {
    add(rule.rule === 'dynamic' ? 'cutList' : `cutList, ${rule.rule}`, toolfinch.cutList, () => [
      { scores: [1, 0.5], embeddings: Float32Array.of(1, 0, 0, 1) },
      rule,
    ]);
  }
  add('calibrateCut', toolfinch.calibrateCut, () => [labelledOnes(), calibrateOptions]);
  add('calibrateAbstention', toolfinch.calibrateAbstention, () => [
    labelledOnes(),
    { pipeline, falseAbstention: 0.1 },
  ]);
  add('answerability', toolfinch.answerability, () => [{ scores: [1, 0.5] }]);

  add('cutCurve', evaluation.cutCurve, () => [[labelledList], [{ rule: 'fixed', k: 1 }]]);
  add('thresholdCurve', evaluation.thresholdCurve, () => [[labelledList], () => [1, 0.5]]);
  add('completenessAt', evaluation.completenessAt, () => [
    { meanK: [1, 2], completeness: [0.5, 1] },
    1.5,
  ]);

  return targets;
}
