import { aList, anObject, aString, fields, optional, refuse, rule } from '../check.js';
import { shown } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { checkWeights, type KeepWeights } from './keep-scores.js';

/** What made the ranked lists a calibration was computed from. It holds for that pipeline only. */
export interface Pipeline {
  /** The encoder's `model`. */
  readonly encoder: string;
  /** `hybrid`, `dense` or `lexical`. */
  readonly method: string;
  /** Candidates in a list; a smaller catalogue gives fewer. */
  readonly shortlist: number;
  /** The reranker's name, when the scores are a reranker's. */
  readonly reranker?: string | undefined;
  /** How many retrieved tools the reranker is given at most (`rerank.candidates`); with a reranker alone. */
  readonly candidates?: number | undefined;
}

/** What a target counts: the mean share of gold tools kept, or the share of queries with all of them kept. */
export type CutMeasure = 'recall' | 'completeness';

/** Of which tools: all that are gold, or those of them that are among the candidates. */
export type CutAmong = 'all' | 'retrieved';

export interface CutThreshold {
  /** In (0, 1). */
  readonly target: number;
  /** Candidates are kept while their keep score reaches it. */
  readonly threshold: number;
  /** What the calibration queries got with it. */
  readonly reached: number;
  /** Tools kept per calibration query, on average. */
  readonly meanK: number;
}

/** Thresholds of the calibrated cut, made by `calibrateCut`: plain data, for JSON. */
export interface CutCalibration {
  readonly kind: 'cut';
  readonly version: 1;
  readonly pipeline: Pipeline;
  readonly measure: CutMeasure;
  readonly among: CutAmong;
  readonly weights: KeepWeights;
  /** Labelled queries it rests on. */
  readonly queries: number;
  /** Ascending by target, one or more. */
  readonly thresholds: readonly CutThreshold[];
}

/** The threshold of abstaining, made by `calibrateAbstention`: plain data, for JSON. */
export interface AbstentionCalibration {
  readonly kind: 'abstention';
  readonly version: 1;
  readonly pipeline: Pipeline;
  /** At most this share of answerable queries gets no tool. */
  readonly falseAbstention: number;
  /** Nothing is chosen when a list's answerability is below it. */
  readonly threshold: number;
  /** Labelled queries it rests on. */
  readonly queries: number;
}

export const aShare = rule(
  (value) => typeof value === 'number' && value > 0 && value < 1,
  'a number between 0 and 1',
);
const aFinite = rule((value) => Number.isFinite(value), 'a finite number');
const aCount = rule(
  (value) => Number.isSafeInteger(value) && (value as number) >= 1,
  'an integer, 1 or more',
);

const aPipeline = fields({
  encoder: aString,
  method: aString,
  shortlist: aCount,
  reranker: optional(aString),
  candidates: optional(aCount),
});

/** A pipeline's own parts, of an object that may hold more. */
export function pipelineParts(pipeline: Pipeline): Pipeline {
  const { encoder, method, shortlist, reranker, candidates } = pipeline;
  const parts = { encoder, method, shortlist };
  return reranker === undefined ? parts : { ...parts, reranker, candidates };
}

/** @throws FinchError FINCH_INVALID_ARGUMENT */
export function checkPipeline(pipeline: Pipeline, name: string): void {
  aPipeline(pipeline, name);
  const { reranker, candidates } = pipeline;
  if ((reranker === undefined) === (candidates === undefined)) return;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    reranker === undefined
      ? `${name} has candidates and no reranker; expected both or neither, as labelledLists gives them`
      : `${name} has the reranker ${shown(reranker)} and no candidates; expected how many tools the reranker was given, as labelledLists gives them`,
  );
}

const aThreshold = fields({ target: aShare, threshold: aFinite, reached: aFinite, meanK: aFinite });
export const aMeasure = rule(
  (value) => value === 'recall' || value === 'completeness',
  "'recall' or 'completeness'",
);
export const anAmong = rule(
  (value) => value === 'all' || value === 'retrieved',
  "'all' or 'retrieved'",
);
const aCutCalibration = fields({
  pipeline: aPipeline,
  measure: aMeasure,
  among: anAmong,
  queries: aCount,
  thresholds: aList(aThreshold),
});
const anAbstention = fields({
  pipeline: aPipeline,
  falseAbstention: aShare,
  threshold: aFinite,
  queries: aCount,
});

/** @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_VERSION */
export function checkCutCalibration(calibration: CutCalibration, name: string): void {
  checkKind(calibration, 'cut', 'calibrateCut', name);
  aCutCalibration(calibration, name);
  checkPipeline(calibration.pipeline, `${name}.pipeline`);
  checkWeights(calibration.weights, `${name}.weights`);
  const { thresholds } = calibration;
  if (thresholds.length === 0) refuse(thresholds, `${name}.thresholds`, 'one or more thresholds');
  thresholds.forEach(({ target, threshold }, i) => {
    const before = thresholds[i - 1];
    if (before !== undefined && !(target > before.target && threshold <= before.threshold)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name}.thresholds[${i}] does not follow the one before it; expected rising targets and thresholds that never rise. Use the object as calibrateCut made it.`,
      );
    }
  });
}

/** @throws FinchError FINCH_INVALID_ARGUMENT, FINCH_VERSION */
export function checkAbstention(calibration: AbstentionCalibration, name: string): void {
  checkKind(calibration, 'abstention', 'calibrateAbstention', name);
  anAbstention(calibration, name);
  checkPipeline(calibration.pipeline, `${name}.pipeline`);
}

function checkKind(calibration: unknown, kind: string, maker: string, name: string): void {
  anObject(calibration, name);
  const given = calibration as { kind?: unknown; version?: unknown };
  if (given.kind !== kind) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${name}.kind is ${shown(given.kind)}; expected '${kind}', a calibration made by ${maker}`,
    );
  }
  if (given.version !== 1) {
    throw new FinchError(
      'FINCH_VERSION',
      `${name}.version is ${shown(given.version)}; this release reads version 1. Make it anew with ${maker}.`,
    );
  }
}

/**
 * The threshold for a target.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT: not calibrated for it, naming the targets there are
 */
export function thresholdFor(calibration: CutCalibration, target: number): CutThreshold {
  const found = calibration.thresholds.find((each) => each.target === target);
  if (found !== undefined) return found;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `cut.target is ${shown(target)}, which this calibration has no threshold for; it has ${calibration.thresholds.map((each) => each.target).join(', ')}. Take one of them, or calibrate for it.`,
  );
}

/**
 * A calibration says nothing about lists that were made differently.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT, saying in what they differ
 */
export function checkSamePipeline(calibrated: Pipeline, used: Pipeline, name: string): void {
  for (const part of ['encoder', 'method', 'shortlist', 'reranker', 'candidates'] as const) {
    if (calibrated[part] === used[part]) continue;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${name} was made for the ${part} ${shown(calibrated[part] ?? 'none')}, and the list is made with ${shown(used[part] ?? 'none')}. Calibrate on lists of this pipeline (labelledLists, then ${name === 'abstain' ? 'calibrateAbstention' : 'calibrateCut'}), or set the pipeline to it.`,
    );
  }
}
