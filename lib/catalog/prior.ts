import { aList, anObject, refuse } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { checkTool, type Tool } from './tool.js';

/** Weight of a tool's provenance, in [0, 1], by its source in lower case. */
export type SourceWeights = Readonly<Record<string, number>>;

/** The paper's table: official 1.0; langchain, crewai, llamaindex 0.9; n8n 0.8. */
export const defaultSourceWeights: SourceWeights = Object.freeze({
  official: 1.0,
  langchain: 0.9,
  crewai: 0.9,
  llamaindex: 0.9,
  n8n: 0.8,
});

export interface PriorOptions {
  /** Replaces {@link defaultSourceWeights} altogether; or a function of the tool. */
  readonly sourceWeights?: SourceWeights | ((tool: Tool) => number);
  /** Weight of a source the table does not hold, in [0, 1]. Default 0.6. */
  readonly otherWeight?: number;
  /**
   * Let a tool's own record (`tool.reliability`: uses and success rate, as registries publish them) outweigh the fields:
   * an extension of the paper. Default true; without records nothing changes.
   */
  readonly trackRecord?: boolean;
}

/** Uses that weigh as much as the metadata prior does. */
const priorUses = 20;

/**
 * RATED's metadata prior of every tool: r = 0.5·consistency + 0.3·source + 0.2·quality, in [0, 1], where
 * - consistency = max(0, cos(enc(name), enc(description))),
 * - source = the weight of `tool.source`, that of `official` where `tool.official` is set,
 * - quality = σ(0.6·L_d/median(L_d) + 0.4·L_t/median(L_t) − 1), L_d and L_t the characters (code points) of the
 *   description and of all tags, medians over `tools` (mean of the middle two for an even count); a median of 0 makes
 *   that ratio 0.
 *
 * A tool with a record of n uses at success rate s gets (20·r + n·s) / (20 + n): the mean of a beta prior worth 20 uses,
 * updated by the record. A count of uses without a success rate says nothing of success and is passed over.
 *
 * @param tools the whole catalogue: n tools
 * @param cosineOfNameAndDescription n cosines in [−1, 1], float32; rounding beyond ±1 is clamped
 * @returns n priors, float32
 * @throws FinchError FINCH_DIMENSION for another number of cosines, FINCH_NOT_FINITE for NaN or infinity,
 *   FINCH_INVALID_ARGUMENT for a cosine or weight out of range
 *
 * Source: RATED, the reliability-aware tool selection paper, its metadata prior; the −1 that centres quality is ours.
 */
export function metadataPriors(
  tools: readonly Tool[],
  cosineOfNameAndDescription: Float32Array,
  options: PriorOptions = {},
): Float32Array {
  aList(checkTool)(tools, 'metadata prior: tools');
  anObject(options, 'metadata prior: options');
  if (!(cosineOfNameAndDescription instanceof Float32Array)) {
    refuse(
      cosineOfNameAndDescription,
      'metadata prior: the cosines',
      'a Float32Array, one for each tool',
    );
  }
  const count = tools.length;
  if (cosineOfNameAndDescription.length !== count) {
    throw new FinchError(
      'FINCH_DIMENSION',
      `metadata prior: ${cosineOfNameAndDescription.length} cosines for ${count} tools; give one for each tool, in order`,
    );
  }
  const { trackRecord = true } = options;
  if (typeof trackRecord !== 'boolean') {
    refuse(trackRecord, 'metadata prior: trackRecord', 'true or false');
  }
  const weightOf = sourceWeigher(options);
  const descriptions = tools.map((tool) => characters(tool.description));
  const tags = tools.map((tool) =>
    (tool.tags ?? []).reduce((sum, tag) => sum + characters(tag), 0),
  );
  const medianDescription = median(descriptions);
  const medianTags = median(tags);
  const priors = new Float32Array(count);
  tools.forEach((tool, i) => {
    const cosine = cosineOfNameAndDescription[i] ?? Number.NaN;
    if (!Number.isFinite(cosine)) {
      throw new FinchError(
        'FINCH_NOT_FINITE',
        `metadata prior: cosine ${i} is ${cosine}; a tool without a description has consistency 0, so pass 0 for it`,
      );
    }
    if (Math.abs(cosine) > 1.001) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `metadata prior: cosine ${i} is ${cosine}, expected -1 to 1; normalise the vectors first`,
      );
    }
    const consistency = Math.min(1, Math.max(0, cosine));
    const quality = sigmoid(
      0.6 * ratio(descriptions[i] ?? 0, medianDescription) +
        0.4 * ratio(tags[i] ?? 0, medianTags) -
        1,
    );
    const fromFields = Math.min(1, 0.5 * consistency + 0.3 * weightOf(tool, i) + 0.2 * quality);
    priors[i] = trackRecord ? withRecord(fromFields, tool) : fromFields;
  });
  return priors;
}

function withRecord(prior: number, { reliability }: Tool): number {
  if (reliability?.successRate === undefined) return prior;
  const { uses, successRate } = reliability;
  // defineTool has checked both; a Tool made by hand may hold anything.
  if (!(uses >= 0 && uses < Infinity && successRate >= 0 && successRate <= 1)) return prior;
  // As shares, so that the largest count does not overflow.
  const share = uses / (priorUses + uses);
  return (1 - share) * prior + share * successRate;
}

function sourceWeigher(options: PriorOptions): (tool: Tool, index: number) => number {
  const { sourceWeights = defaultSourceWeights, otherWeight = 0.6 } = options;
  checkWeight(otherWeight, 'otherWeight');
  if (typeof sourceWeights === 'function') {
    return (tool, index) => {
      const weight: unknown = sourceWeights(tool);
      checkWeight(weight, `the source weight of tool ${index}`);
      return weight;
    };
  }
  anObject(sourceWeights, 'metadata prior: sourceWeights');
  const table = new Map<string, number>();
  for (const [source, weight] of Object.entries(sourceWeights)) {
    checkWeight(weight, `the weight of source '${source}'`);
    table.set(source.toLowerCase(), weight);
  }
  return (tool) => {
    const source = tool.official === true ? 'official' : tool.source;
    return table.get(source?.toLowerCase() ?? '') ?? otherWeight;
  };
}

function checkWeight(weight: unknown, what: string): asserts weight is number {
  if (typeof weight !== 'number' || !(weight >= 0 && weight <= 1)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `metadata prior: ${what} is ${kindOf(weight)}, expected a number from 0 to 1`,
    );
  }
}

function characters(text: string): number {
  let points = 0;
  for (const _ of text) points += 1;
  return points;
}

function median(values: readonly number[]): number {
  if (values.length === 0) return 0;
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? 0) + upper) / 2;
}

function ratio(value: number, middle: number): number {
  return middle === 0 ? 0 : value / middle;
}

function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}
