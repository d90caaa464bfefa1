import { FinchError } from '../errors.js';
import { ByteReader, ByteWriter } from './bytes.js';
import { type Outcome, outcomes } from './reward.js';

/** What was offered and in which context, so that an outcome can be learnt from later. */
export interface DecisionRecord {
  type: 'decision';
  id: string;
  /** Unix milliseconds. */
  time: number;
  /** The query's unit vector: dimension floats. */
  x: Float32Array;
  toolIds: readonly string[];
  /** r of each tool, in [0, 1]. */
  priors: Float32Array;
}

/** An accepted report. It carries its context, so that it can be applied though its decision be forgotten. */
export interface OutcomeRecord {
  type: 'outcome';
  decisionId: string;
  toolId: string;
  outcome: Outcome;
  /** When the tool ended: the bandit's `now`. */
  at: number;
  /** When the report was accepted. */
  time: number;
  prior: number;
  /** Empty for a health check, which belongs to no decision. */
  x: Float32Array;
}

/** Tools whose arms were forgotten. */
export interface DropRecord {
  type: 'drop';
  time: number;
  toolIds: readonly string[];
}

export type FeedbackRecord = DecisionRecord | OutcomeRecord | DropRecord;

const typeBytes = { decision: 1, outcome: 2, drop: 3 } as const;

export function encodeRecord(record: FeedbackRecord): Buffer {
  const writer = new ByteWriter(record.type === 'drop' ? 256 : 512 + record.x.length * 4);
  writer.u8(typeBytes[record.type]).f64(record.time);
  switch (record.type) {
    case 'decision':
      writer.string(record.id).u32(record.x.length).floats(record.x).u32(record.toolIds.length);
      for (const id of record.toolIds) writer.string(id);
      writer.floats(record.priors);
      break;
    case 'outcome':
      writer
        .f64(record.at)
        .u8(outcomes.indexOf(record.outcome))
        .string(record.decisionId)
        .string(record.toolId)
        .f32(record.prior)
        .u32(record.x.length)
        .floats(record.x);
      break;
    case 'drop':
      writer.u32(record.toolIds.length);
      for (const id of record.toolIds) writer.string(id);
      break;
  }
  return writer.done();
}

/** @throws FinchError FINCH_CORRUPT, FINCH_VERSION (a record type of a later release). */
export function decodeRecord(payload: Buffer): FeedbackRecord {
  const reader = new ByteReader(payload);
  try {
    const record = readRecord(reader);
    if (reader.left > 0) throw new RangeError(`${reader.left} bytes too many`);
    return record;
  } catch (cause) {
    if (cause instanceof FinchError) throw cause;
    throw new FinchError(
      'FINCH_CORRUPT',
      `a feedback record is malformed: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

function readRecord(reader: ByteReader): FeedbackRecord {
  const type = reader.u8();
  const time = reader.f64();
  switch (type) {
    case typeBytes.decision: {
      const id = reader.string();
      const x = reader.floats(reader.u32());
      const toolIds = readStrings(reader);
      return { type: 'decision', id, time, x, toolIds, priors: reader.floats(toolIds.length) };
    }
    case typeBytes.outcome: {
      const at = reader.f64();
      const outcome = outcomes[reader.u8()];
      if (outcome === undefined) throw new RangeError('an outcome this release does not know');
      const decisionId = reader.string();
      const toolId = reader.string();
      const prior = reader.f32();
      const x = reader.floats(reader.u32());
      return { type: 'outcome', decisionId, toolId, outcome, at, time, prior, x };
    }
    case typeBytes.drop:
      return { type: 'drop', time, toolIds: readStrings(reader) };
    default:
      throw new FinchError(
        'FINCH_VERSION',
        `a feedback record has type ${type}, which this release does not know; open the folder with a later one`,
      );
  }
}

function readStrings(reader: ByteReader): string[] {
  const count = reader.u32();
  // Each takes at least its length field: a wild count must not allocate.
  if (count * 4 > reader.left) throw new RangeError(`${count} strings in ${reader.left} bytes`);
  return Array.from({ length: count }, () => reader.string());
}
