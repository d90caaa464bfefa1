import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { FinchError } from '../errors.js';
import type { Bandit, BanditState } from './bandit.js';
import {
  checkedClock,
  checkFields,
  checkFolder,
  checkId,
  checkIds,
  checkTime,
} from './check-feedback.js';
import { MonotoneClock } from './clock.js';
import { DecisionWindow, reportKey } from './decision-window.js';
import type { FeedbackHealth } from './feedback-health.js';
import { FeedbackLog } from './feedback-log.js';
import {
  checkMeta,
  type FeedbackLimits,
  type FeedbackOptions,
  feedbackLimits,
  feedbackMeta,
  makeBandit,
} from './feedback-options.js';
import { ioError, reasonOf, syncFolder } from './files.js';
import { FolderLock } from './folder-lock.js';
import { decisionRecord, toolContext } from './kept-decision.js';
import { hasContext, learn } from './learn.js';
import { type Recovery, setAside } from './log-replay.js';
import { decodeRecord, encodeRecord, type FeedbackRecord, type OutcomeRecord } from './records.js';
import { type Outcome, rewardOf } from './reward.js';
import {
  type ReadSnapshot,
  readSnapshot,
  type SnapshotState,
  type StoredDecision,
  snapshotName,
  writeSnapshot,
} from './snapshot.js';

export type { Outcome } from './reward.js';

/** A decision to keep. */
export interface Decision {
  /** Default a random UUID. */
  id?: string | undefined;
  /** The context: the query's vector, dimension floats. Copied. */
  x: Float32Array;
  /** The tools that may be reported on, each once. */
  toolIds: readonly string[];
  /** r of each tool, in [0, 1]. Copied. */
  priors: Float32Array;
  /** Unix milliseconds; default now. */
  time?: number | undefined;
}

export interface Report {
  decisionId: string;
  toolId: string;
  outcome: Outcome;
  /** When the tool ended, Unix milliseconds; default now. May lie before reports made earlier; the future counts as now. */
  at?: number | undefined;
}

export interface ReportResult {
  /**
   * `'applied'`: the bandit has learnt from it; `'queued'` (a replica): it is stored, and is applied when it comes round,
   * unless the same report got there first from another replica; `'recorded'`: kept, but it says nothing of the tool
   * (cancelled); `'duplicate'`: this decision's tool was reported before, nothing changed.
   */
  status: 'applied' | 'queued' | 'recorded' | 'duplicate';
  /** Whether it outlives this process (under the sync policy also a power cut). False in memory. */
  durable: boolean;
}

// Below this, a log is as quick to replay as a snapshot to read.
const closeCompactBytes = 1024 * 1024;

/**
 * Decisions, the outcomes reported on them, and the bandit that learns from them, kept in a folder (an append-only log
 * and a snapshot; docs/feedback-format.md) or in memory. A report is stored before it is applied and applied before it
 * resolves; records apply in the log's order, so reopening gives the same bandit to the bit. When the disk refuses, the
 * report that met it fails with FINCH_IO, later ones are kept in memory (`durable: false`), and the disk is tried again.
 *
 * One process at a time may open a folder.
 */
export class FeedbackStore<B extends BanditState = Bandit> implements AsyncDisposable {
  /** What was learnt. Changed by this store alone. */
  readonly bandit: B;
  readonly dimension: number;
  readonly #limits: FeedbackLimits;
  readonly #clock: MonotoneClock;
  readonly #meta: string;
  readonly #folder: string | undefined;
  readonly #window: DecisionWindow;
  readonly #lock: FolderLock | undefined;
  #log: FeedbackLog<FeedbackRecord> | undefined;
  /** In memory: the latest record's number. */
  #sequence = 0;
  /** Reports on their way to the disk. */
  readonly #pending = new Map<string, Promise<void>>();
  #recovered: Recovery[] = [];
  #snapshot: FeedbackHealth['snapshot'];
  #compacting: Promise<void> | undefined;
  #compactionError: string | undefined;
  #nextCompaction: number;
  #recovering: Promise<void> | undefined;
  #lastRetry = 0;
  #unsaved = 0;
  #closing: Promise<void> | undefined;

