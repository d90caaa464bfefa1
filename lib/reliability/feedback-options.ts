import { aFunction, aString, optional } from '../check.js';
import { kindOf, shown } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { Bandit, type BanditOptions, type BanditState } from './bandit.js';
import type { SyncPolicy } from './feedback-log.js';

export interface FeedbackOptions<B extends BanditState = Bandit> {
  bandit: BanditOptions;
  /**
   * The encoder's `model`: contexts of another model are another space, and a folder written with one refuses the other.
   */
  model?: string | undefined;
  /** When a report counts as stored; default `'each'`. */
  sync?: SyncPolicy | undefined;
  /** Decisions kept for reports to come, the oldest forgotten first; default 10,000. */
  maxDecisions?: number | undefined;
  /** Reports remembered to recognise repetitions; default 100,000. */
  maxReports?: number | undefined;
  /** For how long, in milliseconds; default 7 days. */
  reportAgeMs?: number | undefined;
  /** Bytes of log after which a snapshot is written and the log begun anew; default 64 MiB. */
  compactBytes?: number | undefined;
  /** After the disk refused: milliseconds until it is tried again, at the next report; default 30,000. */
  retryMs?: number | undefined;
  /**
   * What to do about damage that is not an interrupted write. `'fail'` (default): FINCH_CORRUPT. `'cut'`: keep what is
   * before it, set the damaged files aside, and say so in `health().recovered`.
   */
  onCorruption?: 'fail' | 'cut' | undefined;
  /** Makes the bandit; the native one when left out. */
  createBandit?: ((options: BanditOptions) => B) | undefined;
  /**
   * Unix milliseconds, finite; default `Date.now`. What gives anything else fails the call that asked. It may step back:
   * see `FeedbackStore.now`.
   */
  now?: (() => number) | undefined;
}

export interface FeedbackLimits {
  maxDecisions: number;
  maxReports: number;
  reportAgeMs: number;
  compactBytes: number;
  retryMs: number;
}

const defaults: FeedbackLimits = {
  maxDecisions: 10_000,
  maxReports: 100_000,
  reportAgeMs: 7 * 24 * 3600 * 1000,
  compactBytes: 64 * 1024 * 1024,
  retryMs: 30_000,
};

/** The limits with their defaults. @throws FinchError FINCH_INVALID_ARGUMENT. */
export function feedbackLimits<B extends BanditState>(options: FeedbackOptions<B>): FeedbackLimits {
  if (typeof options?.bandit !== 'object' || options.bandit === null) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'options.bandit is missing; expected { bandit: { dimension: encoder.dimension } }',
    );
  }
  optional(aString)(options.model, 'options.model');
  optional(aFunction)(options.createBandit, 'options.createBandit');
  const limits = { ...defaults };
  for (const name of Object.keys(defaults) as Array<keyof FeedbackLimits>) {
    const value = options[name] ?? defaults[name];
    const least = name === 'retryMs' ? 0 : 1;
    if (!Number.isSafeInteger(value) || value < least) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name} is ${kindOf(value)}; expected a whole number of at least ${least}`,
      );
    }
    limits[name] = value;
  }
  const { sync = 'each', onCorruption = 'fail' } = options;
  const interval = typeof sync === 'object' && sync !== null ? sync.intervalMs : undefined;
  const isInterval =
    Number.isInteger(interval) && (interval ?? 0) >= 1 && (interval ?? 0) < 2 ** 31;
  if (sync !== 'each' && sync !== 'none' && !isInterval) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `sync is ${shown(sync)}; expected 'each', 'none' or { intervalMs: whole milliseconds }`,
    );
  }
  if (onCorruption !== 'fail' && onCorruption !== 'cut') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `onCorruption is ${shown(onCorruption)}; expected 'fail' or 'cut'`,
    );
  }
  return limits;
}

/** The bandit that the options ask for. */
export function makeBandit<B extends BanditState>(options: FeedbackOptions<B>): B {
  const create =
    options.createBandit ??
    // Without createBandit, B is its default, Bandit.
    ((bandit: BanditOptions) => new Bandit(bandit) as unknown as B);
  return create(options.bandit);
}

/** What stored feedback depends on; its defaults are those of `toolfinch.h`. */
export function feedbackMeta(bandit: BanditOptions, model: string | undefined): string {
  const { dimension, form = 'calibrated', lambda = 1, gamma = 0.95 } = bandit;
  return JSON.stringify({ dimension, form, lambda, gamma, model: model ?? null });
}

/**
 * Refuses feedback written for another dimension, model or rule: it would be learnt from wrongly.
 *
 * @throws FinchError FINCH_DIMENSION, FINCH_INVALID_ARGUMENT.
 */
export function checkMeta(stored: string, expected: string, file: string): void {
  if (stored === expected) return;
  const was = parseMeta(stored);
  const is = parseMeta(expected);
  for (const name of Object.keys(is)) {
    // A side that names no model takes whatever the other has.
    if (was[name] === is[name] || (name === 'model' && (was[name] === null || is[name] === null))) {
      continue;
    }
    throw new FinchError(
      name === 'dimension' ? 'FINCH_DIMENSION' : 'FINCH_INVALID_ARGUMENT',
      `${file} was written with ${name} ${JSON.stringify(was[name])}, and is opened with ` +
        `${JSON.stringify(is[name])}; open it as it was written, or use another folder`,
    );
  }
}

function parseMeta(text: string): Record<string, unknown> {
  try {
    const meta: unknown = JSON.parse(text);
    return typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
