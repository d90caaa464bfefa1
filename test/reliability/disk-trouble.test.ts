import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileStore, startChild } from './child.js';
import { bytesOf, context, expectCode, openFake, priors, scratch } from './scratch.js';

let sources: string;
beforeAll(() => {
  sources = mkdtempSync(path.join(tmpdir(), 'finch-disk-'));
  compileStore(sources);
});
afterAll(() => rmSync(sources, { recursive: true, force: true }));

describe('a folder that cannot be written', () => {
  it('is FINCH_IO at opening, saying why and what to do', async () => {
    const root = scratch();
    const file = path.join(root, 'file');
    writeFileSync(file, '');
    for (const folder of [file, path.join(file, 'below')]) {
      const error = await expectCode(openFake(folder), 'FINCH_IO');
      expect(error.message).toContain(folder);
      expect(error.message).toMatch(/give the path of a folder|give a folder/);
    }
    // Root may write anywhere but here; others meet the same error in any read-only folder.
    if (process.platform === 'linux') {
      const error = await expectCode(openFake('/proc/self'), 'FINCH_IO');
      expect(error.message).toContain('/proc/self');
    }
  });
});

// A limit on file size stands in for a full disk: the write that passes it comes back short, the next fails.
describe('a disk that fills up', () => {
  it('fails the report that meets it, keeps later ones in memory, and says so', async () => {
    const folder = scratch();
    const child = startChild(
      sources,
      folder,
      `const store = await open({ retryMs: 1e9 });
       const acknowledged = []; let failed; let inMemory = 0;
       for (let i = 0; i < 200; i++) {
         decide(store, 'd' + i, 3);
         const before = Buffer.from(store.bandit.serialize()).toString();
         try {
           const { durable } = await store.report({ decisionId: 'd' + i, toolId: 'tool', outcome: 'success', at: i });
           if (durable) acknowledged.push(i); else inMemory++;
         } catch (error) {
           failed = { i, code: error.code, message: error.message,
             unchanged: before === Buffer.from(store.bandit.serialize()).toString() };
           const again = await store.report({ decisionId: 'd' + i, toolId: 'tool', outcome: 'success', at: i });
           failed.again = again;
         }
       }
       say({ acknowledged, failed, inMemory, health: store.health(), updates: store.bandit.updatesOf('tool') });
       await store.close().then(() => say('closed'), (error) => say({ code: error.code, message: error.message }));`,
      'ulimit -f 64;',
    );
    const said = (await child.next()) as {
      acknowledged: number[];
      inMemory: number;
      failed: { i: number; code: string; message: string; unchanged: boolean; again: object };
      health: { durable: boolean; reason: string; unsaved: number };
      updates: number;
    };
    expect(said.failed).toMatchObject({
      code: 'FINCH_IO',
      unchanged: true,
      again: { status: 'applied', durable: false },
    });
    expect(said.failed.message).toContain('ulimit');
    expect(said.acknowledged).toEqual(Array.from({ length: said.failed.i }, (_, i) => i));
    expect(said.updates).toBe(200);
    expect(said.health.durable).toBe(false);
    expect(said.health.reason).toBe(said.failed.message);
    expect(said.health.unsaved).toBe(said.inMemory + 1);
    // Closing tells that what is in memory only is lost; the disk has exactly what was acknowledged as durable.
    expect(await child.next()).toMatchObject({ code: 'FINCH_IO' });
    expect(await child.ended).toBe(0);
    await using store = await openFake(folder);
    expect(store.bandit.updatesOf('tool')).toBe(said.acknowledged.length);
    expect(store.health().recovered).toEqual([]);
  });

  it('is used again once there is room, with everything that was kept in memory', async () => {
    const folder = scratch();
    const child = startChild(
      sources,
      folder,
      // A clock that stands still, or was set back, must not keep the disk from being tried again.
      `const elapsed = performance.now.bind(performance); let passed = 0;
       performance.now = () => elapsed() + passed;
       let now = 1e6;
       const store = await open({ retryMs: 1e9, maxDecisions: 20, now: () => now-- });
       let failed = 0; let inMemory = 0; let recoveredAt;
       for (let i = 0; i < 300; i++) {
         decide(store, 'd' + i, 3);
         decide(store, 'unreported-' + i);
         const report = { decisionId: 'd' + i, toolId: 'tool', outcome: 'success', at: i };
         const result = await store.report(report).catch((error) => { failed++; return store.report(report); });
         if (!result.durable) inMemory++;
         if (inMemory === 50) passed += 1e9;
         if (inMemory >= 50 && result.durable) recoveredAt ??= i;
       }
       say({ failed, inMemory, recoveredAt, health: store.health(),
             state: Buffer.from(store.bandit.serialize()).toString() });
       process.kill(process.pid, 'SIGKILL');`,
      // A snapshot of 20 decisions fits where a log of 100 does not.
      'ulimit -f 128;',
    );
    const said = (await child.next()) as {
      failed: number;
      inMemory: number;
      recoveredAt: number;
      state: string;
      health: { durable: boolean; unsaved: number };
    };
    await child.ended;
    expect(said.failed).toBeGreaterThanOrEqual(1);
    expect(said.inMemory).toBeGreaterThanOrEqual(50);
    expect(said.recoveredAt).toBeGreaterThan(0);
    await using store = await openFake(folder);
    if (said.health.durable) expect(bytesOf(store.bandit)).toBe(said.state);
    expect(store.bandit.updatesOf('tool')).toBe(300 - said.health.unsaved);
  });
});

describe('a snapshot that cannot be written', () => {
  it('leaves the log in charge, and says so', async () => {
    const folder = scratch();
    const store = await openFake(folder);
    const id = store.decide({ x: context(1), toolIds: ['a', 'b'], priors: priors(2) });
    await store.report({ decisionId: id, toolId: 'a', outcome: 'error', at: 1 });
    // A folder in the draft's place: nobody, root neither, can open it for writing.
    mkdirSync(path.join(folder, 'feedback.snapshot.new'));
    await expectCode(store.compact(), 'FINCH_IO');
    expect(store.health().compactionError).toContain('feedback.snapshot');
    await store.report({ decisionId: id, toolId: 'b', outcome: 'success', at: 2 });
    const state = bytesOf(store.bandit);
    expect(store.health().durable).toBe(true);
    await store.close();
    const again = await openFake(folder);
    expect(bytesOf(again.bandit)).toBe(state);
    rmSync(path.join(folder, 'feedback.snapshot.new'), { recursive: true });
    await again.compact();
    expect(again.health()).toMatchObject({ compactionError: undefined, snapshot: { sequence: 3 } });
    await again.close();
    expect(readdirSync(folder).filter((name) => name.endsWith('.log'))).toHaveLength(1);
  });
});
