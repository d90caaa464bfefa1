// Exact search: ours in every storage, peers and the machine's limits, in turn, for each shape, batch and thread count.
import path from 'node:path';
import { k, makeCatalogue, quality, withTruth } from '../catalogue.mjs';
import { lazily, removeFolder } from '../files.mjs';
import {
  bandwidthContestant,
  floorOf,
  peakContestants,
  ratesOf,
  storageBytes,
} from '../limits.mjs';
import { availableMemory } from '../machine.mjs';
import { hnswlib } from '../peers/hnswlib.mjs';
import { javascript } from '../peers/javascript.mjs';
import { onnxruntime } from '../peers/onnxruntime.mjs';
import { exactContestant, makeIndex, storages } from '../peers/ours.mjs';
import { pythonPeers } from '../peers/python.mjs';
import { usearchF32, usearchI8 } from '../peers/usearch.mjs';
import { scratch } from '../prepare.mjs';
import { ratio, roundRobin, summary } from '../rounds.mjs';

const peers = [onnxruntime, usearchF32, usearchI8, hnswlib, javascript];
// A peer that works query by query is asked no more of them in one sample than fit into this time.
const longestSampleMs = 150;

export function exactSteps({ options, plan }) {
  const most = Math.max(...plan.batches);
  return plan.shapes.flatMap(([count, dimension]) => {
    const shape = {
      count,
      dimension,
      queries: most,
      folder: path.join(scratch, `${count}x${dimension}`),
    };
    const size = `${count.toLocaleString('en')} x ${dimension}`;
    const large = (count * dimension) / 4.5e7;
    const steps = [
      {
        name: `exact ${size}: vectors, reference, indexes`,
        seconds: 0.5 + 9 * large,
        run: (context) => prepareShape(shape, context),
      },
    ];
    for (const threads of options.threads) {
      steps.push({
        name: `exact ${size}, ${threads} ${threads === 1 ? 'thread' : 'threads'}: peers`,
        seconds: 0.5 + (threads === 1 ? 6 : 2) * large,
        run: (context) => preparePeers(shape, threads, context),
      });
      for (const batch of plan.batches) {
        steps.push({
          name: `exact ${size}, ${threads} ${threads === 1 ? 'thread' : 'threads'}, batch ${batch}`,
          seconds: (plan.cellMs / 1000) * 1.3,
          run: (context) => measureCell(shape, batch, threads, context),
        });
      }
    }
    steps.push({ name: `exact ${size}: end`, seconds: 0, run: () => closeShape(shape) });
    return steps;
  });
}

function prepareShape(shape, { addon, probe, skip }) {
  probe.pin(probe.cpus());
  shape.catalogue = withTruth(probe, makeCatalogue(probe, shape));
  shape.indexes = new Map();
  for (const storage of storages) {
    const needed = shape.count * shape.dimension * 6;
    if (availableMemory() < needed * 1.5) {
      skip(
        `toolfinch ${storage}`,
        `not enough free memory for ${shape.count} x ${shape.dimension}`,
      );
      continue;
    }
    const made = makeIndex(addon, shape.catalogue, storage);
    if (made === undefined) skip(`toolfinch ${storage}`, 'this build has no such storage');
    else shape.indexes.set(storage, made);
  }
  shape.matrixFile = lazily(path.join(shape.folder, 'matrix.f32'), shape.catalogue.matrix);
  shape.queriesFile = lazily(path.join(shape.folder, 'queries.f32'), shape.catalogue.queries);
  shape.prepared = [];
}

async function preparePeers(shape, threads, { options, probe, python, skip }) {
  await closePeers(shape);
  probe.pin(threads);
  const given = {
    ...shape.catalogue,
    threads,
    matrixFile: shape.matrixFile,
    queriesFile: shape.queriesFile,
  };
  for (const peer of peers) {
    if (peer.threads === 1 && threads > 1) continue;
    // Peers keep a copy of the vectors, onnxruntime two.
    if (availableMemory() < shape.count * shape.dimension * 4 * 2.5) {
      skip(peer.name, `not enough free memory for ${shape.count} x ${shape.dimension}`);
      continue;
    }
    try {
      const ready = await peer.prepare(given);
      shape.prepared.push({
        contestants: (batch) => [peerContestant(peer, ready, batch)],
        close: () => ready.close(),
      });
    } catch (error) {
      skip(peer.name, firstLine(error));
    }
  }
  if (!options.python || python === undefined) return;
  for (const group of pythonPeers(python, probe.levels())) {
    if (availableMemory() < shape.count * shape.dimension * 4 * 4) {
      skip(
        group.names.join(', '),
        `not enough free memory for ${shape.count} x ${shape.dimension}`,
      );
      continue;
    }
    try {
      shape.prepared.push(await group.prepare(given));
    } catch (error) {
      skip(group.names.join(', '), firstLine(error));
    }
  }
}

