// Reranking 50 pairs of 128 tokens: Toolfinch against onnxruntime-node, and against transformers.js, on the same ONNX file,
// in turn in one process, on one thread and on two. The process is held to as many cores as it has threads (taskset).
//
//   node bench/rerank.mjs FOLDER [--pairs 50] [--tokens 128] [--threads 1,2] [--seconds 8] [--transformers PEERS]
//
// PEERS is a folder with @huggingface/transformers in its node_modules, and with this package's version of onnxruntime-node:
// two do not fit into one process. Without it that contestant is left out. FOLDER is a reranker's model folder;
// native/test/fixtures/make_reranker.py --timing OUT makes one of MiniLM-L6's size with random weights. onnxruntime-node gets
// ready tensors, so its figures leave tokenising out; ours and transformers.js' hold everything, ours without the cache. Beside
// the time of a call: its processor time over all threads, which other programs on the machine hardly change, and how late a
// timer of the event loop came while it ran.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { transformersReranker } from './peers/transformers.mjs';
import { roundRobin } from './rounds.mjs';

const file = fileURLToPath(import.meta.url);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    pairs: { type: 'string', default: '50' },
    tokens: { type: 'string', default: '128' },
    threads: { type: 'string', default: '1,2' },
    transformers: { type: 'string' },
    seconds: { type: 'string', default: '8' },
    one: { type: 'boolean', default: false },
  },
});
const [folder] = positionals;
if (folder === undefined) {
  console.error('Give the folder of a reranker: node bench/rerank.mjs FOLDER');
  process.exit(2);
}
const count = Number(values.pairs);
if (values.one) await measure(Number(values.threads));
else for (const threads of values.threads.split(',')) await inChild(threads);

/** The pool's size is set once per process. */
function inChild(threads) {
  const args = [file, path.resolve(folder), '--one', '--threads', threads];
  for (const name of ['pairs', 'tokens', 'seconds', 'transformers']) {
    if (values[name] !== undefined) args.push(`--${name}`, values[name]);
  }
  const cores = Array.from({ length: Number(threads) }, (_, i) => i).join(',');
  const [command, ...before] =
    process.platform === 'linux' ? ['taskset', '-c', cores, process.execPath] : [process.execPath];
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...before, ...args], {
      stdio: 'inherit',
      env: { ...process.env, TOOLFINCH_THREADS: threads },
    });
    child.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`a run ended with ${code}`)),
    );
  });
}

async function measure(threads) {
  const { OnnxReranker } = await import('../dist/esm/lib/index.js');
  const { binding } = await import('../dist/esm/lib/native.js');
  const { InferenceSession, Tensor } = await import('onnxruntime-node');
  const tokens = Number(values.tokens);
  const reranker = await OnnxReranker.open(folder, { cacheBytes: 0, maxTokens: tokens });
  const query = 'find a table for two near the station and book it for saturday evening';
  const documents = Array.from({ length: count }, (_, i) =>
    `tool ${i} reads and writes. `.repeat(60),
  );

  const { tokenizer: words, model } = reranker.folder.manifest;
  const { tokenizerOpen, tokenizePair } = binding();
  const tokenizer = tokenizerOpen({ ...words, vocabPath: reranker.folder.file(words.vocab) });
  const rows = documents.map((each) => tokenizePair(tokenizer, query, each, { maxTokens: tokens }));
  if (rows.some(({ ids }) => ids.length !== tokens)) throw new Error('a pair is not full');
  const feed = (from, to) => {
    const part = rows.slice(from, to);
    const tensor = (of) =>
      new Tensor('int64', BigInt64Array.from(part.flatMap(of), BigInt), [part.length, tokens]);
    return {
      input_ids: tensor(({ ids }) => [...ids]),
      attention_mask: tensor(({ ids }) => [...ids].map(() => 1)),
      token_type_ids: tensor(({ ids, documentAt }) => [...ids].map((_, i) => +(i >= documentAt))),
    };
  };
  const session = await InferenceSession.create(reranker.folder.file(model.file), {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
  });
  const all = feed(0, count);
  const each = rows.map((_, i) => feed(i, i + 1));
  const batchOf = async (feeds) => (await session.run(feeds, [model.output]))[model.output].data;

  // The same scores, or the times say nothing.
  const expected = await batchOf(all);
  const { documents: ranked } = await reranker.rerank(query, documents);
  const apart = Math.max(...ranked.map(({ index, score }) => Math.abs(score - expected[index])));

  let transformers;
  if (values.transformers !== undefined) {
    transformers = await transformersReranker(
      values.transformers,
      reranker.folder,
      tokens,
      threads,
    );
    const logits = await transformers(query, documents);
    const off = Math.max(...ranked.map(({ index, score }) => Math.abs(score - logits[index])));
    console.log(`transformers.js: scores apart by ${off.toExponential(1)} at most`);
  }

  const late = new Map();
  const cpu = new Map();
  const watched = (name, run) => ({
    name,
    settleMs: 3,
    run: async () => {
      let last = performance.now();
      let most = 0;
      const watch = () => {
        const now = performance.now();
        most = Math.max(most, now - last);
        last = now;
      };
      const timer = setInterval(watch, 1);
      const before = process.cpuUsage();
      await run();
      const { user, system } = process.cpuUsage(before);
      watch();
      clearInterval(timer);
      late.set(name, [...(late.get(name) ?? []), most]);
      cpu.set(name, [...(cpu.get(name) ?? []), (user + system) / 1000]);
    },
  });
  const contestants = [
    watched('toolfinch', () => reranker.rerank(query, documents)),
    watched('onnxruntime-node, one run', () => batchOf(all)),
    watched('onnxruntime-node, a run a pair', async () => {
      for (const one of each) await batchOf(one);
    }),
  ];
  if (transformers !== undefined) {
    contestants.push(watched('transformers.js', () => transformers(query, documents)));
  }
  const times = await roundRobin(contestants, {
    budgetMs: Number(values.seconds) * 1000,
    least: 3,
  });

  console.log(
    `\n${reranker.model}: ${count} pairs of ${tokens} tokens, ${threads} ${threads === 1 ? 'thread' : 'threads'}; scores apart by ${apart.toExponential(1)} at most`,
  );
  const ours = at(times.get('toolfinch').samples, 0.5);
  const ourCpu = at(cpu.get('toolfinch'), 0.5);
  for (const [name, { samples }] of times) {
    const p50 = at(samples, 0.5);
    console.log(
      `  ${name.padEnd(32)} p50 ${p50.toFixed(0).padStart(6)} ms   p95 ${at(samples, 0.95).toFixed(0).padStart(6)} ms   ` +
        `spread ${at(samples, 0.1).toFixed(0)} to ${at(samples, 0.9).toFixed(0)} ms   ` +
        `${(p50 / ours).toFixed(2)} of ours   CPU ${at(cpu.get(name), 0.5).toFixed(0)} ms, ${(at(cpu.get(name), 0.5) / ourCpu).toFixed(2)} of ours   event loop at most ${at(late.get(name), 0.5).toFixed(0)} ms late   n ${samples.length}`,
    );
  }
  await reranker.close();
  await session.release();
}

function at(samples, quantile) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))];
}
