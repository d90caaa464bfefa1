// Made by scripts/calibrate-cuts.mjs from 1400 train queries; make it anew when the default encoder or hybrid scores change.
import type { AbstentionCalibration, CutCalibration } from './calibration.js';

/**
 * The calibrated cut of the default encoder with hybrid retrieval. Other catalogues are not exchangeable with the two it was
 * made from, so its targets are a starting point there and no guarantee (docs/cuts.md says how far off).
 */
export const packagedCut: CutCalibration = {
  kind: 'cut',
  version: 1,
  pipeline: { encoder: 'all-minilm-l6-v2@0e924c75def5', method: 'hybrid', shortlist: 50 },
  measure: 'recall',
  among: 'retrieved',
  weights: { standing: 0.5, share: 1, similarity: -2 },
  queries: 1374,
  thresholds: [
    { target: 0.5, threshold: 1.797693e308, reached: 0.5424066, meanK: 1 },
    { target: 0.6, threshold: -1.168189, reached: 0.6009461, meanK: 1.224163 },
    { target: 0.7, threshold: -2.239607, reached: 0.700558, meanK: 1.791849 },
    { target: 0.75, threshold: -2.820747, reached: 0.7506793, meanK: 2.251092 },
    { target: 0.8, threshold: -3.373147, reached: 0.8007763, meanK: 2.906841 },
    { target: 0.85, threshold: -4.051074, reached: 0.8507763, meanK: 4.070597 },
    { target: 0.9, threshold: -4.952673, reached: 0.9010796, meanK: 6.807132 },
    { target: 0.95, threshold: -6.179596, reached: 0.9507399, meanK: 16.26274 },
    { target: 0.98, threshold: -6.983031, reached: 0.9812955, meanK: 32.42067 },
  ],
};

/** The threshold of abstaining for the default encoder with hybrid retrieval; the same holds for it. */
export const packagedAbstention: AbstentionCalibration = {
  kind: 'abstention',
  version: 1,
  pipeline: { encoder: 'all-minilm-l6-v2@0e924c75def5', method: 'hybrid', shortlist: 50 },
  falseAbstention: 0.05,
  threshold: 0.3131606,
  queries: 1400,
};
