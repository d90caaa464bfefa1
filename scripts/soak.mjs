// Selects by the hundred thousand with feedback and changes in between, and watches memory: after the warm-up, resident
// and external memory must neither grow along a line nor leave a narrow band.
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `node --expose-gc scripts/soak.mjs [options]
  --selects N      (default 1000000; short form 20000)
  --tools N        rows of the index (default 5000)
  --dimension N    (default 384; short form 128)
  --churn N        one upsert and remove after so many selects (default 100, 0: never)
  --short          the form for CI
  --dist FOLDER    (default dist/esm)
  --growth MB      how much memory may seem to grow from the end of the warm-up to the end (default 24)
Starts itself with --expose-gc when that is missing. Fails when the regression line through the samples after the
warm-up (the first fifth) rises by more than --growth, or the highest sample lies so far above the first ones' median.`;

const { values } = parseArgs({
  options: {
    selects: { type: 'string' },
    tools: { type: 'string', default: '5000' },
    dimension: { type: 'string' },
    churn: { type: 'string', default: '100' },
    short: { type: 'boolean', default: false },
    dist: { type: 'string' },
    growth: { type: 'string', default: '24' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
if (globalThis.gc === undefined) {
  const { spawnSync } = await import('node:child_process');
  const args = ['--expose-gc', fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1);
}

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = path.resolve(values.dist ?? path.join(root, 'dist/esm'));
const { binding } = await import(pathToFileURL(path.join(dist, 'lib/native.js')).href);
const addon = binding();

const selects = Number(values.selects ?? (values.short ? 20_000 : 1_000_000));
const tools = Number(values.tools);
const dimension = Number(values.dimension ?? (values.short ? 128 : 384));
const churn = Number(values.churn);
const samples = 200;
const every = Math.max(1, Math.floor(selects / samples));

let state = 12345;
function random() {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return ((state >>> 0) / 2 ** 32) * 2 - 1;
}
const vectors = (count) => Float32Array.from({ length: count * dimension }, random);

const ids = Array.from({ length: tools }, (_, i) => `tool ${i}`);
const index = addon.indexCreate(dimension);
addon.indexUpsertSync(index, ids, vectors(tools));
const bandit = addon.banditCreate({ dimension });
const queries = Array.from({ length: 64 }, () => vectors(1));
const spare = vectors(8);
const prior = Float32Array.of(0.5);
const search = { k: 32, mode: 'exact' };

const points = [];
function sample(done) {
  globalThis.gc();
  const { rss, external, arrayBuffers, heapUsed } = process.memoryUsage();
  points.push({ done, rss, external: external + arrayBuffers, heapUsed });
}

/** One step of an agent: select, report on the best tool, now and then change the catalogue. */
async function step(i, snapshot) {
  const query = queries[i % queries.length];
  const rank = { now: i * 10, explore: true, cut: { minK: 1, maxK: 8 } };
  const found =
    i % 4 === 3
      ? await addon.select(snapshot, bandit, query, search, rank)
      : addon.selectSync(snapshot, bandit, query, search, rank);
  if (found.keys.length !== search.k || found.cut.k < 1) throw new Error(`select ${i} went wrong`);
  const y = Float32Array.of(i % 3 === 0 ? 0 : 1);
  addon.banditUpdate(bandit, [found.ids[0]], query, prior, y, Float64Array.of(i * 10));
}

async function changeCatalogue(i) {
  const id = `passing ${i % 16}`;
  const at = (i % 8) * dimension;
  await addon.indexUpsert(index, [id], spare.subarray(at, at + dimension));
  await addon.indexRemove(index, [id]);
}

const started = performance.now();
let snapshot = addon.indexSnapshot(index);
for (let i = 0; i < selects; i++) {
  await step(i, snapshot);
  if (churn > 0 && i % churn === churn - 1) {
    await changeCatalogue(i);
    addon.snapshotClose(snapshot);
    snapshot = addon.indexSnapshot(index);
  }
  if ((i + 1) % every === 0) sample(i + 1);
  if ((i + 1) % (every * 20) === 0) {
    const last = points.at(-1);
    const rate = ((i + 1) / (performance.now() - started)) * 1000;
    console.log(
      `${i + 1} selects, ${rate.toFixed(0)}/s: rss ${mb(last.rss)}, external ${mb(last.external)}, heap ${mb(last.heapUsed)} MB`,
    );
  }
}

function mb(bytes) {
  return (bytes / 2 ** 20).toFixed(1);
}

/** Bytes by which the line of least squares rises over the samples. */
function rise(values) {
  const n = values.length;
  const meanX = (n - 1) / 2;
  const meanY = values.reduce((a, b) => a + b, 0) / n;
  let xy = 0;
  let xx = 0;
  for (const [x, y] of values.entries()) {
    xy += (x - meanX) * (y - meanY);
    xx += (x - meanX) ** 2;
  }
  return (xy / xx) * (n - 1);
}

const warm = points.slice(Math.floor(points.length / 5));
const most = Number(values.growth) * 2 ** 20;
let faults = 0;
for (const what of ['rss', 'external']) {
  const line = warm.map((point) => point[what]);
  const base = [...line.slice(0, 20)].sort((a, b) => a - b)[10];
  const above = Math.max(...line) - base;
  const grown = rise(line);
  const fine = grown <= most && above <= 2 * most;
  if (!fine) faults++;
  console.log(
    `${what}: ${mb(base)} MB after the warm-up, line rises ${mb(grown)} MB over ${selects - selects / 5} selects ` +
      `(${((grown / (selects * 0.8)) * 1).toFixed(2)} bytes a select), highest ${mb(above)} MB above: ` +
      (fine ? 'steady' : 'GROWS'),
  );
}
console.log(
  `soak: ${selects} selects on ${tools} x ${dimension}: ${faults === 0 ? 'no fault' : 'FAULT'}`,
);
process.exit(faults === 0 ? 0 : 1);
