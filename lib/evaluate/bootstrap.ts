import { aList, aNumber, anObject } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { mulberry32 } from './random.js';

/** A mean with its bootstrap confidence interval: low <= mean <= high for all but very skewed samples. */
export interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

export interface BootstrapOptions {
  /** Integer, 1 or more. Default 1,000. */
  readonly resamples?: number | undefined;
  /** In (0, 1). Default 0.95. */
  readonly confidence?: number | undefined;
  /** Any integer; the same seed gives the same interval. Default 1. */
  readonly seed?: number | undefined;
}

const someNumbers = aList(aNumber);

/**
 * Means with percentile bootstrap intervals (Efron 1979). Rows are resampled whole, so the columns of one call share
 * their resamples. To compare two methods on the same queries, pass the differences as a column: the methods differ
 * at the given confidence when the interval leaves out 0.
 *
 * Takes columns × rows × resamples additions, on the calling thread.
 *
 * @param columns one array a metric, all of one length >= 1, finite
 * @throws FinchError FINCH_INVALID_ARGUMENT (no rows, unequal lengths, options), FINCH_NOT_FINITE
 */
export function bootstrapMeans(
  columns: readonly (readonly number[])[],
  options: BootstrapOptions = {},
): Estimate[] {
  aList(someNumbers)(columns, 'bootstrapMeans: columns');
  anObject(options, 'bootstrapMeans: options');
  const { resamples = 1000, confidence = 0.95, seed = 1 } = options;
  if (!Number.isInteger(resamples) || resamples < 1)
    throw wrong('resamples', resamples, '1 or more');
  if (typeof confidence !== 'number' || !(confidence > 0 && confidence < 1))
    throw wrong('confidence', confidence, 'above 0, below 1');
  if (!Number.isSafeInteger(seed)) throw wrong('seed', seed, 'an integer');
  const rows = columns[0]?.length ?? 0;
  if (columns.length > 0 && rows === 0) throw wrong('the number of rows', 0, '1 or more');
  for (const column of columns) {
    if (column.length !== rows) throw wrong('the length of a column', column.length, `${rows}`);
    const bad = column.find((value) => !Number.isFinite(value));
    if (bad !== undefined) {
      throw new FinchError(
        'FINCH_NOT_FINITE',
        `bootstrapMeans: a value is ${bad}, expected a number`,
      );
    }
  }

  const random = mulberry32(seed);
  const drawn = new Uint32Array(rows);
  const means = columns.map(() => new Float64Array(resamples));
  for (let r = 0; r < resamples; r++) {
    for (let i = 0; i < rows; i++) drawn[i] = Math.floor(random() * rows);
    for (const [c, column] of columns.entries()) {
      let sum = 0;
      for (let i = 0; i < rows; i++) sum += column[drawn[i] as number] as number;
      (means[c] as Float64Array)[r] = sum / rows;
    }
  }
  const tail = (1 - confidence) / 2;
  return columns.map((column, c) => {
    const sorted = (means[c] as Float64Array).sort();
    let sum = 0;
    for (const value of column) sum += value;
    return { mean: sum / rows, low: quantile(sorted, tail), high: quantile(sorted, 1 - tail) };
  });
}

/** The quantile by linear interpolation between order statistics. */
function quantile(sorted: Float64Array, q: number): number {
  const at = q * (sorted.length - 1);
  const below = sorted[Math.floor(at)] as number;
  const above = sorted[Math.ceil(at)] as number;
  return below + (above - below) * (at - Math.floor(at));
}

function wrong(what: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `bootstrapMeans: ${what} is ${kindOf(value)}; expected ${expected}`,
  );
}
