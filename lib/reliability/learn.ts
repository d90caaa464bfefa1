import type { BanditState } from './bandit.js';
import type { OutcomeRecord } from './records.js';
import { rewardOf, timeOf } from './reward.js';

/** Applies outcomes to a bandit in their order; those that say nothing of a tool (cancelled) are passed over. */
export function learn(
  bandit: BanditState,
  dimension: number,
  outcomes: readonly OutcomeRecord[],
): void {
  const told = outcomes.filter(({ outcome }) => rewardOf(outcome) !== undefined);
  for (let start = 0; start < told.length; ) {
    // Outcomes with a context and health checks, which have none, go to the bandit by themselves.
    const inContext = hasContext(told[start] as OutcomeRecord);
    let end = start + 1;
    while (end < told.length && hasContext(told[end] as OutcomeRecord) === inContext) end++;
    update(bandit, told.slice(start, end), inContext ? dimension : 0);
    start = end;
  }
}

/** False for a health check's outcome, which belongs to no decision. */
export function hasContext({ x }: OutcomeRecord): boolean {
  return x.length > 0;
}

function update(bandit: BanditState, outcomes: readonly OutcomeRecord[], dimension: number): void {
  const xs = new Float32Array(outcomes.length * dimension);
  for (const [i, { x }] of outcomes.entries()) xs.set(x, i * dimension);
  bandit.update(
    outcomes.map(({ toolId }) => toolId),
    dimension === 0 ? null : xs,
    Float32Array.from(outcomes, ({ prior }) => prior),
    Float32Array.from(outcomes, ({ outcome }) => rewardOf(outcome) ?? 0),
    Float64Array.from(outcomes, timeOf),
  );
}
