// How the time of a search grows with the number of vectors and of queries.

import path from 'node:path';
import { makeCatalogue } from '../catalogue.mjs';
import { lazily, removeFolder } from '../files.mjs';
import { onnxruntime } from '../peers/onnxruntime.mjs';
import { exactContestant, makeIndex } from '../peers/ours.mjs';
import { usearchF32 } from '../peers/usearch.mjs';
import { scratch } from '../prepare.mjs';
import { roundRobin, summary } from '../rounds.mjs';

const kept = ['f32', 'bf16', 'i8'];

export function growthSteps({ options, plan }) {
  const threads = options.threads[0];
  const dimension = options.mode === 'smoke' ? 48 : 768;
  const smallest = plan.shapes[0];
  const byCount = plan.growthCounts.map((count) => ({
    name: `growth over vectors: ${count.toLocaleString('en')} x ${dimension}`,
    seconds: 0.8 + (1.5 * count * dimension) / 3e7,
    run: (context) => one({ count, dimension, batch: 1, threads, curve: 'vectors' }, context),
  }));
  const byBatch = {
    name: `growth over queries: ${smallest[0].toLocaleString('en')} x ${smallest[1]}`,
    seconds: plan.growthBatches.length,
    run: async (context) => {
      for (const batch of plan.growthBatches) {
        const [count, wide] = smallest;
        await one({ count, dimension: wide, batch, threads, curve: 'queries' }, context);
      }
    },
  };
  return [...byCount, byBatch];
}

async function one({ count, dimension, batch, threads, curve }, context) {
  const { addon, probe, options, results, skip } = context;
  probe.pin(threads);
  const catalogue = makeCatalogue(probe, { count, dimension, queries: batch });
  const folder = path.join(scratch, `growth-${count}x${dimension}`);
  const matrixFile = lazily(path.join(folder, 'matrix.f32'), catalogue.matrix);
  const open = [];
  const contestants = [];
  for (const storage of kept) {
    const made = makeIndex(addon, catalogue, storage);
    if (made === undefined) continue;
    open.push(made);
    contestants.push(exactContestant(addon, made, storage, catalogue, batch, threads));
  }
  for (const peer of [onnxruntime, usearchF32]) {
    try {
      const ready = await peer.prepare({ ...catalogue, threads, matrixFile });
      open.push(ready);
      contestants.push({ name: peer.name, settleMs: peer.settleMs, run: () => ready.ask(batch) });
    } catch (error) {
      skip(peer.name, String(error.message).split('\n')[0]);
    }
  }
  const budgetMs = options.mode === 'smoke' ? 60 : 600;
  const timed = await roundRobin(contestants, { budgetMs, least: 3, most: 60 });
  for (const each of open) await each.close();
  removeFolder(folder);
  const ms = {};
  for (const [name, { samples }] of timed) ms[name] = summary(samples);
  results.growth.push({ curve, count, dimension, batch, threads, ms });
}
