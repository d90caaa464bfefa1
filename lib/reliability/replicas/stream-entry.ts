import { createHash } from 'node:crypto';
import { FinchError } from '../../errors.js';
import type { Reply } from './redis-link.js';
import { text } from './redis-link.js';

/** A record as it stands in the stream. */
export interface StreamEntry {
  /** Its number, from 1 without gaps: the stream id is `<count>-0`. */
  count: number;
  /** The replica that reported it, and its number there, as they are written. */
  origin: string;
  sequence: string;
  /** When Redis took it: Unix milliseconds, never falling. As it is written. */
  time: string;
  /** The record, as in a feedback log. */
  record: Buffer;
  /** Ties it to everything before it. */
  chain: string;
}

/** The chain after a record: what `deliver` computes in Redis. */
export function chainAfter(chain: string, entry: StreamEntry): string {
  return createHash('sha1')
    .update(`${chain}:${entry.origin}:${entry.sequence}:${entry.time}:`)
    .update(entry.record)
    .digest('hex');
}

/** The entries of one stream in an XREAD's reply (null: none came). */
export function streamEntries(reply: Reply): StreamEntry[] {
  if (reply === null) return [];
  const entries = list(list(list(reply)[0])[1]);
  return entries.map((entry) => {
    const [id, fields] = list(entry);
    const values = new Map<string, Buffer>();
    const flat = list(fields);
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const value = flat[i + 1];
      if (Buffer.isBuffer(value)) values.set(text(flat[i]), value);
    }
    const match = /^(\d+)-0$/.exec(text(id));
    const record = values.get('d');
    if (match === null || record === undefined) throw foreign(text(id));
    return {
      count: Number(match[1]),
      origin: text(values.get('o')),
      sequence: text(values.get('s')),
      time: text(values.get('t')),
      record,
      chain: text(values.get('h')),
    };
  });
}

function list(reply: Reply | undefined): Reply[] {
  if (!Array.isArray(reply)) throw new TypeError('Redis gave no list where one is due');
  return reply;
}

function foreign(id: string): FinchError {
  return new FinchError(
    'FINCH_CORRUPT',
    `the stream has an entry ${id} that no replica wrote; XDEL it, set the stream's last id back to the replicas' ` +
      '(XSETID stream, health().streamId), and let nothing else write to the keys',
  );
}
