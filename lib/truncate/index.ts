/** How many tools to keep: dynamic top-k and budgets. */
export { type Budget, type Costed, withinBudget } from './budget.js';
export {
  type Cut,
  type CutOptions,
  type CutRule,
  type CutSignal,
  dynamicCut,
  dynamicCutBatch,
} from './dynamic-cut.js';
