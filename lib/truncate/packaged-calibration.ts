// Made by scripts/calibrate-cuts.mjs from 782 held-out queries; make it anew when the default encoder or hybrid scores change.
import type { AbstentionCalibration, CutCalibration } from './calibration.js';

/**
 * The calibrated cut of the default encoder with hybrid retrieval. Other catalogues are not exchangeable with the two it was
 * made from, so its targets are a starting point there and no guarantee (docs/cuts.md says how far off).
 */
export const packagedCut: CutCalibration = {
  kind: 'cut',
  version: 1,
  pipeline: { encoder: 'toolfinch-retriever@20ac2d3ff2c0', method: 'hybrid', shortlist: 50 },
  measure: 'recall',
  among: 'retrieved',
  weights: { standing: 0.5, share: 1, similarity: -2 },
  queries: 768,
  thresholds: [
    { target: 0.5, threshold: 1.797693e308, reached: 0.5435981, meanK: 1 },
    { target: 0.6, threshold: -0.9837277, reached: 0.6014757, meanK: 1.178385 },
    { target: 0.7, threshold: -1.828608, reached: 0.701888, meanK: 1.695313 },
    { target: 0.75, threshold: -2.396988, reached: 0.751237, meanK: 2.19401 },
    { target: 0.8, threshold: -2.890548, reached: 0.8013672, meanK: 2.813802 },
    { target: 0.85, threshold: -3.411433, reached: 0.8520833, meanK: 3.785156 },
    { target: 0.9, threshold: -4.237095, reached: 0.9024306, meanK: 5.966146 },
    { target: 0.95, threshold: -5.496492, reached: 0.9520616, meanK: 13.55339 },
    { target: 0.98, threshold: -6.362291, reached: 0.9823785, meanK: 26.47786 },
  ],
};

/** The threshold of abstaining for the default encoder with hybrid retrieval; the same holds for it. */
export const packagedAbstention: AbstentionCalibration = {
  kind: 'abstention',
  version: 1,
  pipeline: { encoder: 'toolfinch-retriever@20ac2d3ff2c0', method: 'hybrid', shortlist: 50 },
  falseAbstention: 0.05,
  threshold: 0.3300508,
  queries: 782,
};
