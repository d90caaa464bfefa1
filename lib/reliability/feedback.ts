import type { Bandit } from './bandit.js';
import type { Decision, Report, ReportResult } from './feedback-store.js';

/**
 * What a {@link Selector} asks of feedback: a {@link FeedbackStore}, where one process is enough, or a
 * {@link ReplicatedFeedback}.
 */
export interface Feedback {
  readonly bandit: Bandit;
  readonly dimension: number;
  /** Unix milliseconds, never going back. */
  now(): number;
  /** Keeps a decision, so that {@link report} finds its context. */
  decide(decision: Decision): string;
  report(report: Report): Promise<ReportResult>;
}
