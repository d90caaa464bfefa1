import { randomUUID } from 'node:crypto';
import { FinchError } from '../../errors.js';
import type { BanditState } from '../bandit.js';
import { reasonOf } from '../files.js';
import { Changes } from './changes.js';
import type { DecisionSharing } from './decision-sharing.js';
import { type OriginName, writeOrigin } from './origin-file.js';
import { type Address, movedTo, RedisLink, type Reply, text, texts } from './redis-link.js';
import { downloadSnapshot, uploadDraft } from './redis-snapshot.js';
import type { ReplicaEvent } from './replica-health.js';
import { type CheckedReplicaOptions, checkReplicaMeta } from './replica-options.js';
import { Diverged, type ReplicatedState } from './replicated-state.js';
import type { ReportQueue } from './report-queue.js';
import { commitSnapshot, deliver, found, putBack, unlock } from './scripts.js';
import { lookAt, type Seen } from './seen.js';
import { streamEntries } from './stream-entry.js';

const layoutVersion = '2';
const blockMs = 1000;
const lockMs = '30000';
// The state in the folder is this old at most, where it changes.
const keepMs = 60_000;
const maxEvents = 32;
const batchBytes = 256 * 1024;
const [leastPauseMs, mostPauseMs] = [50, 5000];
const configurationCodes: readonly string[] = [
  'FINCH_DIMENSION',
  'FINCH_INVALID_ARGUMENT',
  'FINCH_VERSION',
  'FINCH_DEVICE',
];

interface Parts<B extends BanditState> extends CheckedReplicaOptions {
  state: ReplicatedState<B>;
  queue: ReportQueue;
  origin: OriginName;
  folder: string;
  sharing: DecisionSharing;
  now(): number;
  /** The state as it is kept in the folder. */
  saved(): Uint8Array[];
}

/**
 * Keeps one replica in step with Redis: connects, and connects again; reads the stream and applies it; delivers the
 * queue; writes snapshots; finds out when Redis lost something and mends what can be mended.
 */
export class Replication<B extends BanditState> {
  connected = false;
  lastError: { time: number; message: string } | undefined;
  /** Why the latest snapshot could not be written. */
  snapshotError: string | undefined;
  /** Why decisions made here could not be shared at the latest try. */
  sharingError: string | undefined;
  /** What no repetition will mend: the options, or a second process with a copy of the folder. */
  refusal: FinchError | undefined;
  /** Whether another process delivers from a copy of this folder. */
  taken = false;
  readonly events: ReplicaEvent[] = [];
  /** Notified whenever something moved. */
  readonly changes = new Changes();
  readonly #parts: Parts<B>;
  readonly #stop = new AbortController();
  readonly #wake = new Changes();
  readonly #session = randomUUID();
  #link: RedisLink | undefined;
  #running: Promise<void> = Promise.resolve();
  /** Records in Redis, as last heard. */
  #total = 0;
  /** The snapshot in Redis, as last heard. */
  #snapshot = { count: 0, token: '' };
  /** The last of this origin's records that Redis is known to have. */
  #acknowledged = 0;
  #tookOver = false;
  /** When the state was last kept in the folder, and how far it was. */
  #kept = { at: performance.now(), count: 0 };
  #mustLoad = false;
  #snapshotting: Promise<void> | undefined;
  #nextSnapshotTry = 0;
  readonly #batch: number;

  constructor(parts: Parts<B>, dimension: number) {
    this.#parts = parts;
    this.#batch = Math.min(512, Math.max(16, Math.floor(batchBytes / (4 * dimension + 512))));
    parts.queue.onStored = () => this.#wake.notify();
  }

  get origin(): string {
    return this.#parts.origin.id;
  }

