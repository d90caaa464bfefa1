/** Measuring retrieval and cuts on labelled queries. No other part of Toolfinch depends on it. */
export { type BootstrapOptions, bootstrapMeans, type Estimate } from './bootstrap.js';
export { curveAt, type RankingCurve } from './curve.js';
export { type CutCurve, completenessAt, cutCurve, thresholdCurve } from './cut-curve.js';
export { type Dataset, type DatasetQuery, loadDataset, selectQueries } from './dataset.js';
export {
  type CutEvaluation,
  type CutResult,
  evaluateCut,
  evaluateRanking,
  type LabelledQuery,
  type RankingEvaluation,
  type RankingOptions,
  type RankingResult,
} from './evaluate.js';
export {
  type AdaptiveCompleteness,
  adaptiveCompleteness,
  completenessAtK,
  type Gold,
  goldPositions,
  goldSize,
  type KeptTools,
  maxRelevance,
  ndcgAtK,
  recallAtK,
  reciprocalRank,
} from './metrics.js';
export { type PngOptions, renderPng, writePicture } from './picture.js';
export { type CutPoint, type EvaluationPlot, evaluationPlot, type Series } from './plot.js';
export type { RunOptions } from './run-queries.js';
export { type ScorePlot, scorePlot } from './score-plot.js';
