import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  FolderLock,
  lockName,
  processStart,
  thisThread,
} from '../../lib/reliability/folder-lock.js';
import { compileStore, startChild, startWorker } from './child.js';
import { expectCode, openFake, scratch } from './scratch.js';

let sources: string;
beforeAll(() => {
  sources = mkdtempSync(path.join(tmpdir(), 'finch-lock-'));
  compileStore(sources);
});
afterAll(() => rmSync(sources, { recursive: true, force: true }));

/** The number of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = startChild(sources, '-', '');
  await child.ended;
  return child.process.pid ?? 0;
}

function putLock(folder: string, holder: object | string): void {
  const text = typeof holder === 'string' ? holder : JSON.stringify(holder);
  writeFileSync(path.join(folder, lockName), text);
}

describe('a feedback folder', () => {
  it('open in this process is refused, and free after close', async () => {
    const folder = scratch();
    const store = await openFake(folder);
    const error = await expectCode(openFake(folder), 'FINCH_IO');
    expect(error.message).toContain('already open in this process');
    expect(error.message).toContain(path.join(folder, lockName));
    await store.close();
    expect(existsSync(path.join(folder, lockName))).toBe(false);
    await (await openFake(folder)).close();
    expect(readdirSync(folder).filter((name) => name.includes('lock'))).toEqual([]);
  });

  it('open in another process is refused, naming it; and taken over when that was killed', async () => {
    const folder = scratch();
    const child = startChild(
      sources,
      folder,
      `const store = await open();
       decide(store, 'theirs');
       await store.report({ decisionId: 'theirs', toolId: 'tool', outcome: 'success', at: 1 });
       say('open'); setInterval(() => {}, 1000);`,
    );
    expect(await child.next()).toBe('open');
    const error = await expectCode(openFake(folder), 'FINCH_IO');
    const { pid } = JSON.parse(readFileSync(path.join(folder, lockName), 'utf8')) as {
      pid: number;
    };
    expect(pid).toBe(child.process.pid);
    expect(error.message).toContain(`process ${pid}`);
    child.process.kill('SIGKILL');
    expect(await child.ended).toBe('SIGKILL');
    await using store = await openFake(folder);
    expect(store.bandit.updatesOf('tool')).toBe(1);
  });

  it('left locked by a dead process, by garbage, or by a number used again is taken over', async () => {
    const host = hostname();
    const cases: Array<object | string> = [
      { pid: await deadPid(), host, token: 'dead' },
      '',
      '{"pid": 1',
      'null',
      { pid: -1, host, token: 'x' },
    ];
    // Only where the system tells when a process started.
    if (processStart(process.pid) !== undefined) {
      cases.push({ pid: process.pid, host, start: 'another boot/1', token: 'earlier' });
    }
    for (const holder of cases) {
      const folder = scratch();
      putLock(folder, holder);
      const lock = await FolderLock.acquire(folder);
      await lock.release();
    }
  });

  it('open in a worker thread is refused, and free once that was terminated amid reports', async () => {
    for (let round = 0; round < 10; round++) {
      const folder = scratch();
      const worker = startWorker(
        sources,
        folder,
        `const store = await open({ sync: 'none' });
         for (let i = 0; ; i++) {
           decide(store, 'd' + i);
           await store.report({ decisionId: 'd' + i, toolId: 'tool', outcome: 'success', at: i });
           say(i);
         }`,
      );
      const heard = await new Promise<() => number>((resolve, reject) => {
        let last = -1;
        worker.on('message', (i: number) => {
          last = i;
          if (i === round * 7) resolve(() => last);
        });
        worker.once('error', reject);
      });
      const error = await expectCode(openFake(folder), 'FINCH_IO');
      expect(error.message).toMatch(/already open in this process .*in another thread/);
      await worker.terminate();
      if (thisThread() === undefined) {
        // No system to tell threads apart: the lock stays, and the message says what to do.
        const left = await expectCode(openFake(folder), 'FINCH_IO');
        expect(left.message).toMatch(/worker thread.*delete that file/);
        continue;
      }
      await using store = await openFake(folder);
      // What was acknowledged is there; one more may have been stored without its thread hearing of it.
      expect(store.bandit.updatesOf('tool') - (heard() + 1)).toBeOneOf([0, 1]);
    }
  });

  it('is held on by a thread that cannot be seen to have ended', async () => {
    const start = processStart(process.pid);
    const holder = { pid: process.pid, host: hostname(), start, token: 'x' };
    const held = [
      { ...holder },
      { ...holder, thread: thisThread() },
      { ...holder, thread: 'something else' },
      { ...holder, thread: 7 },
      // Without the process's start, its number may be another's.
      { ...holder, start: undefined, thread: '1/1' },
    ];
    for (const one of held) {
      const folder = scratch();
      putLock(folder, one);
      await expectCode(FolderLock.acquire(folder), 'FINCH_IO');
    }
    if (start === undefined) return;
    const [id = ''] = (thisThread() ?? '').split('/');
    for (const thread of ['4294967/1', `${id}/1`]) {
      const folder = scratch();
      putLock(folder, { ...holder, thread });
      await (await FolderLock.acquire(folder)).release();
    }
  });

  it('locked on another host is refused: nobody can tell whether that process lives', async () => {
    const folder = scratch();
    putLock(folder, { pid: await deadPid(), host: 'elsewhere.example', token: 'x' });
    const error = await expectCode(openFake(folder), 'FINCH_IO');
    expect(error.message).toContain('elsewhere.example');
    expect(error.message).toContain('delete');
  });

  it('that many take over at once goes to one of them', async () => {
    for (let round = 0; round < 5; round++) {
      const folder = scratch();
      putLock(folder, { pid: await deadPid(), host: hostname(), token: 'dead' });
      const taken = await Promise.allSettled(
        Array.from({ length: 10 }, () => FolderLock.acquire(folder)),
      );
      expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }
  });

  it('that many processes race for goes to one of them', async () => {
    const folder = scratch();
    putLock(folder, { pid: await deadPid(), host: hostname(), token: 'dead' });
    const script = `process.stdin.once('data', async () => {
        try { await open(); say('mine'); } catch (error) { say(error.code); }
        process.stdin.once('data', () => process.exit(0));
      }); say('ready');`;
    const children = Array.from({ length: 5 }, () => startChild(sources, folder, script));
    for (const child of children) expect(await child.next()).toBe('ready');
    for (const child of children) child.process.stdin?.write('go\n');
    const said = await Promise.all(children.map((child) => child.next()));
    expect(said.sort()).toEqual(['FINCH_IO', 'FINCH_IO', 'FINCH_IO', 'FINCH_IO', 'mine']);
    for (const child of children) child.process.stdin?.write('end\n');
    await Promise.all(children.map((child) => child.ended));
  });

  it('whose takeover was itself cut short is free after a while', async () => {
    const folder = scratch();
    putLock(folder, { pid: await deadPid(), host: hostname(), token: 'dead' });
    const guard = path.join(folder, `${lockName}.takeover`);
    mkdirSync(guard);
    utimesSync(guard, new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
    await (await FolderLock.acquire(folder)).release();
  });
});
