import path from 'node:path';
import { FinchError } from '../../errors.js';
import { DecisionWindow, type WindowLimits } from '../decision-window.js';
import { FeedbackLog, type SyncPolicy } from '../feedback-log.js';
import { checkMeta } from '../feedback-options.js';
import { reasonOf } from '../files.js';
import { hasContext } from '../learn.js';
import { type Recovery, setAside } from '../log-replay.js';
import { type DropRecord, decodeRecord, encodeRecord, type OutcomeRecord } from '../records.js';
import { type ReadSnapshot, readSnapshot, snapshotName, writeSnapshot } from '../snapshot.js';
import { type QueuedRecord, QueueReader } from './queue-reader.js';

export interface QueueOptions {
  folder: string;
  meta: string;
  sync: SyncPolicy;
  onCorruption: 'fail' | 'cut';
  limits: WindowLimits;
  maxWaiting: number;
  retryMs: number;
  compactBytes: number;
  /** For how long delivered records are kept, beyond the snapshot that holds them. */
  retainMs: number;
  now(): number;
}

type Queued = OutcomeRecord | DropRecord;

/** Up to `sequence` everything is in Redis since `at`, in its records up to `count`. */
interface Delivered {
  sequence: number;
  count: number;
  at: number;
}

const maxMarks = 4096;

/**
 * The reports of this replica, in a feedback log: stored before they are acknowledged, delivered from there, and kept
 * for a while after, so that they can be delivered again should Redis lose them. Beside them the decisions made here.
 */
export class ReportQueue {
  readonly window: DecisionWindow;
  readonly recovered: Recovery[] = [];
  /** The latest record on the disk. */
  stored = 0;
  /** Up to here Redis has the records. */
  delivered = 0;
  /** Called when there is more to deliver. */
  onStored: () => void = () => undefined;
  #log: FeedbackLog<Queued> | undefined;
  readonly #options: QueueOptions;
  readonly #reader: QueueReader;
  /** Records accepted that are not on the disk yet. */
  #accepted = 0;
  #marks: Delivered[] = [];
  #covered = 0;
  /** Up to here the snapshot stands for the log. */
  #floor: number;
  #lastRetry = 0;
  #mending: Promise<void> | undefined;
  #compacting: Promise<void> | undefined;
  #nextSave = 0;
  compactionError: string | undefined;

  private constructor(options: QueueOptions, snapshot: ReadSnapshot | undefined) {
    this.#options = options;
    this.#reader = new QueueReader(options.folder);
    this.#floor = snapshot?.sequence ?? 0;
    this.stored = this.#floor;
    this.delivered = this.#floor;
    this.window = new DecisionWindow(options.limits, snapshot?.decisions, snapshot?.reports);
  }

  /** @returns the queue, and the replicated state that was kept with it. */
  static async open(
    options: QueueOptions,
  ): Promise<{ queue: ReportQueue; state: Buffer | undefined }> {
    const { folder, onCorruption } = options;
    const recovered: Recovery[] = [];
    const file = path.join(folder, snapshotName);
    const snapshot = await readSnapshot(folder).catch(async (error: unknown) => {
      const corrupt = error instanceof FinchError && error.code === 'FINCH_CORRUPT';
      if (!corrupt || onCorruption === 'fail') throw error;
      recovered.push({
        kind: 'damaged',
        file,
        offset: 0,
        bytes: 0,
        aside: [await setAside(file, true)],
      });
      return undefined;
    });
    if (snapshot !== undefined) checkMeta(snapshot.meta, options.meta, file);
    const queue = new ReportQueue(options, snapshot);
    queue.recovered.push(...recovered);
    await queue.#openLog();
    return { queue, state: snapshot && Buffer.from(snapshot.bandit) };
  }

  get waiting(): number {
    return this.stored - this.delivered + this.#accepted;
  }

  get bytes(): number {
    return this.#log?.bytes ?? 0;
  }

  get failure(): FinchError | undefined {
    return this.#log?.failure;
  }

  /** Up to here the log is gone: these records cannot be delivered again. */
  get floor(): number {
    return this.#floor;
  }

  /** Whether {@link append} must wait for the disk to be tried again. */
  get mustWait(): boolean {
    return this.#mending !== undefined || this.#log?.failure !== undefined;
  }

