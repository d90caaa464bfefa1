import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { link, mkdir, readFile, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FinchError } from '../errors.js';

interface Holder {
  pid: number;
  host: string;
  /** Tells a process from a later one with its number: boot and start time, where the system says them. */
  start: string | undefined;
  /** The thread that runs the holder's JavaScript, and its start time; where the system says them. */
  thread?: string | undefined;
  token: string;
}

export const lockName = 'feedback.lock';
const takeoverName = 'feedback.lock.takeover';
const takeoverMs = 10_000;
// How often, 10 ms apart, a thread of this process is looked for: the system lists an ended one for a moment longer.
const threadLooks = 5;

/** The start of a process: Linux's boot id and start tick; undefined elsewhere or when there is no such process. */
export function processStart(pid: number): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${readStat(`/proc/${pid}/stat`).start}`;
  } catch {
    return undefined;
  }
}

// The kernel's PF_EXITING: set before those who wait for a thread's end are told, and while it is still listed.
const exiting = 4;

/** The start tick of a process or thread, and whether it is ending and runs nothing of its own any more. */
function readStat(file: string): { start: string; ending: boolean } {
  const line = readFileSync(file, 'utf8');
  // From field 3 on: they follow the name, which is in brackets and may hold anything. 9 are flags, 22 is the start.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return { start: String(fields[19]), ending: (Number(fields[6]) & exiting) !== 0 };
}

/** The calling thread, as Linux's thread id and start tick; undefined elsewhere. */
export function thisThread(): string | undefined {
  try {
    // Synchronous, so it is this thread that asks and not one of the pool.
    const [pid, , id] = readlinkSync('/proc/thread-self').split('/');
    // A /proc of another process namespace tells of others.
    if (pid !== String(process.pid)) return undefined;
    return `${id}/${readStat(`/proc/self/task/${id}/stat`).start}`;
  } catch {
    return undefined;
  }
}

/**
 * Whether a thread of a living process has ended. Node ends a worker's thread only once the file operations that it began
 * are done, so nothing of the holder writes any more.
 */
function isThreadGone({ pid, start, thread }: Holder): boolean {
  const match = /^(\d+)\/(\d+)$/.exec(thread ?? '');
  // A process whose threads cannot be seen must not look as if it had none.
  if (match === null || start === undefined || processStart(pid) !== start) return false;
  try {
    const found = readStat(`/proc/${pid}/task/${match[1]}/stat`);
    return found.ending || found.start !== match[2];
  } catch (error) {
    return codeOf(error) === 'ENOENT' || codeOf(error) === 'ESRCH';
  }
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  if (holder.start === undefined) return true;
  const start = processStart(holder.pid);
  return (start === undefined || start === holder.start) && !isThreadGone(holder);
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

/**
 * One store at a time in a feedback folder. The lock is a file that appears with its content; one left by a process that
 * died on this host is taken over, and, on Linux, one left by a thread of a living process.
 */
export class FolderLock {
  readonly #file: string;
  readonly #token: string;

  private constructor(file: string, token: string) {
    this.#file = file;
    this.#token = token;
  }

  /** @throws FinchError FINCH_IO: held (by whom), or the folder cannot be written. */
  static async acquire(folder: string): Promise<FolderLock> {
    const file = path.join(folder, lockName);
    const token = randomUUID();
    const mine: Holder = {
      pid: process.pid,
      host: hostname(),
      start: processStart(process.pid),
      thread: thisThread(),
      token,
    };
    const draft = `${file}.${token}`;
    let looks = 1;
    try {
      await writeFile(draft, `${JSON.stringify(mine)}\n`, { flag: 'wx' });
      try {
        for (let attempt = 0; ; attempt++) {
          // A link appears with its whole content or not at all.
          const held = await link(draft, file).then(
            () => false,
            (error: unknown) => {
              if (codeOf(error) === 'EEXIST') return true;
              throw error;
            },
          );
          if (!held) return new FolderLock(file, token);
          const holder = await readHolder(file);
          if (typeof holder !== 'string' && (holder.host !== mine.host || isAlive(holder))) {
            const ending = holder.pid === mine.pid && holder.thread !== mine.thread;
            if (!ending || looks++ >= threadLooks) throw heldError(file, holder, mine);
            await sleep(10);
            continue;
          }
          if (attempt > 200) {
            throw new FinchError(
              'FINCH_IO',
              `${file} could not be taken over in 2 s; when no process uses the folder, delete it and ${takeoverName}`,
            );
          }
          // A lock that went meanwhile needs no removal: the next link decides.
          if (holder !== 'none' && !(await removeStale(file, holder))) await sleep(10);
        }
      } finally {
        await unlink(draft).catch(() => undefined);
      }
    } catch (cause) {
      if (cause instanceof FinchError) throw cause;
      throw new FinchError(
        'FINCH_IO',
        `cannot write in the feedback folder ${folder} (${cause instanceof Error ? cause.message : String(cause)}); ` +
          'give a folder this process may write, or keep feedback in memory',
        { cause },
      );
    }
  }

  /** Removes the lock if it is still ours. */
  async release(): Promise<void> {
    const holder = await readHolder(this.#file).catch(() => 'none' as const);
    if (tokenOf(holder) === this.#token) await unlink(this.#file).catch(() => undefined);
  }
}

/** Whose the lock is; 'none' when there is no lock, 'unnamed' for one that names nobody. */
async function readHolder(file: string): Promise<Holder | 'none' | 'unnamed'> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'none';
    throw error;
  }
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    if (
      holder !== null &&
      Number.isSafeInteger(holder.pid) &&
      (holder.pid as number) > 0 &&
      typeof holder.host === 'string' &&
      typeof holder.token === 'string'
    ) {
      return holder as Holder;
    }
  } catch {
    // Not ours, or lost in a power cut: nobody can be named, so nobody holds it.
  }
  return 'unnamed';
}

function tokenOf(holder: Holder | 'none' | 'unnamed'): string | undefined {
  return typeof holder === 'string' ? undefined : holder.token;
}

function heldError(file: string, holder: Holder, mine: Holder): FinchError {
  if (holder.host !== mine.host) {
    return new FinchError(
      'FINCH_IO',
      `the feedback folder is held by process ${holder.pid} on host ${holder.host}; if that host is gone, delete ${file}`,
    );
  }
  const leftBehind =
    holder.thread !== undefined
      ? `The lock is ${file}`
      : `The lock is ${file}. A worker thread that was terminated before it closed its store leaves it behind until ` +
        'the process ends: if no store has the folder open, delete that file, and close the store before terminate()';
  return new FinchError(
    'FINCH_IO',
    holder.pid === mine.pid
      ? `the feedback folder is already open in this process (${mine.pid}${
          holder.thread === mine.thread ? '' : ', in another thread'
        }); close that store, or share it. ${leftBehind}`
      : `the feedback folder is held by process ${holder.pid}; close its store, or use another folder. ${leftBehind}`,
  );
}

/**
 * Removes a lock whose holder is dead. A directory guards the removal: without it, two that saw the same dead holder
 * could remove each other's fresh lock.
 *
 * @returns whether this call did it.
 */
async function removeStale(file: string, seen: Holder | 'unnamed'): Promise<boolean> {
  const guard = path.join(path.dirname(file), takeoverName);
  try {
    await mkdir(guard);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    const age = await stat(guard).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    // Its maker died in the few microseconds of a takeover.
    if (age > takeoverMs) await rmdir(guard).catch(() => undefined);
    return false;
  }
  try {
    const holder = await readHolder(file);
    // Without a lock there is nothing to remove, and another process may be making its own this moment.
    if (holder !== 'none' && tokenOf(holder) === tokenOf(seen)) await unlink(file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true;
    throw error;
  } finally {
    await rmdir(guard).catch(() => undefined);
  }
}