  get lag(): number {
    return Math.max(0, this.#total - this.#parts.state.count);
  }

  get snapshotCount(): number {
    return this.#snapshot.count;
  }

  /** The connection for commands, while there is one. */
  get link(): RedisLink | undefined {
    return this.#link;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** There is something to deliver or to share. */
  wake(): void {
    this.#wake.notify();
  }

  /** How many records Redis has; undefined while it is away. */
  async totalNow(): Promise<number | undefined> {
    const link = this.#link;
    if (link === undefined) return undefined;
    const [epoch, count] = texts(
      await link.command(['HMGET', this.#parts.keys.state, 'epoch', 'count']),
    );
    return epoch === this.#parts.state.epoch ? Number(count) : undefined;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#link?.destroy();
    await this.#running;
    this.changes.notify();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let failures = 0;
    let address: Address | undefined;
    while (!signal.aborted) {
      let pause = leastPauseMs;
      const since = performance.now();
      try {
        await this.#connection(address);
      } catch (error) {
        if (performance.now() - since > mostPauseMs) failures = 0;
        if (error instanceof Diverged) {
          failures++;
          if (failures > 1) this.#failed(error);
        } else if (!signal.aborted) {
          address = movedTo(error);
          failures++;
          if (address === undefined || failures > 1) this.#failed(error);
        }
        pause = Math.min(mostPauseMs, leastPauseMs * 2 ** Math.min(failures, 10));
        if (error instanceof FinchError && configurationCodes.includes(error.code)) {
          this.refusal = error;
          pause = mostPauseMs;
        }
      }
      this.connected = false;
      this.changes.notify();
      if (this.taken) return;
      // Not all at once when Redis is back.
      await new Changes().next(signal, pause * (0.5 + Math.random() / 2));
    }
  }

  /** Reports do not wait for decisions that cannot be shared; a connection that is lost ends both. */
  async #share(link: RedisLink, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#parts.sharing.run(link, signal);
        this.sharingError = undefined;
      } catch (error) {
        this.sharingError = reasonOf(error) || String(error);
        await new Changes().next(signal, mostPauseMs);
      }
    }
  }

  #failed(error: unknown): void {
    this.lastError = { time: this.#parts.now(), message: reasonOf(error) || String(error) };
  }

  async #connection(address: Address | undefined): Promise<void> {
    const { redis, limits } = this.#parts;
    const ending = new AbortController();
    const links: RedisLink[] = [];
    let work: Array<Promise<unknown>> = [];
    const onStop = () => {
      ending.abort();
      for (const link of links) link.destroy();
    };
    this.#stop.signal.addEventListener('abort', onStop, { once: true });
    try {
      // Reading blocks its connection, so that there are two.
      const open = async () => {
        const { signal } = ending;
        const link = await RedisLink.connect(redis, limits.commandTimeoutMs, address, signal);
        links.push(link);
        return link;
      };
      const commands = await open();
      const reads = await open();
      await this.#attach(commands);
      this.#link = commands;
      this.connected = true;
      this.refusal = undefined;
      this.changes.notify();
      work = [
        commands.ended(),
        reads.ended(),
        this.#read(reads, commands),
        this.#deliver(commands, ending.signal),
        this.#share(commands, ending.signal),
      ];
      await Promise.race(work);
    } finally {
      this.#link = undefined;
      this.#stop.signal.removeEventListener('abort', onStop);
      onStop();
      await Promise.allSettled(work);
      await this.#snapshotting?.catch(() => undefined);
    }
  }

  // --- Where Redis and this replica stand to each other -----------------------------------------------------------