function peerContestant(peer, ready, batch) {
  const asked = peer.scales ? queriesThatFit(ready, batch) : batch;
  return {
    name: peer.name,
    queries: asked,
    settleMs: peer.settleMs ?? 0,
    run: () => ready.ask(asked),
    found: async () => ready.found(await ready.ask(asked)),
  };
}

/** A power of two of queries whose time stays below the longest sample's. */
function queriesThatFit(ready, batch) {
  if (batch === 1) return 1;
  ready.ask(1);
  const start = performance.now();
  ready.ask(1);
  const fit = longestSampleMs / Math.max(0.001, performance.now() - start);
  return Math.min(batch, 2 ** Math.floor(Math.log2(Math.max(1, fit))));
}

async function measureCell(shape, batch, threads, { addon, probe, plan, results }) {
  probe.pin(threads);
  const { count, dimension, catalogue } = shape;
  const contestants = [];
  for (const [storage, made] of shape.indexes)
    contestants.push(exactContestant(addon, made, storage, catalogue, batch, threads));
  for (const { contestants: make } of shape.prepared) contestants.push(...make(batch));
  const sizes = new Set(
    [...shape.indexes.keys()].map((storage) => storageBytes(storage, count, dimension)),
  );
  const limits = [
    ...[...sizes].map((bytes) => bandwidthContestant(probe, bytes, threads)),
    ...peakContestants(probe, threads),
  ];

  const qualities = new Map();
  for (const { name, found, queries } of contestants)
    qualities.set(name, quality(probe, catalogue, await found(), queries));
  const timed = await roundRobin([...contestants, ...limits], {
    budgetMs: plan.cellMs,
    least: plan.least,
  });
  const rates = ratesOf(timed);
  const cell = {
    count,
    dimension,
    batch,
    threads,
    k,
    floors: {},
    limits: Object.fromEntries(rates),
    rows: [],
  };
  for (const storage of shape.indexes.keys())
    cell.floors[storage] = floorOf(rates, storage, { count, dimension, batch, threads });
  for (const { name, queries, storage } of contestants) {
    const scaled = scale(timed.get(name), batch / queries);
    timed.set(name, scaled);
    cell.rows.push({
      name,
      ours: storage !== undefined,
      storage: storage ?? null,
      ms: summary(scaled.samples),
      // Fewer queries than the batch, and the time scaled up: the peer works query by query.
      queriesTimed: queries,
      ...qualities.get(name),
    });
  }
  for (const row of cell.rows) {
    if (!row.ours) {
      row.oursIsFaster = ratio(timed.get(row.name), timed.get('toolfinch f32'));
    } else {
      const floor = cell.floors[row.storage].ms;
      row.overFloor = {
        median: row.ms.median / floor,
        p10: row.ms.p10 / floor,
        p90: row.ms.p90 / floor,
      };
    }
  }
  cell.comparisons = comparisons(timed);
  results.exact.push(cell);
}

function scale({ samples, rounds }, factor) {
  return { samples: samples.map((sample) => sample * factor), rounds };
}

/** How many times as fast our compressed storages are as what the budgets hold them against. */
function comparisons(timed) {
  const pairs = [
    ['toolfinch bf16', 'toolfinch f32'],
    ['toolfinch i8', 'toolfinch f32'],
    ['toolfinch i8', 'usearch i8'],
    ['toolfinch bf16', 'torch bf16'],
    ['toolfinch bf16', 'torch bf16 without AMX'],
    ['toolfinch f32', 'torch f32'],
  ];
  return pairs
    .filter((pair) => pair.every((name) => timed.has(name)))
    .map(([fast, slow]) => ({
      name: fast,
      than: slow,
      ratio: ratio(timed.get(slow), timed.get(fast)),
    }));
}

async function closePeers(shape) {
  for (const { close } of shape.prepared.splice(0)) await close();
}

async function closeShape(shape) {
  await closePeers(shape);
  for (const made of shape.indexes.values()) made.close();
  shape.indexes.clear();
  shape.catalogue = undefined;
  removeFolder(shape.folder);
}

function firstLine(error) {
  return String(error?.message ?? error).split('\n')[0];
}
