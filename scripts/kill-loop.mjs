// Kills a process that reports outcomes, at random moments, and checks after each kill that the folder opens, that every
// acknowledged report is there, that none was applied twice, and that the bandit is, bit for bit, what applying the
// reports one by one gives.
//
//   node scripts/kill-loop.mjs [--kills 200] [--seed 1] [--dist dist/esm] [--bandit FILE]
//
// --bandit names a module exporting `FakeBandit`; without it the addon's bandit is used.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { random } from './random.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    dist: { type: 'string', default: path.join(root, 'dist/esm') },
    bandit: { type: 'string' },
    child: { type: 'string' },
    run: { type: 'string' },
  },
});

const storeFile = path.resolve(values.dist, 'lib/reliability/feedback-store.js');
if (!existsSync(storeFile)) {
  console.error(`${storeFile} does not exist; run \`npm run build\` first`);
  process.exit(1);
}
const load = (file) => import(pathToFileURL(path.resolve(file)).href);
const { FeedbackStore } = await load(storeFile);
const Bandit =
  values.bandit === undefined
    ? (await load(path.resolve(values.dist, 'lib/reliability/bandit.js'))).Bandit
    : (await load(values.bandit)).FakeBandit;

const dimension = 16;
const inFlight = 24;
const toolIds = ['mail', 'maps', 'music', 'weather'];
const priors = Float32Array.of(0.5, 0.25, 0.75, 0.9);
const outcomes = ['success', 'error', 'success', 'timeout', 'cancelled'];
const open = (folder) =>
  FeedbackStore.open(folder, {
    bandit: { dimension },
    createBandit: (options) => new Bandit(options),
    // Small, so that kills fall into compactions too.
    compactBytes: 15_000,
  });

/** Report `i` of run `run`: both sides know what it says. */
function planned(run, i) {
  return {
    decisionId: `${run}/${i}`,
    toolId: toolIds[(i * 7 + run) % toolIds.length],
    outcome: outcomes[(i * 3 + run) % outcomes.length],
    at: run * 1e6 + i,
  };
}

function contextOf(run, i) {
  return Float32Array.from({ length: dimension }, (_, j) => Math.sin(run * 13 + i * 5 + j) + 1e-3);
}

async function reportUntilKilled(folder, run) {
  const store = await open(folder);
  let next = 0;
  const lane = async () => {
    for (;;) {
      const i = next++;
      const report = planned(run, i);
      store.decide({ id: report.decisionId, x: contextOf(run, i), toolIds, priors });
      const { durable } = await store.report(report);
      // Straight to the pipe: what the parent reads was acknowledged.
      if (durable) writeSync(1, `${i}\n`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

async function killOnce(folder, run, chance) {
  const args = [fileURLToPath(import.meta.url), '--child', folder, '--run', String(run)];
  args.push('--dist', values.dist, ...(values.bandit ? ['--bandit', values.bandit] : []));
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const acknowledged = [];
  let started;
  const first = new Promise((resolve) => {
    started = resolve;
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    acknowledged.push(Number(line));
    started();
  });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      started();
      resolve(signal ?? code);
    });
  });
  // One in eight dies while it starts or opens; the others some while after their first report.
  if (chance() < 1 / 8) await sleep(chance() * 300);
  else {
    await first;
    await sleep(chance() ** 2 * 500);
  }
  child.kill('SIGKILL');
  const how = await ended;
  if (how !== 'SIGKILL') throw new Error(`run ${run} ended by itself (${how})`);
  return acknowledged;
}

async function main() {
  const kills = Number(values.kills);
  const chance = random(Number(values.seed));
  const folder = mkdtempSync(path.join(tmpdir(), 'finch-kill-'));
  const reference = new Bandit({ dimension });
  const total = { kills, acknowledged: 0, applied: 0, torn: 0, snapshots: 0 };
  let lastSnapshot = 0;
  try {
    for (let run = 1; run <= kills; run++) {
      const acknowledged = await killOnce(folder, run, chance);
      const store = await open(folder);
      let count = 0;
      while (store.decision(`${run}/${count}`)?.reported.length === 1) count++;
      const most = Math.max(-1, ...acknowledged);
      if (most >= count)
        throw new Error(`run ${run}: report ${most} was acknowledged, ${count} are there`);
      for (const i of acknowledged) {
        const { status } = await store.report(planned(run, i));
        if (status !== 'duplicate') throw new Error(`run ${run}: report ${i} was ${status} again`);
      }
      for (let i = 0; i < count; i++) {
        const { toolId, outcome, at } = planned(run, i);
        if (outcome === 'cancelled') continue;
        const prior = priors.slice(toolIds.indexOf(toolId)).subarray(0, 1);
        const y = Float32Array.of(outcome === 'success' ? 1 : 0);
        reference.update([toolId], contextOf(run, i), prior, y, Float64Array.of(at));
      }
      if (Buffer.compare(store.bandit.serialize(), reference.serialize()) !== 0) {
        throw new Error(`run ${run}: the bandit is not what its ${count} reports give`);
      }
      const { recovered, snapshot } = store.health();
      total.acknowledged += acknowledged.length;
      total.applied += count;
      total.torn += recovered.length;
      if (snapshot !== undefined && snapshot.sequence !== lastSnapshot) total.snapshots++;
      lastSnapshot = snapshot?.sequence ?? 0;
      await store.close();
    }
  } catch (error) {
    console.error(`${folder} is kept for a look`);
    throw error;
  }
  reference.close();
  rmSync(folder, { recursive: true });
  console.log(JSON.stringify(total));
}

if (values.child === undefined) await main();
else await reportUntilKilled(values.child, Number(values.run));