  private constructor(
    bandit: B,
    options: FeedbackOptions<B>,
    limits: FeedbackLimits,
    place?: { folder: string; lock: FolderLock; snapshot: ReadSnapshot | undefined },
  ) {
    this.bandit = bandit;
    this.dimension = options.bandit.dimension;
    this.#limits = limits;
    this.#clock = new MonotoneClock(checkedClock(options.now ?? Date.now));
    this.#meta = feedbackMeta(options.bandit, options.model);
    this.#nextCompaction = limits.compactBytes;
    this.#folder = place?.folder;
    this.#lock = place?.lock;
    const snapshot = place?.snapshot;
    this.#window = new DecisionWindow(limits, snapshot?.decisions, snapshot?.reports);
    if (snapshot !== undefined) {
      const { sequence, created, bytes, reports } = snapshot;
      this.#snapshot = { sequence, created, bytes };
      this.#clock.notBefore(created);
      for (const { time } of reports.values()) this.#clock.notBefore(time);
    }
  }

  /**
   * Opens a folder's feedback, or begins one there.
   *
   * @throws FinchError FINCH_IO (the folder cannot be written, or another process holds it: its pid is named),
   *   FINCH_CORRUPT (file and offset are named), FINCH_VERSION, FINCH_DIMENSION and FINCH_INVALID_ARGUMENT (options, or
   *   feedback written with others).
   */
  static async open<B extends BanditState = Bandit>(
    folder: string,
    options: FeedbackOptions<B>,
  ): Promise<FeedbackStore<B>> {
    const limits = feedbackLimits(options);
    checkFolder(folder);
    const root = path.resolve(folder);
    const onCorruption = options.onCorruption ?? 'fail';
    try {
      await mkdir(root, { recursive: true });
    } catch (cause) {
      throw ioError(`making the feedback folder ${root}`, cause);
    }
    const lock = await FolderLock.acquire(root);
    let bandit: B | undefined;
    try {
      bandit = makeBandit(options);
      const recovered: Recovery[] = [];
      const snapshot = await readSnapshot(root).catch(async (error: unknown) => {
        const corrupt = error instanceof FinchError && error.code === 'FINCH_CORRUPT';
        if (!corrupt || onCorruption === 'fail') throw error;
        const file = path.join(root, snapshotName);
        const aside = [await setAside(file, true)];
        recovered.push({ kind: 'damaged', file, offset: 0, bytes: 0, aside });
        return undefined;
      });
      const store = new FeedbackStore<B>(bandit, options, limits, { folder: root, lock, snapshot });
      if (snapshot !== undefined) {
        checkMeta(snapshot.meta, store.#meta, path.join(root, snapshotName));
        bandit.deserialize(snapshot.bandit);
      }
      const log = await FeedbackLog.open<FeedbackRecord>({
        folder: root,
        meta: store.#meta,
        after: snapshot?.sequence ?? 0,
        sync: options.sync ?? 'each',
        onCorruption,
        checkMeta: (meta, file) => checkMeta(meta, store.#meta, file),
        replay: (first, payloads) => store.#apply(first, payloads.map(decodeRecord), true),
        commit: (first, records) => store.#committed(first, records),
        onFailure: () => {
          store.#lastRetry = performance.now();
        },
      });
      store.#log = log;
      if (log.recovered !== undefined) recovered.push(log.recovered);
      store.#recovered = recovered;
      await syncFolder(path.dirname(root)).catch(() => undefined);
      return store;
    } catch (error) {
      bandit?.close();
      await lock.release();
      throw error;
    }
  }

  /** Feedback that ends with the process: the same interface without files. */
  static memory<B extends BanditState = Bandit>(options: FeedbackOptions<B>): FeedbackStore<B> {
    const limits = feedbackLimits(options);
    return new FeedbackStore<B>(makeBandit(options), options, limits);
  }

  /**
   * Keeps a decision, so that {@link report} finds its context: now, and after a restart. It is written soon, and is
   * durable at the latest with the first report on it.
   *
   * @returns its id.
   * @throws FinchError FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_DUPLICATE_ID (the decision's, or a
   *   tool twice), FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  decide(decision: Decision): string {
    this.#checkOpen();
    const record = decisionRecord(decision, {
      dimension: this.dimension,
      window: this.#window,
      now: () => this.now(),
    });
    const stored: StoredDecision = { ...record, sequence: 0, reported: undefined };
    stored.sequence = this.#logDecision(stored);
    this.#window.add(stored);
    return stored.id;
  }

  /**
   * The store's clock, Unix milliseconds: `options.now`, except that it goes back neither while the store is open nor
   * behind the outcomes in its folder. After a step back it goes on from there at the clock's pace until that has
   * caught up.
   */
  now(): number {
    return this.#clock.now();
  }

  /** A kept decision and which of its tools were reported on; undefined when it is unknown or forgotten. */
  decision(
    id: string,
  ): { time: number; toolIds: readonly string[]; reported: readonly string[] } | undefined {
    return this.#window.seen(id);
  }

  /** The id of the decision made last, if it is still kept. */
  latestDecision(): string | undefined {
    const { latest } = this.#window;
    return latest !== undefined && this.#window.decisions.has(latest) ? latest : undefined;
  }

  /**
   * Records how a tool's execution ended, once for each tool of a decision, in any order and however late.
   *
   * @throws FinchError FINCH_UNKNOWN_ID (no such decision, or the tool is none of its), FINCH_IO (it could not be
   *   stored: nothing changed, and a repetition is kept in memory), FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE,
   *   FINCH_CLOSED.
   */
  async report(report: Report): Promise<ReportResult> {
    checkFields(report, 'report', '{ decisionId, toolId, outcome }');
    const { decisionId, toolId, outcome, at: ended } = report;
    checkId(decisionId, 'decisionId');
    checkId(toolId, 'toolId');
    if (ended !== undefined) checkTime(ended, 'at');
    const at = ended === undefined ? this.now() : this.#clock.at(ended);
    this.#checkOpen();
    const status = rewardOf(outcome) === undefined ? 'recorded' : 'applied';
    if (this.#mustWait()) await this.#ready();
    const key = reportKey(decisionId, toolId);
    for (let other = this.#pending.get(key); other; other = this.#pending.get(key)) {
      // The same report is on its way: whether this one is a repetition shows when that one has settled.
      await other;
      if (this.#mustWait()) await this.#ready();
    }
    if (this.#window.hasReport(decisionId, toolId)) {
      return { status: 'duplicate', durable: this.#isDurable() };
    }
    this.#checkOpen();
    const { x, prior } = this.#contextOf(decisionId, toolId);
    const record: OutcomeRecord = {
      type: 'outcome',
      decisionId,
      toolId,
      outcome,
      at,
      time: this.now(),
      prior,
      x,
    };
    const write = this.#write(record);
    const settled = write.then(
      () => undefined,
      () => undefined,
    );
    this.#pending.set(key, settled);
    try {
      return { status, durable: await write };
    } finally {
      this.#pending.delete(key);
    }
  }

  /**
   * Records what a health check found, outside any decision: the tool's availability learns from it, what is known of
   * the inputs it works for does not change. See {@link HealthChecks}.
   *
   * @throws FinchError FINCH_IO, FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  async reportHealth(toolId: string, outcome: Outcome): Promise<{ durable: boolean }> {
    checkId(toolId, 'toolId');
    rewardOf(outcome);
    this.#checkOpen();
    if (this.#mustWait()) await this.#ready();
    const [time, x] = [this.now(), new Float32Array(0)];
    const report = { type: 'outcome', decisionId: '', toolId, outcome, x, prior: 0.5 } as const;
    return { durable: await this.#write({ ...report, at: time, time }) };
  }

  /**
   * Forgets what was learnt of tools (removed, or replaced by others of the same id). Their decisions stay.
   *
   * @throws FinchError FINCH_IO, FINCH_DUPLICATE_ID, FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  async drop(toolIds: readonly string[]): Promise<void> {
    checkIds(toolIds, 'toolIds');
    this.#checkOpen();
    if (this.#mustWait()) await this.#ready();
    await this.#write({ type: 'drop', time: this.now(), toolIds: [...toolIds] });
  }

  /**
   * Writes a snapshot and begins the log anew; reports go on meanwhile. Happens by itself (`compactBytes`). After the
   * disk refused, it tries the disk again.
   *
   * @throws FinchError FINCH_IO, FINCH_CLOSED.
   */
  async compact(): Promise<void> {
    this.#checkOpen();
    if (this.#log?.failure !== undefined) await this.#recover();
    else await this.#compact();
  }

  /** Resolves when everything so far, decisions too, is on the disk. @throws FinchError FINCH_IO, FINCH_CLOSED. */
  async flush(): Promise<void> {
    this.#checkOpen();
    await this.#log?.flush();
  }

  health(): FeedbackHealth {
    const log = this.#log;
    return {
      durable: this.#closing === undefined && this.#isDurable(),
      reason:
        this.#closing !== undefined
          ? 'the store is closed'
          : log === undefined
            ? 'feedback is kept in memory, as asked'
            : log.failure?.message,
      path: this.#folder,
      sequence: this.#lastSequence(),
      decisions: this.#window.decisions.size,
      reports: this.#window.reports.size,
      waiting: log?.waiting ?? 0,
      unsaved: this.#unsaved,
      logBytes: log?.bytes ?? 0,
      snapshot: this.#snapshot && { ...this.#snapshot },
      recovered: this.#recovered,
      compactionError: this.#compactionError,
    };
  }

  /**
   * Stores what waits and lets the folder and the bandit go. Reports in flight settle first. Twice is fine.
   *
   * @throws FinchError FINCH_IO when outcomes accepted in memory could not be stored at last.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#compacting?.catch(() => undefined);
    await this.#recovering?.catch(() => undefined);
    const log = this.#log;
    try {
      if (log === undefined) return;
      if (log.failure !== undefined) {
        if (this.#unsaved > 0) await this.#recover();
      } else if (log.bytes > Math.max(closeCompactBytes, (this.#snapshot?.bytes ?? 0) / 4)) {
        // A snapshot saves the next opening a replay; without it nothing is lost.
        await this.#compact().catch(() => undefined);
      }
      await log.close();
      await Promise.all(this.#pending.values());
    } finally {
      await log?.close().catch(() => undefined);
      await this.#lock?.release();
      this.bandit.close();
    }
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) {
      throw new FinchError('FINCH_CLOSED', 'the feedback store is closed; open it again');
    }
  }

  #isDurable(): boolean {
    return this.#log !== undefined && this.#log.failure === undefined;
  }

  #lastSequence(): number {
    return this.#log === undefined ? this.#sequence : this.#log.nextSequence - 1;
  }

  /** A healthy store takes a report in the very turn it is made, so that a `close` after it waits for it. */
  #mustWait(): boolean {
    return this.#recovering !== undefined || this.#log?.failure !== undefined;
  }

  /** Waits while the disk is tried again, and tries it when it is time. */
  async #ready(): Promise<void> {
    const failed = this.#log?.failure !== undefined;
    if (failed && !this.#closing && performance.now() - this.#lastRetry >= this.#limits.retryMs) {
      await this.#recover().catch(() => undefined);
    }
    while (this.#recovering !== undefined) await this.#recovering.catch(() => undefined);
    this.#checkOpen();
  }

  #contextOf(decisionId: string, toolId: string): { x: Float32Array; prior: number } {
    const decision = this.#window.decisions.get(decisionId);
    if (decision === undefined) {
      throw new FinchError(
        'FINCH_UNKNOWN_ID',
        `there is no decision ${JSON.stringify(decisionId)}: it was never made here, or is older than the last ` +
          `${this.#limits.maxDecisions} (maxDecisions)`,
      );
    }
    return toolContext(decision, toolId);
  }

  /** Stores and applies a record; says whether it is durable. */
  async #write(record: FeedbackRecord): Promise<boolean> {
    const log = this.#log;
    if (log !== undefined && log.failure === undefined) {
      await log.append(encodeRecord(record), record, true).done;
      return true;
    }
    this.#apply(log === undefined ? ++this.#sequence : log.skip(), [record], false);
    if (log !== undefined) this.#unsaved++;
    return false;
  }

  #logDecision(decision: StoredDecision): number {
    const log = this.#log;
    if (log === undefined) return ++this.#sequence;
    if (log.failure !== undefined) return log.skip();
    const { sequence, done } = log.append(encodeRecord(decision), decision, false);
    // A failure shows in health() and in the reports; the decision itself is in memory.
    done.catch(() => undefined);
    return sequence;
  }

  #committed(first: number, records: readonly FeedbackRecord[]): void {
    this.#apply(first, records, false);
    const bytes = this.#log?.bytes ?? 0;
    if (bytes >= this.#nextCompaction && this.#compacting === undefined && !this.#closing) {
      this.#compact().catch(() => undefined);
    }
  }

  /** Applies records in their order. Decisions are in the window already, but for those replayed. */
  #apply(first: number, records: readonly FeedbackRecord[], replayed: boolean): void {
    let outcomes: OutcomeRecord[] = [];
    for (const [i, record] of records.entries()) {
      const sequence = first + i;
      // A decision's time may be the caller's own.
      if (record.type !== 'decision') this.#clock.notBefore(record.time);
      if (record.type === 'outcome') {
        outcomes.push(record);
        const { decisionId, toolId, time } = record;
        if (hasContext(record)) this.#window.addReport(decisionId, toolId, { sequence, time });
      } else if (record.type === 'drop') {
        learn(this.bandit, this.dimension, outcomes);
        outcomes = [];
        this.bandit.drop(record.toolIds);
      } else if (replayed) {
        this.#window.add({ ...record, sequence, reported: undefined });
      }
    }
    learn(this.bandit, this.dimension, outcomes);
  }