  /** Brings this replica to a point of Redis's history, or, where Redis lost its history, Redis to this replica's. */
  async #attach(link: RedisLink): Promise<void> {
    const { state, keys, meta } = this.#parts;
    for (;;) {
      const seen = await lookAt(link, keys, this.origin);
      if (seen.epoch === '') {
        if (state.count > 0) {
          await this.#putBack(
            link,
            seen,
            'Redis has lost everything (it was flushed, or is another)',
          );
        } else {
          const begun = await link.script(
            found,
            [keys.state, keys.stream, keys.origins, keys.snapshot],
            [randomUUID(), layoutVersion, meta],
          );
          // Unless another replica was quicker, what is there is nobody's history.
          if (begun === 0 && (await lookAt(link, keys, this.origin)).epoch === '') {
            throw new FinchError(
              'FINCH_CORRUPT',
              `${keys.state} is there but no replica wrote it; delete it, or choose another tenant or catalogue`,
            );
          }
        }
        continue;
      }
      if (seen.version !== layoutVersion) {
        throw new FinchError(
          'FINCH_VERSION',
          `${keys.state} has version ${seen.version}; this release reads version ${layoutVersion}. Run the same ` +
            'release in all replicas',
        );
      }
      checkReplicaMeta(seen.meta, meta, keys.state);
      const same = seen.epoch === state.epoch;
      const behind = same && seen.count < state.count;
      if (behind && seen.token === this.#snapshot.token) {
        await this.#putBack(link, seen, `Redis went back to record ${seen.count}`);
        continue;
      }
      if (!same && state.count > 0 && seen.token === '') {
        await this.#putBack(link, seen, 'Redis was emptied and a new history begun in it');
        continue;
      }
      const follows =
        same &&
        !this.#mustLoad &&
        (state.count === seen.count
          ? state.chain === seen.chain
          : state.count < seen.count && (seen.first ?? Infinity) <= state.count + 1);
      if (!follows) await this.#load(link, seen, same);
      this.#mustLoad = false;
      this.#total = seen.count;
      this.#knows(seen.snapshot, seen.token);
      await this.#resumeDelivery(seen);
      return;
    }
  }

  /** Takes the snapshot in Redis in place of what this replica has. */
  async #load(link: RedisLink, seen: Seen, same: boolean): Promise<void> {
    const { state, keys } = this.#parts;
    const was = state.count;
    if (seen.token === '') {
      if (seen.count > 0 && seen.first !== 1) {
        throw new Error(`the beginning of ${keys.stream} is gone, and there is no snapshot`);
      }
      state.reset(seen.epoch);
    } else {
      const { bytes } = await downloadSnapshot(link, keys);
      state.load(seen.epoch, bytes, keys.snapshot);
    }
    if (was === 0) return;
    const why = !same
      ? 'Redis has another history'
      : was > seen.count
        ? `Redis went back to record ${seen.count}`
        : was < state.count
          ? 'this replica was behind the trimmed stream'
          : 'the stream did not go on from what this replica had';
    this.#event('reloaded', `${why}: from record ${was} to the snapshot at ${state.count}`);
  }

  async #putBack(link: RedisLink, seen: Seen, why: string): Promise<void> {
    const { state, keys, meta } = this.#parts;
    const { count, chain, time } = state;
    const origins = [...state.origins].flatMap(([id, { sequence, count }]) => [
      id,
      `${sequence} ${count}`,
    ]);
    const epoch = randomUUID();
    const token = await uploadDraft(link, keys, state.encode());
    const reply = await link.script(
      putBack,
      [keys.state, keys.stream, keys.origins, keys.snapshot, keys.draft(token)],
      [
        seen.epoch,
        seen.token,
        epoch,
        layoutVersion,
        meta,
        String(count),
        chain,
        String(time),
        token,
        ...origins,
      ],
    );
    if (text(reply) !== 'ok') return;
    state.epoch = epoch;
    this.#snapshot = { count, token };
    this.#event('restored', `${why}; this replica put its state at record ${count} there`);
  }

  /** Finds where delivery goes on: at what Redis says it has. */
  async #resumeDelivery(seen: Seen): Promise<void> {
    const { queue, origin, folder } = this.#parts;
    let { last } = seen;
    if (last > queue.stored) {
      const old = origin.id;
      Object.assign(origin, await writeOrigin(folder, queue.stored));
      this.#tookOver = false;
      last = 0;
      this.#event(
        'origin',
        `Redis has ${seen.last} reports of ${old} and the folder ${queue.stored}: it is older than what was delivered ` +
          `from it (a backup, or a power cut without sync 'each'). It goes on as ${origin.id}`,
      );
    }
    this.#acknowledged = last;
    const from = Math.max(last, origin.base);
    if (from < queue.delivered) {
      const gone = Math.max(0, queue.floor - from);
      const again = queue.delivered - from - gone;
      if (again > 0) {
        this.#event(
          'redelivered',
          `Redis no longer has ${again} delivered reports; they are delivered again`,
        );
      }
    }
    if (from < queue.floor) {
      this.#event(
        'lost',
        `Redis no longer has ${queue.floor - from} reports that were delivered from here, and the folder keeps them no ` +
          'longer (retainMs): they are lost',
      );
    }
    queue.rewind(Math.max(from, queue.floor), seen.count);
    queue.coveredTo(seen.snapshot);
  }

  // --- Reading ----------------------------------------------------------------------------------------------------

  async #read(reads: RedisLink, commands: RedisLink): Promise<never> {
    const { state, keys } = this.#parts;
    let polled = 0;
    let silent = 0;
    for (;;) {
      const from = `${state.count}-0`;
      const reply = await reads.command(
        [
          'XREAD',
          'COUNT',
          String(this.#batch),
          'BLOCK',
          String(blockMs),
          'STREAMS',
          keys.stream,
          from,
        ],
        blockMs,
      );
      const entries = streamEntries(reply);
      if (entries.length > 0) {
        silent = 0;
        this.#apply(entries);
      }
      if (entries.length === 0 || performance.now() - polled > blockMs) {
        await this.#poll(commands);
        polled = performance.now();
        // Records that are there and do not come: they were trimmed.
        if (entries.length === 0 && this.lag > 0 && ++silent > 1) {
          throw new Diverged(`record ${state.count + 1} is gone from the stream`);
        }
      }
      this.#snapshotIfDue(commands);
      this.#keepIfDue();
      this.lastError = undefined;
      this.changes.notify();
    }
  }

  /** Keeps the state in the folder, for an opening without Redis and so that the log does not grow. */
  #keepIfDue(): void {
    const { state, queue, saved } = this.#parts;
    const isOld = performance.now() - this.#kept.at > keepMs && state.count !== this.#kept.count;
    if (!isOld && !queue.compactable) return;
    this.#kept = { at: performance.now(), count: state.count };
    queue.saveSoon(saved);
  }

  #apply(entries: ReturnType<typeof streamEntries>): void {
    const { state } = this.#parts;
    const { refused } = state;
    try {
      state.apply(entries);
    } catch (error) {
      // A later release's record stays ahead; for anything else what is in Redis decides.
      this.#mustLoad = !(error instanceof FinchError && error.code === 'FINCH_VERSION');
      throw error;
    }
    this.#total = Math.max(this.#total, state.count);
    if (state.refused > refused) {
      this.#event(
        'refused',
        `${state.refused - refused} records before ${state.count} are malformed`,
      );
    }
  }

  async #poll(link: RedisLink): Promise<void> {
    const { state, keys } = this.#parts;
    const [epoch, count, chain, snapshot, token] = texts(
      await link.command(['HMGET', keys.state, 'epoch', 'count', 'chain', 'snapshot', 'token']),
    );
    if (epoch !== state.epoch) throw new Diverged('Redis has another history');
    this.#total = Number(count);
    if (this.#total < state.count) throw new Diverged(`Redis went back to record ${count}`);
    if (this.#total === state.count && chain !== state.chain) {
      this.#mustLoad = true;
      throw new Diverged(`record ${count} in Redis is of another history`);
    }
    this.#knows(Number(snapshot), token ?? '');
  }

  #knows(count: number, token: string): void {
    this.#snapshot = { count, token };
    this.#parts.queue.coveredTo(count);
  }

  // --- Delivering -------------------------------------------------------------------------------------------------

  async #deliver(link: RedisLink, signal: AbortSignal): Promise<void> {
    const { queue, keys, state } = this.#parts;
    while (!signal.aborted) {
      const records =
        queue.delivered < queue.stored ? await queue.next(this.#batch, batchBytes) : [];
      if (records.length === 0) {
        // Woken by the next stored report; the time is for a disk that shows it a little later.
        const behind = queue.delivered < queue.stored;
        await this.#wake.next(signal, behind ? 20 : undefined);
        continue;
      }
      const reply = await link.script(
        deliver,
        [keys.state, keys.stream, keys.origins, keys.session(this.origin)],
        [
          state.epoch,
          this.origin,
          this.#session,
          this.#tookOver ? '0' : '1',
          String(this.#acknowledged),
          ...records.flatMap(({ sequence, payload }) => [String(sequence), payload]),
        ],
      );
      this.#delivered(reply);
    }
  }

  #delivered(reply: Reply): void {
    const { queue } = this.#parts;
    const [how, last, count] = texts(reply);
    switch (how) {
      case 'ok':
        if (Number(last) > queue.stored) throw new Diverged('Redis has later reports of this name');
        this.#tookOver = true;
        this.#acknowledged = Number(last);
        this.#total = Math.max(this.#total, Number(count));
        queue.confirm(this.#acknowledged, Number(count));
        this.changes.notify();
        return;
      case 'taken':
        this.taken = true;
        this.refusal = new FinchError(
          'FINCH_IO',
          `another process delivers as ${this.origin}: it has a copy of the folder ${this.#parts.folder}. Give each ` +
            'replica a folder of its own (an empty one will do), and open this one again once the other is closed',
        );
        throw this.refusal;
      case 'behind':
        throw new Diverged(`Redis went back to report ${last} of this replica`);
      default:
        throw new Diverged('Redis has another history');
    }
  }

  // --- Snapshots --------------------------------------------------------------------------------------------------

  #snapshotIfDue(link: RedisLink): void {
    const { state, limits } = this.#parts;
    if (
      this.#snapshotting !== undefined ||
      state.count - this.#snapshot.count < limits.snapshotEvery ||
      performance.now() < this.#nextSnapshotTry
    ) {
      return;
    }
    this.#nextSnapshotTry = performance.now() + blockMs;
    this.#snapshotting = this.#writeSnapshot(link)
      .catch((error: unknown) => {
        // A connection that ended says so elsewhere; Redis without room for it is told here.
        if (!link.isDestroyed) this.snapshotError = reasonOf(error);
      })
      .finally(() => {
        this.#snapshotting = undefined;
      });
  }

  async #writeSnapshot(link: RedisLink): Promise<void> {
    const { state, keys, limits } = this.#parts;
    const lock = randomUUID();
    if ((await link.command(['SET', keys.snapshotLock, lock, 'NX', 'PX', lockMs])) === null) return;
    try {
      const there = await link.command(['HGET', keys.state, 'snapshot']);
      if (state.count - Number(text(there)) < limits.snapshotEvery) return;
      const { epoch, count, chain } = state;
      const parts = state.encode();
      const token = await uploadDraft(link, keys, parts, async () => {
        await link.command(['PEXPIRE', keys.snapshotLock, lockMs]);
      });
      const reply = await link.script(
        commitSnapshot,
        [keys.state, keys.stream, keys.snapshot, keys.draft(token)],
        [epoch, String(count), chain, token, String(limits.keepRecords)],
      );
      this.snapshotError = undefined;
      if (text(reply) === 'ok') this.#knows(count, token);
    } finally {
      await link.script(unlock, [keys.snapshotLock], [lock]);
    }
  }

  #event(kind: ReplicaEvent['kind'], message: string): void {
    this.events.push({ time: this.#parts.now(), kind, message });
    if (this.events.length > maxEvents) this.events.shift();
  }
}
