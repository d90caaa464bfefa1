import { open, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { FinchError } from '../errors.js';
import { ByteReader, ByteWriter } from './bytes.js';
import { ioError, reasonOf, syncFolder, writeFully } from './files.js';
import type { DecisionRecord } from './records.js';

export const snapshotName = 'feedback.snapshot';
const magic = Buffer.from('FINCHSNP', 'latin1');
const version = 1;
// magic 8, version u32, meta length u32, sequence u64, created f64.
const fixedBytes = 32;
// Length of all before u64, CRC-32 of all before u32.
const trailerBytes = 12;
const chunkBytes = 1 << 18;

/** A decision kept for reports to come. */
export interface StoredDecision extends DecisionRecord {
  sequence: number;
  /** Tools whose outcome is in, with their record's sequence. */
  reported: Map<string, number> | undefined;
}

/** A report kept to know it again. */
export interface StoredReport {
  sequence: number;
  time: number;
}

/** Everything that the records up to `sequence` amount to. Later entries of the maps are left out when written. */
export interface SnapshotState {
  sequence: number;
  /** Unix milliseconds. */
  created: number;
  meta: string;
  bandit: Uint8Array;
  decisions: ReadonlyMap<string, StoredDecision>;
  reports: ReadonlyMap<string, StoredReport>;
}

/**
 * Writes a snapshot beside the old one, syncs it and renames it over. The maps may change meanwhile: entries with a later
 * sequence are skipped, removed ones are those that reading would remove again.
 *
 * @returns its bytes.
 * @throws FinchError FINCH_IO; the old snapshot is then still there.
 */
export async function writeSnapshot(folder: string, state: SnapshotState): Promise<number> {
  const file = path.join(folder, snapshotName);
  const draft = `${file}.new`;
  try {
    const handle = await open(draft, 'w');
    let size = 0;
    let checksum = 0;
    const write = async (bytes: Uint8Array) => {
      checksum = crc32(bytes, checksum);
      await writeFully(handle, bytes, size);
      size += bytes.byteLength;
    };
    try {
      const meta = Buffer.from(state.meta);
      const head = new ByteWriter();
      head.bytes(magic).u32(version).u32(meta.length).u64(state.sequence).f64(state.created);
      await write(head.bytes(meta).u64(state.bandit.byteLength).done());
      for (let from = 0; from < state.bandit.byteLength; from += chunkBytes) {
        await write(state.bandit.subarray(from, from + chunkBytes));
      }
      let part = new ByteWriter(chunkBytes + 65536);
      for (const decision of state.decisions.values()) {
        if (decision.sequence > state.sequence) continue;
        putDecision(part, decision, state.sequence);
        if (part.size < chunkBytes) continue;
        await write(part.done());
        part = new ByteWriter(chunkBytes + 65536);
      }
      part.u8(0);
      for (const [key, report] of state.reports) {
        if (report.sequence > state.sequence) continue;
        part.u8(1).string(key).u64(report.sequence).f64(report.time);
        if (part.size < chunkBytes) continue;
        await write(part.done());
        part = new ByteWriter(chunkBytes + 65536);
      }
      await write(part.u8(0).done());
      await write(new ByteWriter().u64(size).done());
      await writeFully(handle, new ByteWriter().u32(checksum).done(), size);
      size += 4;
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
    await syncFolder(folder);
    return size;
  } catch (cause) {
    await unlink(draft).catch(() => undefined);
    throw ioError(`writing ${file}`, cause);
  }
}

function putDecision(writer: ByteWriter, decision: StoredDecision, sequence: number): void {
  writer.u8(1).string(decision.id).u64(decision.sequence).f64(decision.time);
  writer.u32(decision.x.length).floats(decision.x).u32(decision.toolIds.length);
  for (const [i, id] of decision.toolIds.entries()) {
    const reported = decision.reported?.get(id) ?? 0;
    writer
      .string(id)
      .f32(decision.priors[i] as number)
      .u64(reported > sequence ? 0 : reported);
  }
}

/** What {@link readSnapshot} gives: maps of the caller's own. */
export interface ReadSnapshot extends SnapshotState {
  bytes: number;
  decisions: Map<string, StoredDecision>;
  reports: Map<string, StoredReport>;
}

/**
 * Reads and checks the folder's snapshot; undefined when there is none.
 *
 * @throws FinchError FINCH_CORRUPT, FINCH_VERSION, FINCH_IO.
 */
export async function readSnapshot(folder: string): Promise<ReadSnapshot | undefined> {
  const file = path.join(folder, snapshotName);
  let buffer: Buffer;
  let checksum = 0;
  try {
    const handle = await open(file, 'r');
    try {
      const { size } = await handle.stat();
      buffer = Buffer.allocUnsafe(size);
      for (let from = 0; from < size; ) {
        const { bytesRead } = await handle.read(
          buffer,
          from,
          Math.min(chunkBytes, size - from),
          from,
        );
        if (bytesRead === 0) throw new Error('it became shorter while it was read');
        const end = Math.min(from + bytesRead, size - 4);
        if (end > from) checksum = crc32(buffer.subarray(from, end), checksum);
        from += bytesRead;
      }
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw ioError(`reading ${file}`, cause);
  }
  const corrupt = (why: string, cause?: unknown) =>
    new FinchError(
      'FINCH_CORRUPT',
      `${file} is corrupt: ${why}. Restore it from a backup, or open with onCorruption: 'cut' to set it aside and go on ` +
        'with what the log holds',
      { cause },
    );
  if (buffer.length < fixedBytes + trailerBytes) throw corrupt(`it has ${buffer.length} bytes`);
  if (!buffer.subarray(0, 8).equals(magic)) throw corrupt('it does not begin as a snapshot');
  if (buffer.readUInt32LE(buffer.length - 4) !== checksum) throw corrupt('its checksum differs');
  const found = buffer.readUInt32LE(8);
  if (found !== version) {
    throw new FinchError(
      'FINCH_VERSION',
      `${file} has version ${found}; this release reads version ${version}. Open it with the release that wrote it`,
    );
  }
  try {
    return await parse(buffer);
  } catch (cause) {
    throw corrupt(reasonOf(cause), cause);
  }
}

async function parse(buffer: Buffer): Promise<ReadSnapshot> {
  const reader = new ByteReader(buffer.subarray(0, buffer.length - trailerBytes), 12);
  const metaBytes = reader.u32();
  const sequence = reader.u64();
  const created = reader.f64();
  const meta = reader.bytes(metaBytes).toString('utf8');
  const bandit = reader.bytes(reader.u64());
  const decisions = new Map<string, StoredDecision>();
  while (reader.u8() === 1) {
    const decision = takeDecision(reader);
    decisions.set(decision.id, decision);
    if (decisions.size % 256 === 0) await nextTurn();
  }
  const reports = new Map<string, StoredReport>();
  while (reader.u8() === 1) {
    const key = reader.string();
    reports.set(key, { sequence: reader.u64(), time: reader.f64() });
    if (reports.size % 4096 === 0) await nextTurn();
  }
  if (reader.left > 0) throw new RangeError(`${reader.left} bytes too many`);
  return { sequence, created, meta, bandit, decisions, reports, bytes: buffer.length };
}

function takeDecision(reader: ByteReader): StoredDecision {
  const id = reader.string();
  const sequence = reader.u64();
  const time = reader.f64();
  const x = reader.floats(reader.u32());
  const count = reader.u32();
  if (count * 16 > reader.left) throw new RangeError(`${count} tools in ${reader.left} bytes`);
  const toolIds: string[] = [];
  const priors = new Float32Array(count);
  let reported: Map<string, number> | undefined;
  for (let i = 0; i < count; i++) {
    const toolId = reader.string();
    toolIds.push(toolId);
    priors[i] = reader.f32();
    const at = reader.u64();
    if (at > 0) {
      reported ??= new Map();
      reported.set(toolId, at);
    }
  }
  return { type: 'decision', id, sequence, time, x, toolIds, priors, reported };
}
