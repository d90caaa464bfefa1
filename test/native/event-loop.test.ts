// Long work leaves the event loop free; pending work keeps the process alive; idle, it does not.
import { expect, test } from 'vitest';

import type { CancelHandle } from '../../dist/esm/lib/native.js';
import { addon, failure, fill, openEncoder, randomNumbers, runModule } from './addon.js';

/** The loop turns while work that takes far longer than the turns is under way; it is cancelled then. */
async function expectTurns(start: (cancel: CancelHandle) => Promise<unknown>): Promise<void> {
  const cancel = addon.cancelCreate();
  let settled = false;
  const work = start(cancel).finally(() => {
    settled = true;
  });
  const ended = failure(() => work);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(settled).toBe(false);
  addon.cancelSignal(cancel);
  expect((await ended).code).toBe('FINCH_ABORTED');
}

test('a long search, a graph being built and encoding leave the loop turning', async () => {
  const { index, snapshot } = fill(20_000, 384);
  const queries = randomNumbers(4096 * 384, 5);
  await expectTurns((cancel) => addon.search(snapshot, queries, { k: 50 }, cancel));
  await expectTurns((cancel) => addon.indexBuildAnn(index, null, cancel));
  const encoder = await openEncoder();
  const texts = Array.from(
    { length: 5000 },
    (_, i) => `Remind me about appointment ${i} tomorrow at noon`,
  );
  await expectTurns((cancel) => addon.encode(encoder, texts, cancel));
});

test('awaiting keeps the process alive, having loaded does not', async () => {
  const ended = await runModule(`
    import { binding } from './dist/esm/lib/native.js';
    const addon = binding();
    const index = addon.indexCreate(64);
    await addon.indexUpsert(index, Array.from({ length: 3000 }, (_, i) => 'id ' + i), Float32Array.from({ length: 3000 * 64 }, (_, i) => Math.sin(i)));
    await addon.indexBuildAnn(index);
    process.on('exit', () => console.log('exit', addon.indexInspect(index).annCount));
    const snapshot = addon.indexSnapshot(index);
    addon.search(snapshot, new Float32Array(64).fill(1), { k: 1 }).then((found) => console.log('found', found.counts[0]));
  `);
  expect(ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(ended.stdout).toBe('found 1\nexit 3000\n');
});

test('many calls at once all settle, each with its own result', async () => {
  const { snapshot, vectors } = fill(300, 16);
  const results = await Promise.all(
    Array.from({ length: 2000 }, (_, i) =>
      addon.search(snapshot, vectors.subarray((i % 300) * 16, (i % 300) * 16 + 16), { k: 1 }),
    ),
  );
  results.forEach((found, i) => {
    expect(found.keys[0]).toBe((i % 300) + 1);
  });
});
