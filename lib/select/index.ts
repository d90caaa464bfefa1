/** The Selector and its decision record. */
export type {
  Candidate,
  CandidateFate,
  Decision,
  NoneReason,
  ReliabilityRecord,
  RerankRecord,
  SelectedTool,
} from './decision.js';
export {
  type DecisionOutcome,
  type LabelledListOptions,
  type LabelledText,
  labelledLists,
  labelsFromOutcomes,
} from './labelled-lists.js';
export { defaultWeights, type FusionWeights } from './rank-rule.js';
export type { RerankSettings } from './rerank-stage.js';
export {
  type Query,
  type SelectOptions,
  Selector,
  type SelectorOptions,
  type SelectSettings,
} from './selector.js';
export { stateText, type TaskState } from './task-state.js';
