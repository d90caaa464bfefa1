/** Which tools really work: the bandit, and durable feedback for it. */
export {
  Bandit,
  type BanditBinding,
  type BanditOptions,
  type BanditState,
  type SharedBandit,
} from './bandit.js';
export type { Feedback } from './feedback.js';
export type { FeedbackHealth } from './feedback-health.js';
export type { SyncPolicy } from './feedback-log.js';
export type { FeedbackOptions } from './feedback-options.js';
export {
  type Decision as FeedbackDecision,
  FeedbackStore,
  type Report,
  type ReportResult,
} from './feedback-store.js';
export {
  type CheckedFeedback,
  type HealthCheckOptions,
  HealthChecks,
} from './health-checks.js';
export type { Recovery } from './log-replay.js';
export {
  type RedisOptions,
  type ReplicaEvent,
  type ReplicaHealth,
  type ReplicaOptions,
  ReplicatedFeedback,
} from './replicas/index.js';
export { type Outcome, outcomes, rewardOf } from './reward.js';
