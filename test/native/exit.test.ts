// However a process or a worker ends amid encoding and searching, it ends as asked: no abort, no signal, no hang.
import path from 'node:path';
import { expect, test } from 'vitest';

import { findRuntime } from '../../dist/esm/lib/encode/runtime.js';
import { type Ended, model, root, runModule, tries } from './addon.js';

const native = path.join(root, 'dist/esm/lib/native.js');

const opening = `
  const tokenizer = addon.tokenizerOpen({ vocabPath: ${JSON.stringify(path.join(model.folder, 'vocab.txt'))}, lowercase: true, stripAccents: true, chineseCharacters: true });
  const encoderOpened = addon.encoderOpen({
    runtimePath: ${JSON.stringify(findRuntime({ from: [root] }))},
    modelPath: ${JSON.stringify(path.join(model.folder, 'model.onnx'))},
    tokenizer, outputName: ${JSON.stringify(model.output)}, dimension: ${model.dimension}, pooling: 'none',
  });
`;

/** Starts encoding, searching and building a graph; all of it takes far longer than the process is to live. */
const busy = `
  ${opening}
  const encoder = await encoderOpened;
  for (let i = 0; i < 50; i++) addon.encode(encoder, Array.from({ length: 20 }, (_, j) => 'Order item ' + i * j + ' from the shop around the corner'));
  const index = addon.indexCreate(64);
  const vectors = Float32Array.from({ length: 5000 * 64 }, (_, i) => Math.sin(i));
  addon.indexUpsertSync(index, Array.from({ length: 5000 }, (_, i) => 'id ' + i), vectors);
  for (let i = 0; i < 5; i++) addon.search(addon.indexSnapshot(index), vectors, { k: 20 });
  addon.indexBuildAnn(index);
`;

/** Runs `ending` in `tries` processes, two at a time, after delays spread over the first 100 ms of work. */
async function endings(ending: string, work = busy, spread = 100): Promise<Ended[]> {
  const ended: Ended[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < tries) {
      const delay = (next++ * 37) % spread;
      ended.push(
        await runModule(`
          import { binding } from ${JSON.stringify(native)};
          const addon = binding();
          ${work}
          process.stdout.write('busy');
          setTimeout(() => { ${ending} }, ${delay});
        `),
      );
    }
  };
  await Promise.all([lane(), lane()]);
  return ended;
}

test('process.exit()', async () => {
  for (const ended of await endings('process.exit(7)')) {
    expect(ended).toEqual({ code: 7, signal: null, stdout: 'busy', stderr: '' });
  }
});

// Making a session takes most of a second, and registers static objects of onnxruntime's as it goes.
test('process.exit() while an encoder is being opened', async () => {
  for (const ended of await endings('process.exit(7)', opening, 600)) {
    expect(ended).toEqual({ code: 7, signal: null, stdout: 'busy', stderr: '' });
  }
});

test('an uncaught error', async () => {
  for (const ended of await endings("throw new Error('on purpose')")) {
    expect(ended).toMatchObject({ code: 1, signal: null, stdout: 'busy' });
    expect(ended.stderr).toContain('on purpose');
    expect(ended.stderr).not.toMatch(/terminate called|fatal|assert|mutex|sanitizer/i);
  }
});

test('worker.terminate(), and a worker that calls process.exit()', async () => {
  const ended = await runModule(`
    import { Worker } from 'node:worker_threads';
    import { binding } from ${JSON.stringify(native)};
    for (let i = 0; i < ${tries}; i++) {
      const worker = new Worker(\`
        const { parentPort } = require('node:worker_threads');
        import(${JSON.stringify(native)}).then(async ({ binding }) => {
          const addon = binding();
          ${busy.replaceAll('\\', '\\\\')}
          parentPort.postMessage('busy');
          if (\${i} % 4 === 3) setTimeout(() => process.exit(0), \${(i * 37) % 100});
        });
      \`, { eval: true, execArgv: [] });
      // A message just before process.exit() may not arrive.
      const exited = new Promise((resolve) => worker.once('exit', resolve));
      const busy = new Promise((resolve, reject) => { worker.once('message', resolve); worker.once('error', reject); });
      await Promise.race([busy, exited]);
      if (i % 4 === 3) {
        await exited;
      } else {
        await new Promise((resolve) => setTimeout(resolve, (i * 37) % 100));
        await worker.terminate();
      }
    }
    const addon = binding();
    const index = addon.indexCreate(2);
    addon.indexUpsertSync(index, ['a'], new Float32Array([1, 0]));
    const found = await addon.search(addon.indexSnapshot(index), new Float32Array([1, 0]), { k: 1 });
    console.log('alive', found.counts[0]);
  `);
  expect(ended).toEqual({ code: 0, signal: null, stdout: 'alive 1\n', stderr: '' });
});
