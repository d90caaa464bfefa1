// Approximate search over clustered vectors: queries per second against recall, building, masks.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { k, makeCatalogue, recallOf, withTruth } from '../catalogue.mjs';
import { lazily, removeFolder } from '../files.mjs';
import { makeIndex, rowsOf } from '../peers/ours.mjs';
import { PythonProcess, pythonEnvironment } from '../peers/python.mjs';
import { scratch } from '../prepare.mjs';
import { roundRobin, summary } from '../rounds.mjs';

const connectivity = 16;
const expansionAdd = 128;
/** Candidates that a search keeps (ef). */
const expansions = [10, 16, 24, 32, 64, 128, 256];
const shares = [0.5, 0.1, 0.01];

export function annSteps({ options, plan }) {
  const threads = Math.max(...options.threads);
  return plan.ann.flatMap((size) => {
    const name = `ANN ${size.count.toLocaleString('en')} x ${size.dimension}`;
    const scale = (size.count * size.dimension) / 7.7e6;
    const one = {
      ...size,
      threads,
      folder: path.join(scratch, `ann-${size.count}x${size.dimension}`),
    };
    return [
      { name: `${name}: graphs`, seconds: 1 + 22 * scale, run: (context) => build(one, context) },
      { name: `${name}: searches`, seconds: 1 + 14 * scale, run: (context) => sweep(one, context) },
      { name: `${name}: masks`, seconds: 1 + 2 * scale, run: (context) => masks(one, context) },
    ];
  });
}

async function build(one, { addon, probe, python, skip }) {
  probe.pin(one.threads);
  one.catalogue = withTruth(probe, makeCatalogue(probe, one));
  one.graphs = [];
  one.made = makeIndex(addon, one.catalogue, 'f32');
  const start = performance.now();
  await addon.indexBuildAnn(one.made.index, { connectivity, expansionAdd, expansionSearch: k });
  const seconds = (performance.now() - start) / 1000;
  addon.snapshotClose(one.made.snapshot);
  one.made.snapshot = addon.indexSnapshot(one.made.index);
  one.graphs.push({
    name: 'toolfinch',
    addsPerSecond: one.count / seconds,
    bytes: addon.indexInspect(one.made.index).annBytes,
    at: (ef) => ourSearch(addon, one, ef),
    close: () => one.made.close(),
  });
  for (const quantization of ['f32', 'bf16']) {
    try {
      one.graphs.push(await usearchGraph(one, quantization));
    } catch (error) {
      skip(`usearch index ${quantization}`, error.message);
    }
  }
  if (python === undefined) return;
  try {
    one.graphs.push(await faissGraph(one, python, probe.levels()));
  } catch (error) {
    skip('faiss HNSW', error.message);
  }
}

function ourSearch(addon, { made, catalogue, threads }, ef) {
  const options = { k, mode: 'ann', threads, expansion: ef };
  const run = () => addon.searchSync(made.snapshot, catalogue.queries, options);
  return { run, found: async () => rowsOf(run(), made.firstKey).rows };
}

async function usearchGraph({ catalogue, count, dimension, threads, folder }, quantization) {
  const { Index, MetricKind } = await import('usearch');
  const make = (ef) =>
    new Index({
      dimensions: dimension,
      metric: MetricKind.IP,
      quantization,
      connectivity,
      expansion_add: expansionAdd,
      expansion_search: ef,
    });
  const graph = make(k);
  const keys = BigUint64Array.from({ length: count }, (_, i) => BigInt(i));
  const start = performance.now();
  graph.add(keys, catalogue.matrix, threads);
  const seconds = (performance.now() - start) / 1000;
  // How many candidates are kept is fixed when an index is made: the graph is read again for each number.
  const file = path.join(folder, `usearch-${quantization}.bin`);
  mkdirSync(folder, { recursive: true });
  graph.save(file);
  return {
    name: `usearch ${quantization}`,
    addsPerSecond: count / seconds,
    at(ef) {
      const copy = make(ef);
      copy.load(file);
      const run = () => copy.search(catalogue.queries, k, threads);
      return { run, found: async () => run().keys };
    },
    close() {},
  };
}

