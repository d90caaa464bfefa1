import { randomUUID } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { FinchError } from '../../errors.js';
import { ioError, syncFolder, writeFully } from '../files.js';

/** Who a folder's reports are from. */
export interface OriginName {
  id: string;
  /** Records up to this were delivered under an earlier name. */
  base: number;
}

const name = 'replica.json';

/** The folder's name in the stream, made at the first opening. @throws FinchError FINCH_IO, FINCH_CORRUPT */
export async function readOrigin(folder: string): Promise<OriginName> {
  const file = path.join(folder, name);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw ioError(`reading ${file}`, cause);
    return writeOrigin(folder, 0);
  }
  try {
    const { id, base } = JSON.parse(text) as OriginName;
    if (/^[0-9a-f-]{36}$/.test(id) && Number.isSafeInteger(base) && base >= 0) return { id, base };
  } catch {
    // Said below.
  }
  throw new FinchError(
    'FINCH_CORRUPT',
    `${file} is not what was written there; restore it from a backup, or delete it: the folder then goes on under a ` +
      'new name, and reports that Redis has already are known again by their decision and tool',
  );
}

/** Gives the folder a new name. */
export async function writeOrigin(folder: string, base: number): Promise<OriginName> {
  const origin = { id: randomUUID(), base };
  const file = path.join(folder, name);
  try {
    const handle = await open(`${file}.new`, 'w');
    try {
      await writeFully(handle, Buffer.from(`${JSON.stringify(origin)}\n`), 0);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(`${file}.new`, file);
    await syncFolder(folder);
  } catch (cause) {
    throw ioError(`writing ${file}`, cause);
  }
  return origin;
}