  /** Tries a disk that refused again, when it is time. */
  async ready(): Promise<void> {
    if (
      this.#mending === undefined &&
      this.#log?.failure !== undefined &&
      performance.now() - this.#lastRetry >= this.#options.retryMs
    ) {
      this.#mending = this.#mend().finally(() => {
        this.#mending = undefined;
      });
    }
    await this.#mending?.catch(() => undefined);
  }

  /** Stores a record as the policy says. @throws FinchError FINCH_IO: the queue is full, or the disk refuses. */
  async append(record: Queued): Promise<void> {
    const log = this.#log;
    const { maxWaiting, folder } = this.#options;
    if (this.waiting >= maxWaiting) {
      throw new FinchError(
        'FINCH_IO',
        `the queue of reports is full: ${this.waiting} wait in ${folder} for Redis (maxWaiting is ${maxWaiting}). ` +
          'This one was not taken: bring Redis back (health() tells why it is away), then report again',
      );
    }
    if (log === undefined) throw new FinchError('FINCH_CLOSED', 'the queue of reports is closed');
    if (log.failure !== undefined) throw log.failure;
    this.#accepted++;
    try {
      await log.append(encodeRecord(record), record, true).done;
    } finally {
      this.#accepted--;
    }
  }

  /** What waits for Redis, in order. */
  async next(maxRecords: number, maxBytes: number): Promise<QueuedRecord[]> {
    return this.#reader.read(this.delivered, this.stored, maxRecords, maxBytes);
  }

  /** Redis has everything up to `sequence`, in its records up to `count`. */
  confirm(sequence: number, count: number): void {
    this.delivered = sequence;
    while ((this.#marks.at(-1)?.sequence ?? -1) >= sequence) this.#marks.pop();
    this.#marks.push({ sequence, count, at: performance.now() });
    // A mark may stand for those before it: they are then kept a little longer.
    if (this.#marks.length > maxMarks) this.#marks = this.#marks.filter((_, i) => i % 2 === 1);
  }

  /** Forgets what was known of deliveries: Redis begins another history, or an earlier point of this one. */
  rewind(sequence: number, count: number): void {
    this.#marks = [];
    this.#covered = 0;
    this.confirm(sequence, count);
  }

  /** Redis has a snapshot of its records up to `count`. */
  coveredTo(count: number): void {
    this.#covered = Math.max(this.#covered, count);
  }

  /** Whether enough of the log can go for it to be worth a snapshot. */
  get compactable(): boolean {
    const { compactBytes } = this.#options;
    if (this.bytes < compactBytes) return false;
    const part = (this.#droppable() - this.#floor) / Math.max(1, this.stored - this.#floor);
    return this.bytes * part >= compactBytes / 2;
  }

  /**
   * Keeps the state and the decisions on the disk, and lets go of records that are no longer needed. Nothing while the
   * last such call goes on, or, after one failed, for `retryMs`: `compactionError` tells.
   */
  saveSoon(state: () => readonly Uint8Array[]): void {
    if (this.#compacting !== undefined || performance.now() < this.#nextSave) return;
    this.#compacting = this.save(state())
      .catch(() => {
        this.#nextSave = performance.now() + this.#options.retryMs;
      })
      .finally(() => {
        this.#compacting = undefined;
      });
  }

  async close(state: readonly Uint8Array[]): Promise<void> {
    try {
      await this.#compacting;
      await this.#mending?.catch(() => undefined);
      if (this.#log !== undefined && this.#log.failure === undefined) await this.save(state);
    } finally {
      await this.#reader.close();
      await this.#log?.close();
      this.#log = undefined;
    }
  }

  /** Lets go of the files without writing. */
  async abandon(): Promise<void> {
    await this.#reader.close();
    await this.#log?.close().catch(() => undefined);
    this.#log = undefined;
  }

  #droppable(): number {
    const before = performance.now() - this.#options.retainMs;
    let sequence = this.#floor;
    for (const mark of this.#marks) {
      if (mark.at > before || mark.count > this.#covered) break;
      sequence = Math.max(sequence, mark.sequence);
    }
    return sequence;
  }

  async save(state: readonly Uint8Array[]): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    const { folder, meta, compactBytes } = this.#options;
    try {
      const sequence = this.#droppable();
      // The log's last segment is never deleted: a new one lets the next compaction take this one.
      if (log.activeBytes >= compactBytes / 2) await log.rotate(() => undefined);
      await writeSnapshot(folder, {
        sequence,
        created: this.#options.now(),
        meta,
        bandit: Buffer.concat(state),
        decisions: this.window.decisions,
        reports: this.window.reports,
      });
      this.#floor = sequence;
      await log.discardBefore(sequence);
      this.compactionError = undefined;
    } catch (error) {
      this.compactionError = reasonOf(error);
      throw error;
    }
  }

  async #openLog(): Promise<void> {
    const { folder, meta, sync, onCorruption } = this.#options;
    const log = await FeedbackLog.open<Queued>({
      folder,
      meta,
      after: this.#floor,
      sync,
      onCorruption,
      checkMeta: (found, file) => checkMeta(found, meta, file),
      replay: (first, payloads) => this.#take(first, payloads.map(decodeQueued)),
      commit: (first, records) => {
        this.#take(first, records);
        this.onStored();
      },
      onFailure: () => {
        this.#lastRetry = performance.now();
      },
    });
    if (log.recovered !== undefined) this.recovered.push(log.recovered);
    this.#log = log;
  }

  #take(first: number, records: readonly Queued[]): void {
    for (const [i, record] of records.entries()) {
      if (record.type !== 'outcome' || !hasContext(record)) continue;
      const { decisionId, toolId, time } = record;
      this.window.addReport(decisionId, toolId, { sequence: first + i, time });
    }
    this.stored = Math.max(this.stored, first + records.length - 1);
  }

  /** The disk refused. Everything acknowledged is in the log: it is opened anew. */
  async #mend(): Promise<void> {
    this.#lastRetry = performance.now();
    await this.#reader.close();
    await this.#log?.close().catch(() => undefined);
    await this.#openLog();
    this.onStored();
  }
}

function decodeQueued(payload: Buffer): Queued {
  const record = decodeRecord(payload);
  if (record.type === 'decision') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      'the folder holds the feedback of a single process; give replicas folders of their own',
    );
  }
  return record;
}
