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
        `outcome is ${JSON.stringify(outcome)}; expected 'success', 'error', 'timeout' or 'cancelled'`,
      );
  }
}
