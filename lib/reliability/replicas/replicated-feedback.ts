import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type AbortOptions, throwIfAborted } from '../../abort.js';
import { FinchError } from '../../errors.js';
import type { Bandit, BanditState } from '../bandit.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import {
  checkedClock,
  checkFields,
  checkFolder,
  checkId,
  checkIds,
  checkTime,
} from '../check-feedback.js';
import { MonotoneClock } from '../clock.js';
import { reportKey } from '../decision-window.js';
import { makeBandit } from '../feedback-options.js';
import type { Decision, Report, ReportResult } from '../feedback-store.js';
import { ioError, reasonOf, syncFolder } from '../files.js';
import { FolderLock } from '../folder-lock.js';
import { decisionRecord, toolContext } from '../kept-decision.js';
import type { DecisionRecord } from '../records.js';
import { type Outcome, rewardOf } from '../reward.js';
import type { StoredDecision } from '../snapshot.js';
import { DecisionSharing } from './decision-sharing.js';
import { readOrigin } from './origin-file.js';
import { needClient } from './redis-link.js';
import type { ReplicaHealth } from './replica-health.js';
import {
  type CheckedReplicaOptions,
  checkReplicaOptions,
  type ReplicaOptions,
} from './replica-options.js';
import { ReplicatedState } from './replicated-state.js';
import { Replication } from './replication.js';
import { ReportQueue } from './report-queue.js';

interface Parts<B extends BanditState> {
  folder: string;
  lock: FolderLock;
  checked: CheckedReplicaOptions;
  clock: MonotoneClock;
  state: ReplicatedState<B>;
  queue: ReportQueue;
  sharing: DecisionSharing;
  replication: Replication<B>;
}

/**
 * Feedback that several processes share through Redis, in place of a {@link FeedbackStore}: a report is stored in this
 * replica's folder and acknowledged, then delivered to the catalogue's stream, from which every replica learns the same
 * records in the same order. All replicas come to the same bits; see docs/replicas.md for what each failure does.
 *
 * While Redis is away, reports wait in the folder and serving goes on with what was learnt; {@link health} says so.
 */
export class ReplicatedFeedback<B extends BanditState = Bandit> implements AsyncDisposable {
  /** What was learnt, here and elsewhere. Changed by this object alone. */
  readonly bandit: B;
  readonly dimension: number;
  readonly #parts: Parts<B>;
  /** Reports on their way to the disk. */
  readonly #pending = new Map<string, Promise<void>>();
  #closing: Promise<void> | undefined;

  private constructor(parts: Parts<B>, dimension: number) {
    this.#parts = parts;
    this.bandit = parts.state.bandit;
    this.dimension = dimension;
  }

  /**
   * Opens this replica's folder (one replica, one folder) and begins to follow the catalogue's stream. Resolves once it
   * has caught up, or after `openWaitMs` without; then it goes on trying.
   *
   * @throws FinchError FINCH_IO (the folder), FINCH_DEVICE (the package `redis` is not installed), FINCH_DIMENSION and
   *   FINCH_INVALID_ARGUMENT (options, or other replicas have others), FINCH_CORRUPT, FINCH_VERSION, FINCH_ABORTED.
   *   Redis being away is no error.
   */
  static async open<B extends BanditState = Bandit>(
    folder: string,
    options: ReplicaOptions<B>,
    abort: AbortOptions = {},
  ): Promise<ReplicatedFeedback<B>> {
    const signal = signalOf(abort);
    checkFields(options, 'options', '{ bandit: { dimension }, redis, tenant, catalogue }');
    const checked = checkReplicaOptions(options);
    checkFolder(folder);
    throwIfAborted(signal);
    const clock = new MonotoneClock(checkedClock(options.now ?? Date.now));
    await needClient();
    const root = path.resolve(folder);
    try {
      await mkdir(root, { recursive: true });
    } catch (cause) {
      throw ioError(`making the feedback folder ${root}`, cause);
    }
    const lock = await FolderLock.acquire(root);
    let bandit: B | undefined;
    let queue: ReportQueue | undefined;
    try {
      const origin = await readOrigin(root);
      bandit = makeBandit(options);
      const { dimension } = options.bandit;
      const state = new ReplicatedState<B>(bandit, dimension, checked.feedback);
      const { keys, feedback, limits, folderMeta } = checked;
      const opened = await ReportQueue.open({
        folder: root,
        meta: folderMeta,
        sync: options.sync ?? 'each',
        onCorruption: options.onCorruption ?? 'fail',
        limits: feedback,
        maxWaiting: limits.maxWaiting,
        retryMs: feedback.retryMs,
        compactBytes: feedback.compactBytes,
        retainMs: limits.retainMs,
        now: () => clock.now(),
      });
      queue = opened.queue;
      if (opened.state !== undefined) restore(state, opened.state, root);
      clock.notBefore(state.time);
      // What came round is delivered, as far as is known before Redis says so.
      const known = Math.max(
        queue.delivered,
        origin.base,
        state.origins.get(origin.id)?.sequence ?? 0,
      );
      queue.delivered = Math.min(known, queue.stored);
      await syncFolder(path.dirname(root)).catch(() => undefined);
      const sharing = new DecisionSharing(queue.window, keys, limits);
      const replication = new Replication(
        {
          ...checked,
          state,
          queue,
          origin,
          sharing,
          folder: root,
          now: () => clock.now(),
          saved: () => saved(state),
        },
        dimension,
      );
      const parts = { folder: root, lock, checked, clock, state, queue, sharing, replication };
      const replica = new ReplicatedFeedback<B>(parts, dimension);
      replication.start();
      try {
        await replica.#catchUpAtFirst(limits.openWaitMs, signal);
      } catch (error) {
        await replica.close();
        bandit = undefined;
        throw error;
      }
      return replica;
    } catch (error) {
      await queue?.abandon();
      await lock.release();
      bandit?.close();
      throw error;
    }
  }

