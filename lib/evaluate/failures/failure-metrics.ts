import type { RunRecord } from './run.js';
import type { Protocol } from './scenario.js';

/** SR: share of steps whose selected tool is right and available, over steps from … to (from 1, both included). */
export function successRate(
  { success }: Pick<RunRecord, 'success'>,
  from: number,
  to: number,
): number {
  return share(success, from, to);
}

/** FSR: share of steps whose selected tool was unavailable. */
export function failedSelectionRate(
  { failed }: Pick<RunRecord, 'failed'>,
  from: number,
  to: number,
): number {
  return share(failed, from, to);
}

function share(flags: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let i = from - 1; i < to; i++) sum += flags[i] as number;
  return sum / (to - from + 1);
}

/** The success rate over the last `trailing` steps, by step − 1; steps before the first whole window have NaN. */
export function trailingRate(flags: Uint8Array, trailing: number): Float64Array {
  const rates = new Float64Array(flags.length).fill(Number.NaN);
  let sum = 0;
  for (let i = 0; i < flags.length; i++) {
    sum += flags[i] as number;
    if (i >= trailing) sum -= flags[i - trailing] as number;
    if (i >= trailing - 1) rates[i] = sum / trailing;
  }
  return rates;
}

/**
 * AS: the first step after the onset, counted from it, at which SR over the trailing window reaches `theta` times its
 * peak before the onset; undefined when it never does. Right after the onset the window still holds steps from before:
 * with `wholeWindows`, only windows that lie after the onset count.
 */
export function adaptationSteps(
  record: Pick<RunRecord, 'success'>,
  { onset, trailing }: Pick<Protocol, 'onset' | 'trailing'>,
  theta: number,
  wholeWindows = false,
): number | undefined {
  const rates = trailingRate(record.success, trailing);
  let peak = 0;
  for (let i = trailing - 1; i < onset; i++) peak = Math.max(peak, rates[i] as number);
  for (let i = wholeWindows ? onset + trailing - 1 : onset; i < rates.length; i++) {
    if ((rates[i] as number) >= theta * peak) return i + 1 - onset;
  }
  return undefined;
}

/**
 * Steps after `from` until a method has caught up with a reference on the same stream: the first n for which its SR over
 * the `window` steps that follow is at most `within` below the reference's; undefined when it never is.
 */
export function stepsToCatchUp(
  success: readonly Uint8Array[],
  reference: readonly Uint8Array[],
  { from, window, within }: { from: number; window: number; within: number },
): number | undefined {
  const steps = success[0]?.length ?? 0;
  const behind = new Float64Array(steps + 1);
  for (let i = 0; i < steps; i++) {
    let difference = 0;
    for (const [run, flags] of success.entries()) {
      difference += (reference[run]?.[i] as number) - (flags[i] as number);
    }
    behind[i + 1] = (behind[i] as number) + difference / success.length;
  }
  for (let start = from; start + window <= steps; start++) {
    const mean = ((behind[start + window] as number) - (behind[start] as number)) / window;
    if (mean <= within) return start - from;
  }
  return undefined;
}

/** A mean over runs and its sample standard deviation (0 for one run). */
export interface Spread {
  readonly mean: number;
  readonly sd: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length < 2) return { mean, sd: 0 };
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, sd: Math.sqrt(square / (values.length - 1)) };
}

/** Steps from the return of the tools at `from` until SR over 500 steps is within 1 point of the reference's; null: never. */
export function catchUpOf(
  runs: ReadonlyArray<{ readonly success: Uint8Array }>,
  reference: ReadonlyArray<{ readonly success: Uint8Array }>,
  from: number,
): number | null {
  const flags = (records: ReadonlyArray<{ readonly success: Uint8Array }>) =>
    records.map(({ success }) => success);
  return stepsToCatchUp(flags(runs), flags(reference), { from, window: 500, within: 0.01 }) ?? null;
}
