import { type FileHandle, open } from 'node:fs/promises';
import { listSegments } from '../log-replay.js';
import { SegmentReader } from '../segment-reader.js';

/** A record of the log, with its number. */
export interface QueuedRecord {
  sequence: number;
  payload: Buffer;
}

/** Reads a log's records from the disk, in order, while it is written: what waits takes no memory. */
export class QueueReader {
  readonly #folder: string;
  #handle: FileHandle | undefined;
  #file = '';
  /** Over the bytes that the file had when it was last looked at. */
  #bytes: SegmentReader | undefined;
  #offset = 0;
  /** The number of the first record of the frame at `#offset`. */
  #next = 0;
  /** Records of the frame read last. */
  #frame: QueuedRecord[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Records after `after`, up to `stored`; fewer when `maxRecords` or `maxBytes` is reached, at least one if there is
   * one. The first has a number above `after + 1` when those before it are gone.
   */
  async read(
    after: number,
    stored: number,
    maxRecords: number,
    maxBytes: number,
  ): Promise<QueuedRecord[]> {
    const found: QueuedRecord[] = [];
    let bytes = 0;
    let next = after + 1;
    while (next <= stored) {
      const frame = await this.#frameOf(next);
      if (frame.length === 0) break;
      for (const record of frame) {
        if (record.sequence < next) continue;
        if (record.sequence > stored) return found;
        bytes += record.payload.length;
        if (found.length > 0 && (found.length >= maxRecords || bytes > maxBytes)) return found;
        found.push(record);
        next = record.sequence + 1;
      }
    }
    return found;
  }

  /** The number of the oldest record that is kept; undefined when there is none. */
  async oldest(): Promise<number | undefined> {
    return (await listSegments(this.#folder))[0]?.firstSequence;
  }

  async close(): Promise<void> {
    await this.#handle?.close().catch(() => undefined);
    this.#handle = undefined;
    this.#bytes = undefined;
    this.#frame = [];
    this.#file = '';
  }

  /** The frame that holds record `sequence`, or the first one after it; empty when there is none yet. */
  async #frameOf(sequence: number): Promise<QueuedRecord[]> {
    const [first, last] = [this.#frame[0], this.#frame.at(-1)];
    if (first !== undefined && last !== undefined) {
      if (first.sequence <= sequence && sequence <= last.sequence) return this.#frame;
    }
    if (this.#handle === undefined || sequence < this.#next) await this.#open(sequence);
    for (;;) {
      if (this.#handle === undefined) return [];
      const frame = await this.#bytes?.frame(this.#offset);
      if (frame === undefined) {
        if (await this.#grown(this.#handle)) continue;
        if (!(await this.#follow(sequence))) return [];
        continue;
      }
      this.#offset += frame.bytes;
      this.#next = frame.firstSequence + frame.payloads.length;
      if (this.#next <= sequence) continue;
      this.#frame = frame.payloads.map((payload, i) => ({
        sequence: frame.firstSequence + i,
        payload,
      }));
      return this.#frame;
    }
  }

  async #grown(handle: FileHandle): Promise<boolean> {
    const { size } = await handle.stat();
    if (size === this.#bytes?.size) return false;
    this.#bytes = new SegmentReader(handle, size);
    return true;
  }

  /** Goes on to the segment after the one read to its end; false when there is none. */
  async #follow(sequence: number): Promise<boolean> {
    const file = this.#file;
    const segments = await listSegments(this.#folder);
    const later = segments.find(({ firstSequence }) => firstSequence >= this.#next);
    if (later === undefined || later.file === file) return false;
    await this.#open(Math.max(sequence, later.firstSequence));
    return this.#file !== file;
  }

  async #open(sequence: number): Promise<void> {
    await this.close();
    const segments = await listSegments(this.#folder);
    const segment =
      segments.findLast(({ firstSequence }) => firstSequence <= sequence) ?? segments[0];
    if (segment === undefined) return;
    const handle = await open(segment.file, 'r');
    const { size } = await handle.stat();
    const bytes = new SegmentReader(handle, size);
    const head = await bytes.head();
    if (head.kind !== 'head') {
      await handle.close();
      return;
    }
    this.#handle = handle;
    this.#bytes = bytes;
    this.#file = segment.file;
    this.#offset = head.bytes;
    this.#next = segment.firstSequence;
  }
}
