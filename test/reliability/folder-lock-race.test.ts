import { existsSync, linkSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { FolderLock, lockName, processStart } from '../../lib/reliability/folder-lock.js';
import { scratch } from './scratch.js';

/** Run around each time that a lock is read: what other processes do meanwhile. */
const others: { before: () => void; after: () => void }[] = [];
vi.mock('node:fs/promises', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs/promises')>();
  const readFile = async (file: string, encoding: 'utf8') => {
    const meanwhile = others.shift();
    meanwhile?.before();
    try {
      return await fs.readFile(file, encoding);
    } finally {
      meanwhile?.after();
    }
  };
  return { ...fs, readFile };
});

it('a lock made while another process looks for the one it replaced stays', async () => {
  const folder = scratch();
  const lock = path.join(folder, lockName);
  writeFileSync(
    lock,
    JSON.stringify({ pid: process.pid, host: hostname(), token: 'dead', start: 'x' }),
  );
  const theirs = path.join(folder, 'theirs');
  const start = processStart(process.ppid);
  writeFileSync(theirs, JSON.stringify({ pid: process.ppid, host: hostname(), token: 't', start }));
  let theyHold = false;
  others.push(
    { before: () => unlinkSync(lock), after: () => undefined },
    {
      before: () => undefined,
      after: () => {
        if (existsSync(lock)) return;
        linkSync(theirs, lock);
        theyHold = true;
      },
    },
  );
  const weHold = await FolderLock.acquire(folder).then(
    () => true,
    () => false,
  );
  expect([weHold, theyHold].filter(Boolean)).toHaveLength(1);
});
