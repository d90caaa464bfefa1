import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { FinchError } from '../../errors.js';
import { EvictionQueue } from '../../eviction-queue.js';
import type { BanditState } from '../bandit.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import { checkContext, checkId, checkPriors, checkTime } from '../check-feedback.js';
import { reportKey } from '../decision-window.js';
import { reasonOf } from '../files.js';
import { hasContext, learn } from '../learn.js';
import { decodeRecord, type FeedbackRecord, type OutcomeRecord } from '../records.js';
import { maxOrigins } from './scripts.js';
import { chainAfter, type StreamEntry } from './stream-entry.js';

const magic = Buffer.from('FINCHRPL', 'latin1');
const version = 2;
const keyBytes = 16;

/** How far an origin's records are in, and the number that the latest of them has in the stream. */
export interface Origin {
  sequence: number;
  count: number;
}

export interface WindowLimits {
  maxReports: number;
  reportAgeMs: number;
}

/** The stream does not go on from where this state is. */
export class Diverged extends Error {}

/**
 * What the records of a catalogue's stream up to `count` amount to. A function of those records alone: whoever applied
 * the same has the same, to the bit.
 */
export class ReplicatedState<B extends BanditState> {
  readonly bandit: B;
  /** The history that `count` counts in; empty before the first. */
  epoch = '';
  count = 0;
  chain = '';
  /** When Redis took the latest record, Unix milliseconds. */
  time = 0;
  /** Records that told what had been told before, or that were malformed: read, and without effect. */
  duplicates = 0;
  refused = 0;
  readonly origins = new Map<string, Origin>();
  readonly #dimension: number;
  readonly #limits: WindowLimits;
  /** When each report came, by its key's digest. */
  readonly #reports = new Map<string, number>();
  readonly #reportOrder = new EvictionQueue<string>();
  readonly #emptyBandit: Uint8Array;

  /** @param bandit one that has learnt nothing yet. */
  constructor(bandit: B, dimension: number, limits: WindowLimits) {
    this.bandit = bandit;
    this.#emptyBandit = bandit.serialize();
    this.#dimension = dimension;
    this.#limits = limits;
  }

  get reports(): number {
    return this.#reports.size;
  }

  hasReport(decisionId: string, toolId: string): boolean {
    return this.#reports.has(digestOf(decisionId, toolId));
  }

