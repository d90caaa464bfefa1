import { anObject } from '../check.js';
import { kindOf, shown } from '../describe-value.js';
import { FinchError } from '../errors.js';
import type { NativeCutOptions } from '../native.js';
import { type CutCalibration, checkCutCalibration, thresholdFor } from './calibration.js';
import { type Cut, type CutOptions, dynamicCut } from './dynamic-cut.js';
import { barsOf, countReaching, keepScores } from './keep-scores.js';
import { packagedCut } from './packaged-calibration.js';
import { checkList, type RankedList } from './ranked-list.js';
import { elbowCut, ratioCut, thresholdCut } from './score-cuts.js';

/** Whatever a rule says, at least and at most so many are kept (when there are as many). */
export interface CutBounds {
  /** An integer, 0 or more. */
  readonly minK?: number | undefined;
  /** An integer, 1 or more and at least minK. Default: no bound. */
  readonly maxK?: number | undefined;
}

/** How a ranked list is shortened. */
export type CutRule =
  /** MagicSelector's dynamic top-k, see {@link dynamicCut}. */
  | ({ readonly rule: 'dynamic' } & CutOptions)
  /** Keep the first k. It takes no bounds: `minK` and `maxK` are refused. */
  | { readonly rule: 'fixed'; readonly k: number }
  /** Keep what scores at least `score`; maybe nothing. */
  | ({ readonly rule: 'threshold'; readonly score: number } & CutBounds)
  /** Keep what scores at least `ratio` times the best; in (0, 1]. */
  | ({ readonly rule: 'ratio'; readonly ratio: number } & CutBounds)
  /** Keep what stands before the elbow of the scores (kneedle). `sensitivity` is above 0, default 1. */
  | ({ readonly rule: 'elbow'; readonly sensitivity?: number | undefined } & CutBounds)
  /**
   * Keep as few as a recall target allows, see {@link calibrateCut}. Default calibration: the packaged one, for the default
   * encoder with hybrid retrieval of 50 candidates.
   */
  | ({
      readonly rule: 'calibrated';
      /** One of the calibration's targets. */
      readonly target: number;
      readonly calibration?: CutCalibration | undefined;
    } & CutBounds);

export type CutRuleName = CutRule['rule'];

/** Where a rule cut a list, and by what. */
export interface ListCut {
  readonly rule: CutRuleName;
  /** Tools kept: the first k. */
  readonly k: number;
  /** Tools in the list. */
  readonly n: number;
  /** What was held against the threshold, one number a tool; absent for rules without one. */
  readonly values?: readonly number[];
  /** What values had to reach. */
  readonly threshold?: number;
  /** What the calibrated cut aims for. */
  readonly target?: number;
  /** The gaps that dynamic top-k found. */
  readonly dynamic?: Cut;
}

const names: readonly CutRuleName[] = [
  'dynamic',
  'fixed',
  'threshold',
  'ratio',
  'elbow',
  'calibrated',
];

/** The calibration of a calibrated rule. */
export function calibrationOf(rule: CutRule & { rule: 'calibrated' }): CutCalibration {
  return rule.calibration ?? packagedCut;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_VERSION (a calibration) */
export function checkCutRule(rule: CutRule): void {
  anObject(rule, 'cut');
  if (!names.includes(rule.rule)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `cut.rule is ${shown(rule.rule)}; expected ${names.map((name) => `'${name}'`).join(', ')}.`,
    );
  }
  switch (rule.rule) {
    case 'fixed':
      if (!Number.isInteger(rule.k) || rule.k < 1) {
        throw wrong('k', rule.k, 'an integer number of tools, 1 or more');
      }
      for (const name of ['minK', 'maxK'] as const) {
        const value = (rule as CutBounds)[name];
        if (value !== undefined) throw wrong(name, value, 'none for a fixed cut: k alone says it');
      }
      return;
    // The native side checks these.
    case 'dynamic':
      return;
    case 'threshold':
      if (!Number.isFinite(rule.score)) throw wrong('score', rule.score, 'a finite number');
      break;
    case 'ratio':
      if (!(typeof rule.ratio === 'number' && rule.ratio > 0 && rule.ratio <= 1)) {
        throw wrong('ratio', rule.ratio, 'a number above 0, at most 1');
      }
      break;
    case 'elbow':
      if (
        rule.sensitivity !== undefined &&
        !(Number.isFinite(rule.sensitivity) && rule.sensitivity > 0)
      ) {
        throw wrong('sensitivity', rule.sensitivity, 'a finite number above 0');
      }
      break;
    case 'calibrated': {
      if (rule.calibration !== undefined) checkCutCalibration(rule.calibration, 'cut.calibration');
      thresholdFor(calibrationOf(rule), rule.target);
    }
  }
  checkBounds(rule);
}

