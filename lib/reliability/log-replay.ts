import { copyFile, open, readdir, rename, truncate, unlink } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FinchError } from '../errors.js';
import { ioError } from './files.js';
import { segmentVersion } from './log-frames.js';
import { SegmentReader } from './segment-reader.js';

export const segmentPattern = /^feedback-(\d{16})\.log$/;

export function segmentName(firstSequence: number): string {
  return `feedback-${String(firstSequence).padStart(16, '0')}.log`;
}

/** What was not whole at opening, and was cut off. */
export interface Recovery {
  /** A write that a crash cut short, or (only when asked to cut) damage. */
  kind: 'torn' | 'damaged';
  file: string;
  /** Where the cut is. */
  offset: number;
  /** Bytes cut off. */
  bytes: number;
  /** Copies of damaged files, kept for a look. */
  aside: string[];
}

export interface ReplayOptions {
  folder: string;
  /** The snapshot's last sequence: records up to it are not replayed. */
  after: number;
  onCorruption: 'fail' | 'cut';
  /** Throws when the segment was written with other options. */
  checkMeta(meta: string, file: string): void;
  replay(firstSequence: number, payloads: readonly Buffer[]): void;
}

export interface Replayed {
  /** Segments that remain, oldest first; the last has room for more when `active` is set. */
  segments: Array<{ file: string; firstSequence: number; bytes: number }>;
  nextSequence: number;
  recovered: Recovery | undefined;
}

export async function listSegments(
  folder: string,
): Promise<Array<{ file: string; firstSequence: number }>> {
  const names = await readdir(folder);
  return names
    .flatMap((name) => {
      const match = segmentPattern.exec(name);
      return match === null
        ? []
        : [{ file: path.join(folder, name), firstSequence: Number(match[1]) }];
    })
    .sort((a, b) => a.firstSequence - b.firstSequence);
}

/**
 * Replays every record after the snapshot, in order. A last write that a crash cut short is cut off; a damaged record
 * with whole ones behind it, or a gap, is FINCH_CORRUPT, or cut with the files kept aside.
 */
export async function replayLog(options: ReplayOptions): Promise<Replayed> {
  const { folder, after, onCorruption } = options;
  let segments = await listSegments(folder);
  const needed = segments.findLastIndex((segment) => segment.firstSequence <= after + 1);
  for (const covered of segments.slice(0, Math.max(0, needed))) await unlink(covered.file);
  segments = segments.slice(Math.max(0, needed));

  const first = segments[0];
  let expected = first?.firstSequence ?? after + 1;
  let recovered: Recovery | undefined;
  if (first !== undefined && first.firstSequence > after + 1 && onCorruption === 'fail') {
    throw new FinchError(
      'FINCH_CORRUPT',
      `records ${after + 1} to ${first.firstSequence - 1} of the feedback in ${folder} are missing (the oldest log is ` +
        `${path.basename(first.file)}). Restore feedback.snapshot or the older log from a backup, or open with ` +
        `onCorruption: 'cut' to go on with what is there`,
    );
  }

  const kept: Replayed['segments'] = [];
  let turn = performance.now();
  for (const [place, segment] of segments.entries()) {
    const isLast = place === segments.length - 1;
    const handle = await open(segment.file, 'r');
    let cut: { offset: number; why: string; torn: boolean } | undefined;
    let offset = 0;
    let size = 0;
    try {
      ({ size } = await handle.stat());
      const reader = new SegmentReader(handle, size);
      const head = await reader.head();
      if (head.kind === 'version') {
        throw new FinchError(
          'FINCH_VERSION',
          `${segment.file} has version ${head.version}; this release reads version ${segmentVersion}. Open it with ` +
            'the release that wrote it',
        );
      }
      if (head.kind !== 'head' || head.firstSequence !== segment.firstSequence) {
        const torn = head.kind !== 'head' && (await reader.findFrame(0, 0)) === undefined;
        cut = { offset: 0, why: 'its head is damaged', torn: torn && isLast };
      } else if (segment.firstSequence !== expected) {
        cut = {
          offset: 0,
          why: `it begins with record ${segment.firstSequence}, expected ${expected}`,
          torn: false,
        };
      } else {
        options.checkMeta(head.meta, segment.file);
        offset = head.bytes;
        while (offset < size) {
          const frame = await reader.frame(offset);
          if (frame === undefined || frame.firstSequence !== expected) {
            const later = await reader.findFrame(offset + 1, expected);
            cut = {
              offset,
              why:
                frame === undefined
                  ? `record ${expected} is damaged`
                  : `record ${frame.firstSequence} stands where ${expected} is expected`,
              torn: isLast && frame === undefined && later === undefined,
            };
            break;
          }
          const skip = Math.max(0, Math.min(frame.payloads.length, after + 1 - expected));
          if (skip < frame.payloads.length) {
            options.replay(expected + skip, frame.payloads.slice(skip));
          }
          expected += frame.payloads.length;
          offset += frame.bytes;
          if (performance.now() - turn > 8) {
            await nextTurn();
            turn = performance.now();
          }
        }
      }
    } catch (error) {
      throw ioError(`reading ${segment.file}`, error);
    } finally {
      await handle.close();
    }
    if (cut === undefined) {
      kept.push({ ...segment, bytes: offset });
      continue;
    }
    if (!cut.torn && onCorruption === 'fail') {
      throw new FinchError(
        'FINCH_CORRUPT',
        `${segment.file} is corrupt at offset ${cut.offset}: ${cut.why}, and it is not the end of an interrupted write. ` +
          `Restore the file from a backup, or open with onCorruption: 'cut' to keep the records before that and set ` +
          'the rest aside',
      );
    }
    recovered = {
      kind: cut.torn ? 'torn' : 'damaged',
      file: segment.file,
      offset: cut.offset,
      bytes: size - cut.offset,
      aside: [],
    };
    if (!cut.torn) {
      recovered.aside.push(await setAside(segment.file, cut.offset === 0));
      for (const later of segments.slice(place + 1)) {
        recovered.aside.push(await setAside(later.file, true));
      }
    }
    if (cut.offset > 0) {
      await truncate(segment.file, cut.offset);
      kept.push({ ...segment, bytes: cut.offset });
    } else if (cut.torn) {
      await unlink(segment.file);
    }
    break;
  }
  return { segments: kept, nextSequence: Math.max(expected, after + 1), recovered };
}

/** Keeps a damaged file under a new name: moved, or copied when its beginning stays in use. */
export async function setAside(file: string, move: boolean): Promise<string> {
  const aside = `${file}.${new Date().toISOString().replace(/[:.]/g, '-')}.damaged`;
  if (move) await rename(file, aside);
  else await copyFile(file, aside);
  return aside;
}
