// Matrices as raw little-endian float32 files, for peers that read them from disk.
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';

export function writeArray(file, array) {
  mkdirSync(path.dirname(file), { recursive: true });
  const bytes = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  const handle = openSync(file, 'w');
  try {
    for (let at = 0; at < bytes.length; )
      at += writeSync(handle, bytes, at, Math.min(bytes.length - at, 1 << 28));
  } finally {
    closeSync(handle);
  }
}

/** A function that writes the array at its first call and returns the file's path. */
export function lazily(file, array) {
  let written = false;
  return () => {
    if (!written) writeArray(file, array);
    written = true;
    return file;
  };
}

export function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
}
