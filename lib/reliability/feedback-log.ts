import { type FileHandle, open, unlink } from 'node:fs/promises';
import path from 'node:path';
import { FinchError } from '../errors.js';
import { ioError, syncFolder, writeFully } from './files.js';
import { encodeFrame, encodeSegmentHead } from './log-frames.js';
import { listSegments, type Recovery, replayLog, segmentName } from './log-replay.js';

/**
 * When an append counts as done:
 * - `'each'` (default): its bytes are on the disk (fdatasync); appends that wait together share one sync;
 * - `{ intervalMs }`: the system has its bytes, and syncs at least that often: a killed process loses nothing, a power
 *   cut up to that time;
 * - `'none'`: the system has its bytes; it syncs when it likes.
 */
export type SyncPolicy = 'each' | 'none' | { intervalMs: number };

export interface LogOptions<Tag> {
  folder: string;
  /** What the records depend on; kept in each segment's head. */
  meta: string;
  /** The snapshot's last sequence; records up to it are not replayed. */
  after: number;
  sync: SyncPolicy;
  onCorruption: 'fail' | 'cut';
  /** Throws when a segment was written with other options. */
  checkMeta(meta: string, file: string): void;
  /** A frame of records found at opening, in order. */
  replay(firstSequence: number, payloads: readonly Buffer[]): void;
  /** Records that are stored now, in order and before their appends resolve. */
  commit(firstSequence: number, tags: readonly Tag[]): void;
  /** The log cannot be written any more; every append that waits rejects with this. */
  onFailure(error: FinchError): void;
}

interface Waiting<Tag> {
  payload: Uint8Array;
  tag: Tag;
  durable: boolean;
  resolve: () => void;
  reject: (error: FinchError) => void;
}

interface Segment {
  file: string;
  firstSequence: number;
  bytes: number;
}

// What one frame takes from the queue: enough to share a sync, little enough to keep the loop's turns short.
const frameRecords = 4096;
const frameBytes = 4 * 1024 * 1024;

/**
 * An append-only log in segments. One loop writes: whatever waits when it comes round goes into one frame, one write and
 * one sync. Format: docs/feedback-format.md.
 */
export class FeedbackLog<Tag> {
  readonly recovered: Recovery | undefined;
  readonly #options: LogOptions<Tag>;
  readonly #segments: Segment[];
  #handle: FileHandle | undefined;
  #queue: Array<Waiting<Tag>> = [];
  /** Asked of the loop between two frames. */
  #chores: Array<{ after: number; run: () => Promise<void> }> = [];
  #running: Promise<void> | undefined;
  #nextSequence: number;
  /** The first sequence not yet stored. */
  #storedNext: number;
  #dirty = false;
  #timer: NodeJS.Timeout | undefined;
  #failure: FinchError | undefined;
  #closed = false;

  private constructor(
    options: LogOptions<Tag>,
    segments: Segment[],
    nextSequence: number,
    recovered: Recovery | undefined,
  ) {
    this.#options = options;
    this.#segments = segments;
    this.#nextSequence = nextSequence;
    this.#storedNext = nextSequence;
    this.recovered = recovered;
  }

  /**
   * Opens the log of a folder, replaying what it holds after the snapshot.
   *
   * @throws FinchError FINCH_CORRUPT, FINCH_VERSION, FINCH_IO, and what `checkMeta` and `replay` throw.
   */
  static async open<Tag>(options: LogOptions<Tag>): Promise<FeedbackLog<Tag>> {
    const { folder } = options;
    try {
      const { segments, nextSequence, recovered } = await replayLog(options);
      const log = new FeedbackLog<Tag>(options, segments, nextSequence, recovered);
      const last = segments.at(-1);
      // Numbers must not jump within a segment, and one that ends before the snapshot does (the disk refused for a
      // while) would: it gets a successor.
      const reuse = nextSequence > options.after + 1 || last?.firstSequence === nextSequence;
      if (last === undefined || !reuse) {
        await log.#begin(nextSequence);
        await log.discardBefore(options.after);
      } else {
        log.#handle = await open(last.file, 'r+');
      }
      return log;
    } catch (error) {
      throw ioError(`opening the feedback log in ${folder}`, error);
    }
  }