async function faissGraph({ catalogue, dimension, threads, folder }, python, levels) {
  const child = new PythonProcess(python, threads, pythonEnvironment(levels));
  const { addsPerSecond } = await child.ask({
    do: 'hnsw',
    matrix: lazily(path.join(folder, 'matrix.f32'), catalogue.matrix)(),
    queries: lazily(path.join(folder, 'queries.f32'), catalogue.queries)(),
    dimension,
    threads,
    connectivity,
    expansionAdd,
  });
  return {
    name: 'faiss HNSW',
    addsPerSecond,
    at: (ef) => ({
      timed: async (times) => (await child.ask({ do: 'hnswTime', ef, times })).seconds,
      found: async () => (await child.ask({ do: 'hnswFound', ef })).rows,
      settleMs: 5,
    }),
    close: () => child.close(),
  };
}

async function sweep(one, { probe, plan, results, options }) {
  const { count, dimension, clusters, queries, threads, catalogue, graphs } = one;
  probe.pin(threads);
  const wanted = Array.from({ length: queries }, (_, q) =>
    Array.from(catalogue.truth.rows.subarray(q * k, (q + 1) * k)),
  );
  const contestants = [];
  const recalls = new Map();
  for (const graph of graphs) {
    for (const ef of expansions) {
      const { found, ...timing } = graph.at(ef);
      const name = `${graph.name} ef ${ef}`;
      recalls.set(name, recallOf(await found(), k, wanted));
      contestants.push({ ...timing, name, graph, ef });
    }
  }
  const budgetMs = options.mode === 'smoke' ? 200 : plan.cellMs * 2.5;
  const timed = await roundRobin(contestants, { budgetMs, least: 3, most: 50 });
  const curves = graphs.map(({ name, addsPerSecond, bytes }) => ({
    name,
    addsPerSecond,
    bytes: bytes ?? null,
    points: contestants
      .filter(({ graph }) => graph.name === name)
      .map(({ name: label, ef }) => {
        const ms = summary(timed.get(label).samples);
        return {
          ef,
          recall: recalls.get(label),
          queriesPerSecond: (queries / ms.median) * 1000,
          ms,
        };
      }),
  }));
  for (const curve of curves) curve.at99 = speedAt(curve.points, 0.99);
  one.result = { count, dimension, clusters, queries, threads, connectivity, expansionAdd, curves };
  results.ann.push(one.result);
}

/** Queries per second at a recall, between the measured points; null where none reaches it. */
export function speedAt(points, recall) {
  const reached = points.filter((point) => point.recall >= recall);
  if (reached.length === 0) return null;
  const above = reached.reduce((a, b) => (b.queriesPerSecond > a.queriesPerSecond ? b : a));
  const below = points
    .filter((point) => point.recall < recall && point.queriesPerSecond > above.queriesPerSecond)
    .sort((a, b) => b.recall - a.recall)[0];
  if (below === undefined) return above.queriesPerSecond;
  const part = (recall - below.recall) / (above.recall - below.recall);
  return below.queriesPerSecond + part * (above.queriesPerSecond - below.queriesPerSecond);
}

/** Only some rows may be returned: the same question to the graph and to the scan. */
async function masks(one, { addon, probe, options }) {
  const { count, dimension, catalogue, made, threads, queries } = one;
  one.result.masks = [];
  for (const share of shares) {
    const every = Math.round(1 / share);
    const allowed = Array.from({ length: Math.floor(count / every) }, (_, i) => i * every);
    const part = new Float32Array(allowed.length * dimension);
    allowed.forEach((row, i) => {
      part.set(catalogue.matrix.subarray(row * dimension, (row + 1) * dimension), i * dimension);
    });
    const { rows } = probe.truth(part, catalogue.queries, dimension, k);
    const depth = Math.min(k, allowed.length);
    const wanted = Array.from({ length: queries }, (_, q) =>
      Array.from(rows.subarray(q * depth, (q + 1) * depth), (i) => allowed[i]),
    );
    const { allow } = addon.allowCreate(
      made.snapshot,
      allowed.map((row) => made.ids[row]),
    );
    const search = (mode) => () =>
      addon.searchSync(made.snapshot, catalogue.queries, { k, mode, allow, threads });
    const timed = await roundRobin(
      ['auto', 'exact'].map((name) => ({ name, run: search(name) })),
      { budgetMs: options.mode === 'smoke' ? 50 : 1500, least: 3, most: 30 },
    );
    const found = rowsOf(search('auto')(), made.firstKey).rows;
    one.result.masks.push({
      share,
      recall: recallOf(found, k, wanted),
      queriesPerSecond: (queries / summary(timed.get('auto').samples).median) * 1000,
      exactQueriesPerSecond: (queries / summary(timed.get('exact').samples).median) * 1000,
    });
  }
  for (const graph of one.graphs) graph.close();
  removeFolder(one.folder);
}