  /**
   * Keeps a decision, so that {@link report} finds its context: here at once, and at the other replicas soon
   * (`sharedDecisions`, `decisionTtlMs`).
   *
   * @returns its id.
   * @throws FinchError FINCH_DIMENSION, FINCH_NOT_FINITE, FINCH_ZERO_VECTOR, FINCH_DUPLICATE_ID (the decision's, or a
   *   tool twice), FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  decide(decision: Decision): string {
    this.#checkOpen();
    const { queue, sharing } = this.#parts;
    const record = decisionRecord(decision, {
      dimension: this.dimension,
      window: queue.window,
      now: () => this.now(),
    });
    this.#keep(record);
    sharing.add(record.id);
    return record.id;
  }

  /**
   * This replica's clock, Unix milliseconds: `options.now`, except that it goes back neither while the replica is open nor
   * behind the records it applied.
   */
  now(): number {
    const { clock, state } = this.#parts;
    clock.notBefore(state.time);
    return clock.now();
  }

  /** A decision kept here and which of its tools were reported on here; undefined when it is unknown or forgotten. */
  decision(
    id: string,
  ): { time: number; toolIds: readonly string[]; reported: readonly string[] } | undefined {
    return this.#parts.queue.window.seen(id);
  }

  /**
   * Records how a tool's execution ended, once for each tool of a decision over all replicas. The decision may be another
   * replica's. Resolves once the report is in this replica's folder (`status: 'queued'`); it is applied, here as
   * elsewhere, when it comes round by the stream.
   *
   * @throws FinchError FINCH_UNKNOWN_ID (no such decision here or in Redis, or the tool is none of its), FINCH_IO (it
   *   could not be stored, the queue is full, or the decision is another replica's and Redis is away: nothing was taken),
   *   FINCH_INVALID_ARGUMENT, FINCH_NOT_FINITE, FINCH_CLOSED.
   */
  async report(report: Report): Promise<ReportResult> {
    checkFields(report, 'report', '{ decisionId, toolId, outcome }');
    const { decisionId, toolId, outcome, at: ended } = report;
    checkId(decisionId, 'decisionId');
    checkId(toolId, 'toolId');
    if (ended !== undefined) checkTime(ended, 'at');
    const { clock, queue, state, replication } = this.#parts;
    const at = ended === undefined ? this.now() : clock.at(ended);
    const status = rewardOf(outcome) === undefined ? 'recorded' : 'queued';
    this.#checkOpen();
    const key = reportKey(decisionId, toolId);
    for (let other = this.#pending.get(key); other; other = this.#pending.get(key)) await other;
    this.#checkOpen();
    if (replication.taken && replication.refusal !== undefined) throw replication.refusal;
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#pending.set(key, settled);
    try {
      if (queue.mustWait) await queue.ready();
      if (queue.window.hasReport(decisionId, toolId) || state.hasReport(decisionId, toolId)) {
        return { status: 'duplicate', durable: true };
      }
      const { x, prior } = await this.#contextOf(decisionId, toolId);
      const time = this.now();
      await queue.append({ type: 'outcome', decisionId, toolId, outcome, at, time, prior, x });
      return { status, durable: true };
    } finally {
      this.#pending.delete(key);
      settle();
    }
  }

  /**
   * Records what a health check found, outside any decision, for all replicas: availability learns from it, what is known
   * of the inputs a tool works for does not change. Like a report it is stored here, and applied when it comes round. Checks
   * by one replica are enough. See {@link HealthChecks}.
   *
   * @throws FinchError FINCH_IO, FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  async reportHealth(toolId: string, outcome: Outcome): Promise<{ durable: boolean }> {
    checkId(toolId, 'toolId');
    rewardOf(outcome);
    this.#checkOpen();
    const { queue, replication } = this.#parts;
    if (replication.taken && replication.refusal !== undefined) throw replication.refusal;
    if (queue.mustWait) await queue.ready();
    const [time, x] = [this.now(), new Float32Array(0)];
    const report = { type: 'outcome', decisionId: '', toolId, outcome, x, prior: 0.5 } as const;
    await queue.append({ ...report, at: time, time });
    return { durable: true };
  }

  /**
   * Forgets, in all replicas, what was learnt of tools (removed, or replaced by others of the same id). Like a report it
   * is stored here, and applied when it comes round.
   *
   * @throws FinchError FINCH_IO, FINCH_DUPLICATE_ID, FINCH_INVALID_ARGUMENT, FINCH_CLOSED.
   */
  async drop(toolIds: readonly string[]): Promise<void> {
    checkIds(toolIds, 'toolIds');
    this.#checkOpen();
    const { queue } = this.#parts;
    if (queue.mustWait) await queue.ready();
    await queue.append({ type: 'drop', time: this.now(), toolIds: [...toolIds] });
  }

  /**
   * Resolves when all that was reported here so far is in Redis.
   *
   * @throws FinchError FINCH_ABORTED, FINCH_CLOSED. It waits for as long as Redis is away: give a signal.
   */
  async flush(abort: AbortOptions = {}): Promise<void> {
    const signal = signalOf(abort);
    this.#checkOpen();
    throwIfAborted(signal);
    await Promise.all(this.#pending.values());
    const { queue, replication } = this.#parts;
    const target = queue.stored;
    while (queue.delivered < target) {
      await replication.changes.next(signal);
      throwIfAborted(signal);
      this.#checkOpen();
    }
  }

  /**
   * Resolves when this replica has applied all that was in Redis when it was called.
   *
   * @throws FinchError FINCH_ABORTED, FINCH_CLOSED. It waits for as long as Redis is away: give a signal.
   */
  async catchUp(abort: AbortOptions = {}): Promise<void> {
    const signal = signalOf(abort);
    this.#checkOpen();
    throwIfAborted(signal);
    const { replication, state } = this.#parts;
    let target: number | undefined;
    for (;;) {
      target = await replication.totalNow().catch(() => undefined);
      while (target !== undefined && replication.connected) {
        if (state.count >= target) return;
        await replication.changes.next(signal);
        throwIfAborted(signal);
        this.#checkOpen();
      }
      await replication.changes.next(signal, 100);
      throwIfAborted(signal);
      this.#checkOpen();
    }
  }

  /** The number of the latest record applied, and a SHA-256 of all that it led to: equal in replicas at the same record. */
  checksum(): { applied: number; sha256: string } {
    this.#checkOpen();
    const { state } = this.#parts;
    return { applied: state.count, sha256: state.checksum() };
  }

  health(): ReplicaHealth {
    const { folder, checked, state, queue, sharing, replication } = this.#parts;
    const { refusal } = replication;
    const closed = this.#closing !== undefined;
    return {
      connected: replication.connected,
      lastError: replication.lastError && { ...replication.lastError },
      origin: replication.origin,
      keys: checked.keys.base,
      epoch: state.epoch,
      streamId: `${state.count}-0`,
      applied: state.count,
      lag: replication.lag,
      snapshot: replication.snapshotCount,
      snapshotError: replication.snapshotError,
      duplicates: state.duplicates,
      refused: state.refused,
      waiting: queue.waiting,
      maxWaiting: checked.limits.maxWaiting,
      delivered: queue.delivered,
      durable: !closed && queue.failure === undefined && !replication.taken,
      reason: closed
        ? 'the replica is closed'
        : (queue.failure?.message ?? (replication.taken ? refusal?.message : undefined)),
      path: folder,
      logBytes: queue.bytes,
      decisions: queue.window.decisions.size,
      reports: state.reports,
      unshared: sharing.waiting,
      sharingError: replication.sharingError,
      oversized: sharing.oversized,
      recovered: queue.recovered,
      compactionError: queue.compactionError,
      events: [...replication.events],
    };
  }

  /**
   * Waits for reports in flight, and up to `closeWaitMs` for their delivery; then keeps the state in the folder and lets
   * folder, connections and bandit go. What could not be delivered is at the next opening. Twice is fine.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { queue, replication, sharing, state, lock, checked } = this.#parts;
    try {
      await Promise.all(this.#pending.values());
      const until = performance.now() + checked.limits.closeWaitMs;
      while (replication.connected && (queue.delivered < queue.stored || sharing.waiting > 0)) {
        const left = until - performance.now();
        if (left <= 0) break;
        await replication.changes.next(undefined, Math.min(left, 50));
      }
      await replication.stop();
      await queue.close(saved(state));
    } finally {
      await queue.abandon();
      await lock.release();
      this.bandit.close();
    }
  }

  /** A first try to catch up; a Redis that is away stops nothing, one that other options were used with does. */
  async #catchUpAtFirst(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { replication } = this.#parts;
    const ended = new AbortController();
    const caughtUp = this.catchUp({ signal: ended.signal }).then(
      () => ended.abort(),
      () => undefined,
    );
    const until = performance.now() + waitMs;
    try {
      while (!ended.signal.aborted && performance.now() < until) {
        await replication.changes.next(
          signal ?? ended.signal,
          Math.min(50, until - performance.now()),
        );
        throwIfAborted(signal);
        if (replication.refusal !== undefined) throw replication.refusal;
      }
    } finally {
      ended.abort();
      await caughtUp;
    }
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) {
      throw new FinchError('FINCH_CLOSED', 'the replica is closed; open it again');
    }
  }

