import { crc32 } from 'node:zlib';

/**
 * The bytes of a log segment (docs/feedback-format.md): a head, then frames. A frame is what one write commits: its
 * records are there together or not at all.
 */

export const segmentMagic = Buffer.from('FINCHLOG', 'latin1');
export const segmentVersion = 1;
/** magic 8, version u32, meta length u32, first sequence u64; then meta, then a CRC-32 u32 of all before. */
export const segmentFixedBytes = 24;

export const frameMagic = Buffer.from([0xf1, 0x9c, 0x4c, 0x0a]);
/** magic 4, CRC-32 u32 of what follows it, body length u32, record count u32, first sequence u64. */
export const frameHeadBytes = 24;
/** A frame's body at most: no reader has to hold more. */
export const maxFrameBytes = 256 * 1024 * 1024;

export function encodeSegmentHead(firstSequence: number, meta: string): Buffer {
  const text = Buffer.from(meta);
  const head = Buffer.alloc(segmentFixedBytes + text.length + 4);
  segmentMagic.copy(head);
  head.writeUInt32LE(segmentVersion, 8);
  head.writeUInt32LE(text.length, 12);
  head.writeBigUInt64LE(BigInt(firstSequence), 16);
  text.copy(head, segmentFixedBytes);
  head.writeUInt32LE(crc32(head.subarray(0, head.length - 4)), head.length - 4);
  return head;
}

export type SegmentHead =
  | { kind: 'head'; firstSequence: number; meta: string; bytes: number }
  | { kind: 'version'; version: number }
  /** The file ends inside the head. */
  | { kind: 'short' }
  | { kind: 'corrupt' };

export function decodeSegmentHead(buffer: Buffer): SegmentHead {
  const known = Math.min(buffer.length, segmentMagic.length);
  if (!buffer.subarray(0, known).equals(segmentMagic.subarray(0, known)))
    return { kind: 'corrupt' };
  if (buffer.length < segmentFixedBytes) return { kind: 'short' };
  const version = buffer.readUInt32LE(8);
  const end = segmentFixedBytes + buffer.readUInt32LE(12);
  if (buffer.length < end + 4) return { kind: 'short' };
  if (crc32(buffer.subarray(0, end)) !== buffer.readUInt32LE(end)) return { kind: 'corrupt' };
  if (version !== segmentVersion) return { kind: 'version', version };
  return {
    kind: 'head',
    firstSequence: Number(buffer.readBigUInt64LE(16)),
    meta: buffer.toString('utf8', segmentFixedBytes, end),
    bytes: end + 4,
  };
}

/** One frame of `payloads`, numbered from `firstSequence`; each has a u32 length before it. */
export function encodeFrame(firstSequence: number, payloads: readonly Uint8Array[]): Buffer {
  let body = 0;
  for (const payload of payloads) body += 4 + payload.byteLength;
  const frame = Buffer.allocUnsafe(frameHeadBytes + body);
  frameMagic.copy(frame);
  frame.writeUInt32LE(body, 8);
  frame.writeUInt32LE(payloads.length, 12);
  frame.writeBigUInt64LE(BigInt(firstSequence), 16);
  let offset = frameHeadBytes;
  for (const payload of payloads) {
    offset = frame.writeUInt32LE(payload.byteLength, offset);
    frame.set(payload, offset);
    offset += payload.byteLength;
  }
  frame.writeUInt32LE(crc32(frame.subarray(8)), 4);
  return frame;
}

export interface Frame {
  firstSequence: number;
  count: number;
  /** Head and body. */
  bytes: number;
}

/** The sizes in a frame's head, or undefined when it cannot be one. */
export function decodeFrameHead(head: Buffer): Frame | undefined {
  if (head.length < frameHeadBytes || !head.subarray(0, 4).equals(frameMagic)) return undefined;
  const body = head.readUInt32LE(8);
  const count = head.readUInt32LE(12);
  if (body > maxFrameBytes || count === 0 || count * 4 > body) return undefined;
  return {
    firstSequence: Number(head.readBigUInt64LE(16)),
    count,
    bytes: frameHeadBytes + body,
  };
}

/** The records of a whole frame (views), or undefined when its checksum or structure fails. */
export function decodeFrame(frame: Buffer): Buffer[] | undefined {
  const head = decodeFrameHead(frame);
  if (head === undefined || frame.length !== head.bytes) return undefined;
  if (crc32(frame.subarray(8)) !== frame.readUInt32LE(4)) return undefined;
  const payloads: Buffer[] = [];
  let offset = frameHeadBytes;
  for (let i = 0; i < head.count; i++) {
    if (offset + 4 > frame.length) return undefined;
    const length = frame.readUInt32LE(offset);
    offset += 4;
    if (offset + length > frame.length) return undefined;
    payloads.push(frame.subarray(offset, offset + length));
    offset += length;
  }
  return offset === frame.length ? payloads : undefined;
}
