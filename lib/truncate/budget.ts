import { aList, aNumber, anObject, fields } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';

export interface Budget {
  /** At most this many tools; an integer, 1 or more. */
  maxTools?: number;
  /** At most this many prompt tokens of tool definitions, in all; more than 0. */
  maxTokens?: number;
}

export interface Costed {
  readonly id: string;
  /** Prompt tokens of the tool's definition. */
  readonly tokens: number;
}

const someTools = aList(fields({ tokens: aNumber }));

/** @throws FinchError FINCH_INVALID_ARGUMENT */
export function checkBudget(budget: Budget): void {
  anObject(budget, 'budget');
  const { maxTools, maxTokens } = budget;
  if (maxTools !== undefined && !(Number.isInteger(maxTools) && maxTools >= 1)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `maxTools is ${kindOf(maxTools)}; expected an integer, 1 or more. Leave it out for no limit.`,
    );
  }
  if (maxTokens !== undefined && !(typeof maxTokens === 'number' && maxTokens > 0)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `maxTokens is ${kindOf(maxTokens)}; expected a number above 0. Leave it out for no limit.`,
    );
  }
}

/**
 * Fits a ranked list into a budget, best first: a tool that does not fit is left out whole and the next smaller one gets its
 * chance. Tools in `pinned` are charged first and always kept.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT
 */
export function withinBudget<T extends Costed>(
  pinned: readonly T[],
  ranked: readonly T[],
  budget: Budget,
): { kept: T[]; overBudget: T[] } {
  someTools(pinned, 'pinned');
  someTools(ranked, 'ranked');
  checkBudget(budget);
  let tools = budget.maxTools ?? Number.POSITIVE_INFINITY;
  let tokens = budget.maxTokens ?? Number.POSITIVE_INFINITY;
  for (const tool of pinned) {
    tools -= 1;
    tokens -= tool.tokens;
  }
  const kept: T[] = [];
  const overBudget: T[] = [];
  for (const tool of ranked) {
    if (tools >= 1 && tool.tokens <= tokens) {
      tools -= 1;
      tokens -= tool.tokens;
      kept.push(tool);
    } else {
      overBudget.push(tool);
    }
  }
  return { kept, overBudget };
}
