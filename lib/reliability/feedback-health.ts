import type { Recovery } from './log-replay.js';

/** Whether feedback is being kept, and how much of it there is. */
export interface FeedbackHealth {
  /** Whether reports are being stored. */
  durable: boolean;
  /** Why not. */
  reason: string | undefined;
  /** The folder, absolute; undefined in memory. */
  path: string | undefined;
  /** The latest record's number. */
  sequence: number;
  /** Decisions that may be reported on. */
  decisions: number;
  /** Reports remembered. */
  reports: number;
  /** Records not yet written. */
  waiting: number;
  /** Outcomes accepted that are in memory only, because the disk refuses. */
  unsaved: number;
  logBytes: number;
  snapshot: { sequence: number; created: number; bytes: number } | undefined;
  /** What was cut off at opening. */
  recovered: readonly Recovery[];
  /** The latest failure to write a snapshot, until one succeeds. */
  compactionError: string | undefined;
}
