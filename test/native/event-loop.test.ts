// Long work leaves the event loop free; pending work keeps the process alive; idle, it does not.
import { expect, test } from 'vitest';

import { addon, fill, openEncoder, randomNumbers, runModule } from './addon.js';

async function turnsDuring(promise: Promise<unknown>): Promise<number> {
  let pending = true;
  const done = promise.finally(() => {
    pending = false;
  });
  let turns = 0;
  while (pending) {
    await new Promise((resolve) => setImmediate(resolve));
    turns++;
  }
  await done;
  return turns;
}

test('a long search, a graph being built and encoding leave the loop turning', async () => {
  const { index, snapshot } = fill(5000, 384);
  const queries = randomNumbers(256 * 384, 5);
  expect(await turnsDuring(addon.search(snapshot, queries, { k: 50 }))).toBeGreaterThan(20);
  expect(await turnsDuring(addon.indexBuildAnn(index))).toBeGreaterThan(20);
  const encoder = await openEncoder();
  const texts = Array.from(
    { length: 64 },
    (_, i) => `Remind me about appointment ${i} tomorrow at noon`,
  );
  expect(await turnsDuring(addon.encode(encoder, texts))).toBeGreaterThan(20);
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
