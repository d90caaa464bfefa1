/** Which tools really work: the bandit, and durable feedback for it. */
export { Bandit, type BanditBinding, type BanditOptions, type BanditState } from './bandit.js';
export type { SyncPolicy } from './feedback-log.js';
export type { FeedbackOptions } from './feedback-options.js';
export {
  type Decision as FeedbackDecision,
  type FeedbackHealth,
  FeedbackStore,
  type Report,
  type ReportResult,
} from './feedback-store.js';
export type { Recovery } from './log-replay.js';
export { type Outcome, outcomes, rewardOf } from './reward.js';