  /** The number that the next append gets. */
  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** Bytes of all segments. */
  get bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments) bytes += segment.bytes;
    return bytes;
  }

  /** Bytes of the segment in use. */
  get activeBytes(): number {
    return this.#segments.at(-1)?.bytes ?? 0;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get failure(): FinchError | undefined {
    return this.#failure;
  }

  /** Takes a number without writing, for what is kept in memory while the log is failed. */
  skip(): number {
    this.#storedNext = this.#nextSequence + 1;
    return this.#nextSequence++;
  }

  /**
   * Queues a record. Its number is fixed now; `done` settles when it is stored as the policy says (`durable`), or when
   * the system has it.
   */
  append(
    payload: Uint8Array,
    tag: Tag,
    durable: boolean,
  ): { sequence: number; done: Promise<void> } {
    const failure = this.#closed
      ? new FinchError('FINCH_CLOSED', 'the feedback log is closed')
      : this.#failure;
    if (failure !== undefined) throw failure;
    const sequence = this.#nextSequence++;
    const done = new Promise<void>((resolve, reject) => {
      this.#queue.push({ payload, tag, durable, resolve, reject });
    });
    this.#wake();
    return { sequence, done };
  }

  /**
   * Between two frames: calls `capture` with the last stored sequence, then begins a new segment after it. Appends go on
   * meanwhile. The older segments stay until {@link discardBefore}.
   */
  rotate(capture: (sequence: number) => void): Promise<void> {
    return this.#chore(async () => {
      const sequence = this.#storedNext - 1;
      capture(sequence);
      if (this.#segments.at(-1)?.firstSequence === this.#storedNext) return;
      try {
        // Once a new segment is there, a torn end of this one would be damage.
        await this.#sync();
        await this.#handle?.close();
        this.#handle = undefined;
        await this.#begin(this.#storedNext);
      } catch (cause) {
        await this.#fail('beginning a new log segment', cause);
        throw this.#failure ?? cause;
      }
    });
  }

  /** Deletes segments that hold nothing after `sequence`. */
  async discardBefore(sequence: number): Promise<void> {
    while ((this.#segments[1]?.firstSequence ?? Number.POSITIVE_INFINITY) <= sequence + 1) {
      const segment = this.#segments[0] as Segment;
      try {
        await unlink(segment.file);
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') {
          throw ioError(`deleting ${segment.file}`, cause);
        }
      }
      if (this.#segments[0] === segment) this.#segments.shift();
    }
  }

  /** After a failure, and once a snapshot holds everything: begins anew with an empty log. */
  async restart(): Promise<void> {
    await this.#handle?.close().catch(() => undefined);
    this.#handle = undefined;
    const { folder } = this.#options;
    try {
      for (const { file } of await listSegments(folder)) await unlink(file);
      this.#segments.length = 0;
      const first = this.#nextSequence;
      await this.#begin(first);
      // Numbers skipped meanwhile are given anew: those that took them append again.
      this.#nextSequence = first;
      this.#storedNext = first;
    } catch (cause) {
      throw ioError(`beginning a new log in ${folder}`, cause);
    }
    this.#failure = undefined;
    this.#dirty = false;
  }

  /** Resolves when everything appended so far is on the disk. */
  flush(): Promise<void> {
    return this.#chore(async () => {
      try {
        await this.#sync();
      } catch (cause) {
        await this.#fail('syncing the feedback log', cause);
        throw this.#failure ?? cause;
      }
    });
  }

  /** Stores what waits, then lets go of the file. */
  async close(): Promise<void> {
    if (this.#closed) return;
    try {
      if (this.#failure === undefined) await this.flush();
    } finally {
      this.#closed = true;
      clearTimeout(this.#timer);
      await this.#running;
      await this.#handle?.close().catch(() => undefined);
      this.#handle = undefined;
    }
  }

  /** Runs `work` in the loop once all that waits now is stored. */
  #chore(work: () => Promise<void>): Promise<void> {
    const failure = this.#closed
      ? new FinchError('FINCH_CLOSED', 'the feedback log is closed')
      : this.#failure;
    if (failure !== undefined) return Promise.reject(failure);
    return new Promise<void>((resolve, reject) => {
      this.#chores.push({
        after: this.#nextSequence,
        run: async () => {
          if (this.#failure !== undefined) reject(this.#failure);
          else await work().then(resolve, reject);
        },
      });
      this.#wake();
    });
  }

  #wake(): void {
    this.#running ??= this.#loop().finally(() => {
      this.#running = undefined;
      if (this.#queue.length + this.#chores.length > 0) this.#wake();
    });
  }

  async #loop(): Promise<void> {
    // Lets the appends of this turn share the first frame.
    await Promise.resolve();
    for (;;) {
      const chore = this.#chores[0];
      if (chore !== undefined && (this.#storedNext >= chore.after || this.#queue.length === 0)) {
        this.#chores.shift();
        await chore.run();
      } else if (this.#queue.length > 0) {
        await this.#writeFrame();
      } else {
        return;
      }
    }
  }

  async #writeFrame(): Promise<void> {
    const segment = this.#segments.at(-1);
    if (this.#failure !== undefined || this.#handle === undefined || segment === undefined) {
      this.#rejectWaiting();
      return;
    }
    let bytes = 0;
    let count = 0;
    while (
      count < this.#queue.length &&
      count < frameRecords &&
      (count === 0 || bytes < frameBytes)
    ) {
      bytes += (this.#queue[count] as Waiting<Tag>).payload.byteLength;
      count++;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    const first = this.#storedNext;
    let frame: Buffer;
    try {
      frame = encodeFrame(
        first,
        batch.map((waiting) => waiting.payload),
      );
      this.#dirty = true;
      await writeFully(this.#handle, frame, segment.bytes);
      const { sync } = this.#options;
      if (sync === 'each' && batch.some((waiting) => waiting.durable)) await this.#sync();
      else if (typeof sync === 'object') this.#syncLater(sync.intervalMs);
    } catch (cause) {
      this.#queue = [...batch, ...this.#queue];
      await this.#fail(`writing ${segment.file}`, cause);
      return;
    }
    segment.bytes += frame.length;
    this.#storedNext = first + count;
    try {
      this.#options.commit(
        first,
        batch.map((waiting) => waiting.tag),
      );
    } catch (cause) {
      const error = new FinchError(
        'FINCH_INTERNAL',
        `a stored record could not be applied: ${cause instanceof Error ? cause.message : String(cause)}`,
        { cause },
      );
      for (const waiting of batch) waiting.reject(error);
      return;
    }
    for (const waiting of batch) waiting.resolve();
  }

  async #sync(): Promise<void> {
    if (!this.#dirty) return;
    await this.#handle?.datasync();
    this.#dirty = false;
  }

  #syncLater(intervalMs: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // A failure has been told by onFailure.
      this.flush().catch(() => undefined);
    }, intervalMs);
    this.#timer.unref();
  }

  async #fail(action: string, cause: unknown): Promise<void> {
    const segment = this.#segments.at(-1);
    // What the failed write left would be replayed one day though its caller was told that it failed.
    await this.#handle?.truncate(segment?.bytes ?? 0).catch(() => undefined);
    this.#failure = ioError(action, cause);
    this.#rejectWaiting();
    this.#options.onFailure(this.#failure);
  }

  #rejectWaiting(): void {
    const waiting = this.#queue;
    this.#queue = [];
    this.#storedNext = this.#nextSequence;
    const error = this.#failure ?? new FinchError('FINCH_CLOSED', 'the feedback log is closed');
    for (const { reject } of waiting) reject(error);
  }

  async #begin(firstSequence: number): Promise<void> {
    const { folder, meta } = this.#options;
    const file = path.join(folder, segmentName(firstSequence));
    // An empty one of that name may be left from a crash while it was made.
    const handle = await open(file, 'w+');
    try {
      const head = encodeSegmentHead(firstSequence, meta);
      await writeFully(handle, head, 0);
      await handle.sync();
      await syncFolder(folder);
      this.#segments.push({ file, firstSequence, bytes: head.length });
      this.#handle = handle;
    } catch (error) {
      await handle.close().catch(() => undefined);
      throw error;
    }
  }
}
