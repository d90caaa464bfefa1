import { type FileHandle, open } from 'node:fs/promises';
import { FinchError } from '../errors.js';

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const advice: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space on it',
  EDQUOT: 'the disk quota is used up: free space or raise it',
  EFBIG: 'the file reached the size limit of the process or file system (ulimit -f): raise it',
  EROFS: 'the file system is read-only: give another folder',
  EACCES: 'permission is missing: give this process the right to write there, or another folder',
  EPERM: 'permission is missing: give this process the right to write there, or another folder',
  ENOENT: 'the folder is gone: restore it, or open the store anew',
  ENOTDIR: 'a part of the path is a file: give the path of a folder',
  EEXIST: 'there is a file of that name: give the path of a folder',
  EIO: 'the disk reports an error: check it',
};

/** What the operating system refused, and how to mend it. */
export function ioError(action: string, cause: unknown): FinchError {
  if (cause instanceof FinchError) return cause;
  const hint = advice[(cause as NodeJS.ErrnoException | undefined)?.code ?? ''];
  return new FinchError(
    'FINCH_IO',
    `${action} failed (${reasonOf(cause)})${hint === undefined ? '' : `; ${hint}`}`,
    { cause },
  );
}

/** Writes all of `bytes` at `position`: a single write may take only a part, on a disk that fills up for one. */
export async function writeFully(
  handle: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  let done = 0;
  while (done < bytes.byteLength) {
    const { bytesWritten } = await handle.write(
      bytes,
      done,
      bytes.byteLength - done,
      position + done,
    );
    done += bytesWritten;
  }
}

/** Makes created, renamed and removed names durable, where the system lets a folder be synced. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows neither opens nor needs to sync a folder.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
