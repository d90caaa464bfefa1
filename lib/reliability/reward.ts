import { shown } from '../describe-value.js';
import { FinchError } from '../errors.js';

/** How a tool's execution ended. */
export type Outcome = 'success' | 'error' | 'timeout' | 'cancelled';

/** Their order is the feedback file's byte: append only. */
export const outcomes: readonly Outcome[] = ['success', 'error', 'timeout', 'cancelled'];

/**
 * The bandit's y of an outcome (RATED: 1 for a working execution, else 0), or undefined when it says nothing of the
 * tool: a call that the user or the host cancelled.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT for any other value.
 */
export function rewardOf(outcome: Outcome): number | undefined {
  switch (outcome) {
    case 'success':
      return 1;
    case 'error':
    case 'timeout':
      return 0;
    case 'cancelled':
      return undefined;
    default:
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `outcome is ${shown(outcome)}; expected 'success', 'error', 'timeout' or 'cancelled'`,
      );
  }
}

/**
 * The bandit's time of an outcome: when it came about (`at`), but not later than it was reported (`time`). One ahead of
 * the clock would stand as the tool's latest outcome until the clock gets there.
 */
export function timeOf({ at, time }: { at: number; time: number }): number {
  // Logs of earlier releases may hold a report made by a clock that gave no number.
  return Number.isNaN(time) ? at : Math.min(at, time);
}
