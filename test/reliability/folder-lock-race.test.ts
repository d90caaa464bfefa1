import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { FolderLock, lockName, processStart } from '../../lib/reliability/folder-lock.js';
import { expectCode, scratch } from './scratch.js';

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

/** What the system says of a thread, changed. */
const told = new Map<string, string>();
vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs')>();
  const readFileSync = ((file: string, encoding: 'utf8') =>
    told.get(file) ?? fs.readFileSync(file, encoding)) as typeof fs.readFileSync;
  return { ...fs, readFileSync };
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

it.runIf(processStart(process.pid) !== undefined)(
  'a lock of a thread that is ending is free, though the system still lists the thread',
  async () => {
    const id = readdirSync('/proc/self/task').find((each) => each !== String(process.pid));
    const file = `/proc/${process.pid}/task/${id}/stat`;
    const line = readFileSync(file, 'utf8');
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    const folder = scratch();
    const holder = { pid: process.pid, host: hostname(), token: 't' };
    const thread = `${id}/${fields[19]}`;
    writeFileSync(
      path.join(folder, lockName),
      JSON.stringify({ ...holder, start: processStart(process.pid), thread }),
    );
    await expectCode(FolderLock.acquire(folder), 'FINCH_IO');
    fields[6] = String(Number(fields[6]) | 4);
    told.set(file, `${line.slice(0, line.lastIndexOf(')') + 2)}${fields.join(' ')}`);
    await (await FolderLock.acquire(folder)).release();
  },
);
