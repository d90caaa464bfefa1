import type { Recovery } from '../log-replay.js';

/** Something that went another way than it should, and what was done about it. */
export interface ReplicaEvent {
  /** Unix milliseconds. */
  time: number;
  /**
   * - `'reloaded'`: this replica was behind the trimmed stream, or had other records, and took the snapshot in Redis;
   * - `'restored'`: Redis had lost the history, and this replica put its state there;
   * - `'redelivered'`: Redis had lost reports of this replica, which are delivered again;
   * - `'lost'`: reports that Redis had are gone from it, and from the folder too;
   * - `'origin'`: the folder is older than what was delivered from it, and goes on under a new name;
   * - `'refused'`: the stream holds a record that no replica can apply.
   */
  kind: 'reloaded' | 'restored' | 'redelivered' | 'lost' | 'origin' | 'refused';
  message: string;
}

/** Where a replica stands. */
export interface ReplicaHealth {
  /** Whether Redis is there and this replica follows the stream. */
  connected: boolean;
  /** Why not, or what went wrong last; undefined once all is well again. */
  lastError: { time: number; message: string } | undefined;
  /** This replica's name in the stream. */
  origin: string;
  /** The catalogue's keys begin with this. */
  keys: string;
  /** Names the history that stream ids count in; empty before the first contact with Redis. */
  epoch: string;
  /** The latest record applied: `<number>-0`. */
  streamId: string;
  /** Its number: records applied since the history began. */
  applied: number;
  /** Records in Redis that are not applied here yet, as last heard. */
  lag: number;
  /** Records of the stream that the snapshot in Redis covers, as last heard. */
  snapshot: number;
  /** Why the latest snapshot could not be put into Redis. */
  snapshotError: string | undefined;
  /** Records that told again what had been told, and records that were malformed: read, without effect. */
  duplicates: number;
  refused: number;
  /** Reports on the disk here that Redis does not have yet, and how many there may be. */
  waiting: number;
  maxWaiting: number;
  /** Reports of this replica that Redis has. */
  delivered: number;
  /** Whether reports can be stored in the folder, and why not. */
  durable: boolean;
  reason: string | undefined;
  path: string;
  logBytes: number;
  /** Decisions made here (or fetched) that may be reported on without asking Redis. */
  decisions: number;
  /** Reports remembered to know them again. */
  reports: number;
  /** Decisions that are not in Redis yet, and those too large for it (256 KiB). */
  unshared: number;
  /** Why decisions could not be shared at the latest try: they can be reported where they were made. */
  sharingError: string | undefined;
  oversized: number;
  /** What was cut off at opening. */
  recovered: readonly Recovery[];
  /** The latest failure to keep the state in the folder. */
  compactionError: string | undefined;
  /** The last 32, oldest first. */
  events: readonly ReplicaEvent[];
}