  #keep(decision: DecisionRecord): void {
    const stored: StoredDecision = { ...decision, sequence: 0, reported: undefined };
    this.#parts.queue.window.add(stored);
  }

  async #contextOf(
    decisionId: string,
    toolId: string,
  ): Promise<{ x: Float32Array; prior: number }> {
    const { queue } = this.#parts;
    const decision =
      queue.window.decisions.get(decisionId) ?? (await this.#sharedDecision(decisionId));
    return toolContext(decision, toolId);
  }

  /** A decision of another replica. */
  async #sharedDecision(id: string): Promise<DecisionRecord> {
    const { replication, sharing, checked } = this.#parts;
    const { link } = replication;
    let decision: DecisionRecord | undefined;
    try {
      if (link === undefined)
        throw new Error(replication.lastError?.message ?? 'not connected yet');
      decision = await sharing.find(link, id);
    } catch (cause) {
      throw new FinchError(
        'FINCH_IO',
        `decision ${JSON.stringify(id)} was not made here, and Redis, where the others share theirs, cannot be asked ` +
          `(${reasonOf(cause)}); report it where it was made, or again later`,
        { cause },
      );
    }
    if (decision === undefined || decision.x.length !== this.dimension) {
      const { maxDecisions } = checked.feedback;
      const { sharedDecisions, decisionTtlMs } = checked.limits;
      throw new FinchError(
        'FINCH_UNKNOWN_ID',
        `there is no decision ${JSON.stringify(id)}: it was never made, or is older than the last ${maxDecisions} here ` +
          `(maxDecisions) and the last ${sharedDecisions} of ${decisionTtlMs} ms in Redis (sharedDecisions, decisionTtlMs)`,
      );
    }
    this.#keep(decision);
    return decision;
  }
}

function signalOf(options: AbortOptions): AbortSignal | undefined {
  checkFields(options, 'options', '{ signal }');
  return options.signal;
}

/** The replicated state as it lies in the folder: the history it is of, then its bytes. */
function saved<B extends BanditState>(state: ReplicatedState<B>): Uint8Array[] {
  return [new ByteWriter().string(state.epoch).done(), ...state.encode()];
}

function restore<B extends BanditState>(
  state: ReplicatedState<B>,
  bytes: Buffer,
  folder: string,
): void {
  const reader = new ByteReader(bytes);
  let epoch: string;
  try {
    epoch = reader.string();
  } catch (cause) {
    throw new FinchError('FINCH_CORRUPT', `the state kept in ${folder} is malformed`, { cause });
  }
  state.load(epoch, bytes.subarray(reader.offset), folder);
}
