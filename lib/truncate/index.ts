/** How many tools to keep: dynamic top-k and other cuts, a cut calibrated to a recall target, abstaining, and budgets. */
export {
  answerability,
  type CalibrateAbstentionOptions,
  calibrateAbstention,
} from './abstention.js';
export { type Budget, type Costed, withinBudget } from './budget.js';
export { type CalibrateCutOptions, calibrateCut } from './calibrate.js';
export type {
  AbstentionCalibration,
  CutAmong,
  CutCalibration,
  CutMeasure,
  CutThreshold,
  Pipeline,
} from './calibration.js';
export {
  type CutBounds,
  type CutRule,
  type CutRuleName,
  cutList,
  type ListCut,
} from './cut-rule.js';
export {
  type Cut,
  type CutOptions,
  type CutSignal,
  dynamicCut,
  dynamicCutBatch,
} from './dynamic-cut.js';
export { defaultKeepWeights, type KeepWeights } from './keep-scores.js';
export { packagedAbstention, packagedCut } from './packaged-calibration.js';
export type { LabelledList, RankedList } from './ranked-list.js';