  /** Begins anew. */
  reset(epoch: string): void {
    this.bandit.deserialize(this.#emptyBandit);
    this.#forget();
    Object.assign(this, { epoch, count: 0, chain: epoch, time: 0, duplicates: 0, refused: 0 });
  }

  /**
   * Applies entries in their order.
   *
   * @throws Diverged when they do not follow on what was applied, FinchError FINCH_VERSION (a later release's record):
   *   then nothing has changed. What the bandit throws (no memory): then all is forgotten, and a snapshot is to be loaded.
   */
  apply(entries: readonly StreamEntry[]): void {
    let { count, chain } = this;
    const records = entries.map((entry) => {
      if (entry.count !== count + 1) {
        throw new Diverged(`record ${count + 1} is due and ${entry.count} came`);
      }
      if (chainAfter(chain, entry) !== entry.chain) {
        throw new Diverged(`record ${entry.count} is of another history`);
      }
      ({ count, chain } = entry);
      return this.#decode(entry.record);
    });
    try {
      this.#take(entries, records);
    } catch (error) {
      // The bandit refused (no memory): what was applied in part is worth nothing.
      this.reset('');
      throw error;
    }
    this.count = count;
    this.chain = chain;
  }

  /** Everything but the epoch, as bytes. */
  encode(): Buffer[] {
    const head = new ByteWriter(64 * 1024).bytes(magic).u32(version);
    head.u64(this.count).string(this.chain).f64(this.time).u64(this.duplicates).u64(this.refused);
    head.u32(this.origins.size);
    for (const [id, { sequence, count }] of this.origins) head.string(id).u64(sequence).u64(count);
    head.u32(this.#reports.size);
    for (const [key, time] of this.#reports) head.bytes(Buffer.from(key, 'latin1')).f64(time);
    const bandit = this.bandit.serialize();
    head.u64(bandit.byteLength);
    const parts = [head.done(), Buffer.from(bandit.buffer, bandit.byteOffset, bandit.byteLength)];
    let checksum = 0;
    for (const part of parts) checksum = crc32(part, checksum);
    return [...parts, new ByteWriter(4).u32(checksum).done()];
  }

  /** SHA-256 of {@link encode}: equal where the states are. */
  checksum(): string {
    const hash = createHash('sha256');
    for (const part of this.encode()) hash.update(part);
    return hash.digest('hex');
  }

  /** Takes over what {@link encode} gave. @throws FinchError FINCH_CORRUPT, FINCH_VERSION: then nothing has changed. */
  load(epoch: string, bytes: Buffer, where: string): void {
    const corrupt = (why: string, cause?: unknown) =>
      new FinchError('FINCH_CORRUPT', `the replicas' snapshot in ${where} is corrupt: ${why}`, {
        cause,
      });
    if (bytes.length < 16 || !bytes.subarray(0, 8).equals(magic)) {
      throw corrupt('it does not begin as one');
    }
    if (crc32(bytes.subarray(0, -4)) !== bytes.readUInt32LE(bytes.length - 4)) {
      throw corrupt('its checksum differs');
    }
    const found = bytes.readUInt32LE(8);
    if (found !== version) {
      throw new FinchError(
        'FINCH_VERSION',
        `the replicas' snapshot in ${where} has version ${found}; this release reads version ${version}. Run the ` +
          'same release in all replicas',
      );
    }
    const origins: Array<[string, Origin]> = [];
    const reports: Array<[string, number]> = [];
    let counters: {
      count: number;
      chain: string;
      time: number;
      duplicates: number;
      refused: number;
    };
    let bandit: Buffer;
    try {
      const reader = new ByteReader(bytes.subarray(0, -4), 12);
      const count = reader.u64();
      const chain = reader.string();
      const time = reader.f64();
      counters = { count, chain, time, duplicates: reader.u64(), refused: reader.u64() };
      for (let left = reader.u32(); left > 0; left--) {
        const id = reader.string();
        origins.push([id, { sequence: reader.u64(), count: reader.u64() }]);
      }
      for (let left = reader.u32(); left > 0; left--) {
        reports.push([reader.bytes(keyBytes).toString('latin1'), reader.f64()]);
      }
      bandit = reader.bytes(reader.u64());
      if (reader.left > 0) throw new RangeError(`${reader.left} bytes too many`);
    } catch (cause) {
      throw corrupt(reasonOf(cause), cause);
    }
    this.bandit.deserialize(bandit);
    this.#forget();
    for (const [id, origin] of origins) this.origins.set(id, origin);
    for (const [key, time] of reports) {
      this.#reports.set(key, time);
      this.#reportOrder.push(key);
    }
    Object.assign(this, { epoch, ...counters });
  }

  #take(entries: readonly StreamEntry[], records: ReadonlyArray<FeedbackRecord | undefined>): void {
    const outcomes: OutcomeRecord[] = [];
    for (const [i, entry] of entries.entries()) {
      const sequence = Number(entry.sequence);
      const time = Number(entry.time);
      const known = this.origins.get(entry.origin);
      const record = records[i];
      if (record === undefined) this.refused++;
      else if (sequence <= (known?.sequence ?? 0)) this.duplicates++;
      else if (record.type === 'outcome' && !hasContext(record)) {
        outcomes.push({ ...record, at: Math.min(record.at, time) });
      } else if (record.type === 'outcome') {
        const key = digestOf(record.decisionId, record.toolId);
        if (this.#reports.has(key)) this.duplicates++;
        else {
          this.#remember(key, time);
          // No replica's clock reaches past the one that all share.
          outcomes.push({ ...record, at: Math.min(record.at, time) });
        }
      } else if (record.type === 'drop') {
        learn(this.bandit, this.#dimension, outcomes.splice(0));
        this.bandit.drop(record.toolIds);
      }
      this.#advance(entry.origin, Math.max(sequence, known?.sequence ?? 0), entry.count);
      this.time = time;
    }
    learn(this.bandit, this.#dimension, outcomes);
  }

  /** A record that is whole and fits the bandit; undefined for any other, the same in every replica. */
  #decode(bytes: Buffer): FeedbackRecord | undefined {
    try {
      const record = decodeRecord(bytes);
      if (record.type === 'outcome') {
        checkId(record.toolId, 'toolId');
        // A health check has neither.
        if (record.decisionId !== '' || hasContext(record)) {
          checkId(record.decisionId, 'decisionId');
          checkContext(record.x, this.#dimension);
        }
        checkPriors(Float32Array.of(record.prior), 1);
        checkTime(record.at, 'at');
        checkTime(record.time, 'time');
      } else if (record.type === 'drop') {
        for (const id of record.toolIds) checkId(id, 'toolIds');
      }
      return record.type === 'decision' ? undefined : record;
    } catch (error) {
      // A later release learns something from it that this one would miss.
      if (error instanceof FinchError && error.code === 'FINCH_VERSION') throw error;
      return undefined;
    }
  }

  #remember(key: string, time: number): void {
    this.#reports.set(key, time);
    this.#reportOrder.push(key);
    const since = time - this.#limits.reportAgeMs;
    for (let next = this.#reportOrder.oldest; next !== undefined; next = this.#reportOrder.oldest) {
      const isOld = (this.#reports.get(next) ?? since) < since;
      if (this.#reports.size <= this.#limits.maxReports && !isOld) break;
      this.#reports.delete(next);
      this.#reportOrder.shift();
    }
  }

  #advance(origin: string, sequence: number, count: number): void {
    this.origins.set(origin, { sequence, count });
    if (this.origins.size <= maxOrigins) return;
    let oldest: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const [id, known] of this.origins) {
      if (known.count < least) {
        oldest = id;
        least = known.count;
      }
    }
    if (oldest !== undefined) this.origins.delete(oldest);
  }

  #forget(): void {
    this.origins.clear();
    this.#reports.clear();
    this.#reportOrder.clear();
  }
}

function digestOf(decisionId: string, toolId: string): string {
  return createHash('sha256')
    .update(reportKey(decisionId, toolId))
    .digest()
    .subarray(0, keyBytes)
    .toString('latin1');
}