  #capture(sequence: number): SnapshotState {
    return {
      sequence,
      created: this.now(),
      meta: this.#meta,
      bandit: this.bandit.serialize(),
      decisions: this.#window.decisions,
      reports: this.#window.reports,
    };
  }

  #compact(): Promise<void> {
    this.#compacting ??= this.#compactOnce().finally(() => {
      this.#compacting = undefined;
    });
    return this.#compacting;
  }

  async #compactOnce(): Promise<void> {
    const log = this.#log;
    if (log === undefined || this.#folder === undefined) return;
    try {
      const captured: SnapshotState[] = [];
      await log.rotate((sequence) => captured.push(this.#capture(sequence)));
      for (const state of captured) await this.#save(this.#folder, state);
      await log.discardBefore(captured[0]?.sequence ?? 0);
      this.#compactionError = undefined;
      this.#nextCompaction = this.#limits.compactBytes;
    } catch (error) {
      // The log is whole and goes on; it is tried again when it has grown by as much once more.
      this.#compactionError = reasonOf(error);
      this.#nextCompaction = log.bytes + this.#limits.compactBytes;
      throw error;
    }
  }

  async #save(folder: string, state: SnapshotState): Promise<void> {
    const bytes = await writeSnapshot(folder, state);
    this.#snapshot = { sequence: state.sequence, created: state.created, bytes };
  }

  #recover(): Promise<void> {
    this.#recovering ??= this.#recoverOnce().finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  /** The disk refused: a snapshot of all that is in memory makes the log dispensable, then a new one begins. */
  async #recoverOnce(): Promise<void> {
    const log = this.#log;
    if (log === undefined || this.#folder === undefined) return;
    this.#lastRetry = performance.now();
    const sequence = log.nextSequence - 1;
    await this.#save(this.#folder, this.#capture(sequence));
    this.#unsaved = 0;
    await log.restart();
    this.#compactionError = undefined;
    this.#nextCompaction = this.#limits.compactBytes;
    for (const decision of this.#window.decisions.values()) {
      if (decision.sequence > sequence) decision.sequence = this.#logDecision(decision);
    }
  }
}
