import { FinchError } from '../errors.js';

/** A gold tool of one calibration query: it is kept by every threshold up to `bar`. */
export interface Loss {
  /** +Infinity: always kept. */
  readonly bar: number;
  /** What losing it adds to the query's loss; a query's losses sum to at most 1. */
  readonly loss: number;
}

export interface RiskBound {
  /** The highest threshold that controls the risk; Number.MAX_VALUE where none is too high. */
  readonly threshold: number;
  /** Mean loss over the calibration queries at that threshold. */
  readonly risk: number;
}

/**
 * Conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster 2022, eq. 4): with losses in [0, 1] that can only rise
 * with the threshold, the highest threshold λ with (n·R̂(λ) + 1) / (n + 1) ≤ α has an expected loss of at most α on a new
 * query exchangeable with the n calibration queries.
 *
 * @param losses what each step past its bar costs, of all n queries
 * @param floor mean loss that no threshold avoids (tools that were not retrieved)
 * @returns undefined when even keeping everything is too lossy
 */
export function controlRisk(
  losses: readonly Loss[],
  n: number,
  alpha: number,
  floor: number,
): RiskBound | undefined {
  // The bound on n·R̂; a little slack for the rounding of sums of fractions.
  const allowed = alpha * (n + 1) - 1 + 1e-9;
  let total = n * floor;
  if (total > allowed) return undefined;
  const steps = [...losses].filter(({ bar }) => bar < Infinity).sort((a, b) => a.bar - b.bar);
  let i = 0;
  let controlled = total;
  // A threshold just above a bar loses it: pass whole ties, as long as the sum stays within what is allowed.
  while (i < steps.length) {
    const bar = (steps[i] as Loss).bar;
    let next = i;
    for (; next < steps.length && (steps[next] as Loss).bar === bar; next++) {
      total += (steps[next] as Loss).loss;
    }
    if (total > allowed) return { threshold: bar, risk: controlled / n };
    controlled = total;
    i = next;
  }
  // Finite, so that JSON can hold it.
  return { threshold: Number.MAX_VALUE, risk: controlled / n };
}

/**
 * The lowest mean loss that n queries can vouch for is (n·floor + 1) / (n + 1); this is the n from which it is ≤ α.
 * Infinity: no number of queries will do, since the floor itself is too high.
 */
export function queriesNeeded(alpha: number, floor: number): number {
  return alpha > floor ? Math.ceil((1 - alpha) / (alpha - floor) - 1e-9) : Infinity;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT, saying how many queries are needed, or that the retrieval is the limit */
export function cannotControl(
  what: string,
  target: number,
  n: number,
  floor: number,
  shortlist: number,
): FinchError {
  const needed = queriesNeeded(1 - target, floor);
  const percent = (value: number) => `${(100 * value).toFixed(1)} %`;
  const message =
    needed === Infinity
      ? `a ${what} of ${percent(target)} is out of reach: with all ${shortlist} candidates kept it is ${percent(1 - floor)} on the ${n} calibration queries. Aim lower, retrieve more candidates (shortlist), or count among: 'retrieved'.`
      : `${n} calibration queries cannot vouch for a ${what} of ${percent(target)}: at least ${needed} are needed (keeping everything, ${percent(1 - floor)} is reached on these). Give more queries, or aim lower.`;
  return new FinchError('FINCH_INVALID_ARGUMENT', message);
}
