// Many environments at once: each worker has its own handles and errors, and may be ended at any moment.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';

import { addon, fill, root, runModule, tries } from './addon.js';

const native = path.join(root, 'dist/esm/lib/native.js');
const errors = path.join(root, 'dist/esm/lib/errors.js');

function start(body: string, workerData?: string): Worker {
  const text = `
    const { parentPort, workerData } = require('node:worker_threads');
    (async () => {
      const { binding } = await import(${JSON.stringify(native)});
      const { FinchError } = await import(${JSON.stringify(errors)});
      const addon = binding();
      ${body}
    })();
  `;
  return new Worker(text, { eval: true, execArgv: [], workerData });
}

/** The first message, or the error that ended the worker. */
function message(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Saves of workers that are gone may still be finishing, and put a file there at any moment. */
async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      rmSync(folder, { recursive: true, force: true });
      return;
    } catch (error) {
      if (attempt === 100) throw error;
      await pause(50);
    }
  }
}

describe('worker threads', () => {
  test('eight load it at once and agree with this thread', async () => {
    const { snapshot, vectors } = fill(100, 16);
    const expected = [...addon.searchSync(snapshot, vectors.subarray(0, 16), { k: 5 }).scores];
    const workers = Array.from({ length: 8 }, () =>
      start(`
        const index = addon.indexCreate(16);
        const vectors = Float32Array.from(${JSON.stringify([...vectors])});
        await addon.indexUpsert(index, Array.from({ length: 100 }, (_, i) => 'tool ' + i), vectors);
        const snapshot = addon.indexSnapshot(index);
        const found = await addon.search(snapshot, vectors.subarray(0, 16), { k: 5 });
        const error = await addon.indexRemove(index, ['nobody']).catch((e) => e);
        parentPort.postMessage({ scores: [...found.scores], finch: error instanceof FinchError && error.code });
      `),
    );
    for (const answer of await Promise.all(workers.map(message))) {
      expect(answer).toEqual({ scores: expected, finch: 'FINCH_UNKNOWN_ID' });
    }
    const codes = await Promise.all(workers.map((worker) => worker.terminate()));
    expect(codes.length).toBe(8);
  });

  test('ended at random moments, loading, idle or amid calls, they leave the others alone', async () => {
    const { snapshot, vectors } = fill(100, 16);
    const folder = mkdtempSync(path.join(tmpdir(), 'finch-workers-'));
    for (let round = 0; round < Math.ceil(tries / 4); round++) {
      const workers = Array.from({ length: 8 }, () =>
        start(
          `
          const index = addon.indexCreate(64);
          const ids = Array.from({ length: 1000 }, (_, i) => 'tool ' + i);
          const vectors = Float32Array.from({ length: 1000 * 64 }, (_, i) => Math.sin(i));
          const file = workerData + '/index.finch';
          const bandit = addon.banditCreate({ dimension: 64 });
          const one = vectors.subarray(0, 64);
          const half = Float32Array.of(0.5);
          for (let round = 0; ; round++) {
            const cancel = addon.cancelCreate();
            const snapshot = addon.indexSnapshot(index);
            const work = Promise.all([
              addon.indexUpsert(index, ids, vectors),
              addon.search(snapshot, vectors, { k: 50 }),
              addon.search(snapshot, vectors, { k: 50 }, cancel).catch(() => {}),
              addon.select(snapshot, bandit, one, { k: 20 }, { now: round, explore: true }),
              addon.indexBuildAnn(index, null, cancel).catch(() => {}),
              addon.indexRemove(index, [ids[round % 1000]]).catch(() => {}),
              addon.indexSave(index, file, []).then(() => addon.indexOpen(file)),
              addon.indexOpen('nowhere').catch(() => {}),
            ]);
            addon.banditUpdate(bandit, [ids[round % 9]], one, half, half, Float64Array.of(round));
            addon.banditDeserialize(bandit, addon.banditSerialize(bandit));
            if (round % 3 === 0) addon.cancelSignal(cancel);
            if (round % 5 === 0) addon.snapshotClose(snapshot);
            await work;
          }
        `,
          folder,
        ),
      );
      await Promise.all(
        workers.map(async (worker, i) => {
          await pause((round * 37 + i * 41) % 300);
          await worker.terminate();
        }),
      );
      const found = await addon.search(snapshot, vectors.subarray(0, 16), { k: 1 });
      expect(found.keys[0]).toBe(1);
    }
    await removeFolder(folder);
  });

  test('a worker that alone had loaded it may end amid calls', async () => {
    // Node unloads an addon when the last environment that loaded it ends; pool threads may still run its code.
    const ended = await runModule(`
      import { Worker } from 'node:worker_threads';
      for (let i = 0; i < 10; i++) {
        const worker = new Worker(\`
          import(${JSON.stringify(native)}).then(({ binding }) => {
            const addon = binding();
            const index = addon.indexCreate(128);
            const vectors = Float32Array.from({ length: 4000 * 128 }, (_, i) => Math.sin(i));
            addon.indexUpsertSync(index, Array.from({ length: 4000 }, (_, i) => 'id ' + i), vectors);
            for (let i = 0; i < 20; i++) addon.search(addon.indexSnapshot(index), vectors, { k: 10 });
            addon.indexBuildAnn(index);
            require('node:worker_threads').parentPort.postMessage('busy');
          });
        \`, { eval: true, execArgv: [] });
        await new Promise((resolve) => worker.once('message', resolve));
        await worker.terminate();
      }
      console.log('alive');
    `);
    expect(ended).toMatchObject({ code: 0, signal: null, stdout: 'alive\n', stderr: '' });
  });
});