function checkBounds({ minK, maxK }: CutBounds): void {
  if (minK !== undefined && !(Number.isInteger(minK) && minK >= 0)) {
    throw wrong('minK', minK, 'an integer, 0 or more');
  }
  if (maxK !== undefined && !(Number.isInteger(maxK) && maxK >= 1 && maxK >= (minK ?? 0))) {
    throw wrong('maxK', maxK, 'an integer, 1 or more and at least minK');
  }
}

function wrong(name: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `cut.${name} is ${kindOf(value)}; expected ${expected}.`,
  );
}

/**
 * Shortens a ranked list by any rule.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE, FINCH_DIMENSION, FINCH_ZERO_VECTOR, FINCH_VERSION
 */
export function cutList(list: RankedList, rule: CutRule): ListCut {
  checkList(list);
  checkCutRule(rule);
  return cutChecked(list, rule);
}

/** {@link cutList} of what is known to be right. */
export function cutChecked(list: RankedList, rule: CutRule): ListCut {
  const { scores } = list;
  const n = scores.length;
  switch (rule.rule) {
    case 'fixed':
      return { rule: 'fixed', k: Math.min(rule.k, n), n };
    case 'dynamic': {
      const { rule: name, ...options } = rule;
      const { cut } = dynamicCut(Float32Array.from(scores), list.embeddings ?? null, options);
      return { rule: name, k: cut.k, n, dynamic: cut };
    }
    case 'threshold': {
      const k = bounded(thresholdCut(scores, rule.score), n, rule, 0);
      return { rule: 'threshold', k, n, values: [...scores], threshold: rule.score };
    }
    case 'ratio': {
      const best = scores[0] ?? 0;
      const k = bounded(ratioCut(scores, rule.ratio), n, rule, 1);
      return { rule: 'ratio', k, n, values: [...scores], threshold: rule.ratio * best };
    }
    case 'elbow':
      return { rule: 'elbow', k: bounded(elbowCut(scores, rule.sensitivity ?? 1), n, rule, 1), n };
    case 'calibrated': {
      const calibration = calibrationOf(rule);
      const { threshold, target } = thresholdFor(calibration, rule.target);
      const bars = barsOf(keepScores(list, calibration.weights));
      const k = bounded(countReaching(bars, threshold), n, rule, 1);
      return { rule: 'calibrated', k, n, values: [...bars], threshold, target };
    }
  }
}

/** The best tool is kept by every rule that judges candidates by their list: whether it fits at all is for abstaining to say. */
function bounded(k: number, n: number, { minK, maxK }: CutBounds, least: number): number {
  return Math.min(n, maxK ?? n, Math.max(k, minK ?? least));
}

function bounds({ minK, maxK }: CutBounds): NativeCutOptions {
  return { ...(minK === undefined ? {} : { minK }), ...(maxK === undefined ? {} : { maxK }) };
}

/** Whether the native ranking cuts by this rule itself. */
export function isNativeRule(
  rule: CutRule,
): rule is CutRule & { readonly rule: 'dynamic' | 'fixed' } {
  return rule.rule === 'dynamic' || rule.rule === 'fixed';
}

/** What the native ranking is told; a fixed k is the dynamic cut held between equal bounds. Other rules cut what it ranked, and
 * bound it where they have no say. */
export function nativeCut(rule: CutRule): NativeCutOptions {
  checkCutRule(rule);
  if (rule.rule === 'fixed') return { minK: rule.k, maxK: rule.k, signals: ['score'] };
  if (rule.rule !== 'dynamic') return bounds(rule);
  const { rule: _, ...options } = rule;
  return options;
}
