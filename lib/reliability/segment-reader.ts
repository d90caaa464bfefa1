import type { FileHandle } from 'node:fs/promises';
import {
  decodeFrame,
  decodeFrameHead,
  decodeSegmentHead,
  frameHeadBytes,
  frameMagic,
  maxFrameBytes,
  type SegmentHead,
  segmentFixedBytes,
} from './log-frames.js';

const windowBytes = 4 * 1024 * 1024;

/** Reads one segment front to back through a window, so that a log of any size takes a few megabytes. */
export class SegmentReader {
  readonly size: number;
  readonly #handle: FileHandle;
  #window: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(handle: FileHandle, size: number) {
    this.#handle = handle;
    this.size = size;
  }

  /** The head, however long its meta is. */
  async head(): Promise<SegmentHead> {
    const fixed = await this.read(0, segmentFixedBytes);
    if (fixed.length < segmentFixedBytes) return decodeSegmentHead(fixed);
    const meta = fixed.readUInt32LE(12);
    // A wild length must not allocate: such a head is damaged, or of a file cut short.
    if (meta > windowBytes) return { kind: 'corrupt' };
    return decodeSegmentHead(await this.read(0, segmentFixedBytes + meta + 4));
  }

  /** The whole frame at `offset` (its records are views that the next read may overwrite), or undefined. */
  async frame(
    offset: number,
  ): Promise<{ firstSequence: number; payloads: Buffer[]; bytes: number } | undefined> {
    const head = decodeFrameHead(await this.read(offset, frameHeadBytes));
    if (head === undefined || offset + head.bytes > this.size) return undefined;
    const payloads = decodeFrame(await this.read(offset, head.bytes));
    if (payloads === undefined) return undefined;
    return { firstSequence: head.firstSequence, payloads, bytes: head.bytes };
  }

  /** Where the next whole frame numbered `sequence` or later begins, from `offset` on; undefined when there is none. */
  async findFrame(offset: number, sequence: number): Promise<number | undefined> {
    let from = offset;
    while (from + frameHeadBytes <= this.size) {
      const part = await this.read(from, Math.min(windowBytes, this.size - from));
      // A copy: looking at a candidate may move the window.
      const bytes = Buffer.from(part);
      for (let i = bytes.indexOf(frameMagic); i >= 0; i = bytes.indexOf(frameMagic, i + 1)) {
        const frame = await this.frame(from + i);
        if (frame !== undefined && frame.firstSequence >= sequence) return from + i;
      }
      if (from + bytes.length >= this.size) break;
      from += bytes.length - (frameMagic.length - 1);
    }
    return undefined;
  }

  /** Up to `length` bytes at `offset`; fewer only at the end of the file. */
  async read(offset: number, length: number): Promise<Buffer> {
    const end = Math.min(offset + Math.min(length, maxFrameBytes + frameHeadBytes), this.size);
    if (offset >= end) return Buffer.alloc(0);
    if (offset < this.#start || end > this.#start + this.#window.length) {
      const want = Math.min(Math.max(windowBytes, end - offset), this.size - offset);
      const window = Buffer.allocUnsafe(want);
      let filled = 0;
      while (filled < want) {
        const { bytesRead } = await this.#handle.read(
          window,
          filled,
          want - filled,
          offset + filled,
        );
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      this.#window = window.subarray(0, filled);
      this.#start = offset;
    }
    return this.#window.subarray(offset - this.#start, end - this.#start);
  }
}
