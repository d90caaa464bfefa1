// Four replica processes share feedback through a redis-server of this script's own, while replicas and Redis are killed,
// Redis is paused, and connections are cut after the request and before the reply. In the end every acknowledged report
// must have been applied by every replica, none twice, and all must hold the same bits: those that an independent reader
// of the stream gets by applying each report once.
//
//   node scripts/replicas.mjs [--reports 100000] [--seed 1] [--faults 40] [--fsync everysec|always]
//
// Needs `npm run build`, the package `redis` and redis-server on the PATH.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeSync } from 'node:fs';
import { connect as connectTcp, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { freePort } from './free-port.mjs';
import { random } from './random.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    reports: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string', default: '40' },
    fsync: { type: 'string', default: 'everysec' },
    dist: { type: 'string', default: path.join(root, 'dist/esm') },
    child: { type: 'string' },
    port: { type: 'string' },
  },
});

if (!existsSync(path.join(values.dist, 'lib/index.js'))) {
  console.error(`${values.dist} has no build; run \`npm run build\` first`);
  process.exit(1);
}
const load = (file) => import(pathToFileURL(path.join(values.dist, 'lib', file)).href);
const { Bandit } = await load('reliability/bandit.js');
const { ReplicatedFeedback } = await load('reliability/replicas/index.js');
const { decodeRecord } = await load('reliability/records.js');

const dimension = 16;
const replicas = 4;
const inFlight = 100;
const toolIds = Array.from({ length: 20 }, (_, i) => `tool-${i}`);
const priors = Float32Array.from(toolIds, (_, i) => (i % 10) / 10);
const outcomes = ['success', 'error', 'success', 'timeout', 'success', 'cancelled'];
const names = { tenant: 'proof', catalogue: 'tools' };

/** Report `i`: everyone knows what it says, and where it is decided and reported. */
function planned(i) {
  const home = i % replicas;
  const away = i % 10 === 3;
  return {
    decisionId: `decision-${i}`,
    toolId: toolIds[(i * 7) % toolIds.length],
    outcome: outcomes[(i * 5) % outcomes.length],
    x: Float32Array.from({ length: dimension }, (_, j) => Math.sin(i * 5 + j) + 1e-3),
    home,
    // One in ten is reported where it was not decided, one in twenty by two replicas.
    reporters: [
      away ? (home + 1) % replicas : home,
      ...(i % 20 === 7 ? [(home + 2) % replicas] : []),
    ],
  };
}

// --- A replica: does what its standard input says ------------------------------------------------------------------

async function replica(folder, port) {
  const say = (line) => writeSync(1, `${line}\n`);
  const feedback = await ReplicatedFeedback.open(folder, {
    bandit: { dimension },
    redis: { url: `redis://127.0.0.1:${port}` },
    ...names,
    snapshotEvery: 3000,
    keepRecords: 1500,
    compactBytes: 400_000,
    retainMs: 2000,
    commandTimeoutMs: 1500,
    openWaitMs: 2000,
    closeWaitMs: 1000,
    maxDecisions: 20_000,
    sharedDecisions: 20_000,
  });
  const decide = (i) => {
    const { decisionId, x } = planned(i);
    try {
      feedback.decide({ id: decisionId, x, toolIds, priors });
    } catch (error) {
      if (error.code !== 'FINCH_DUPLICATE_ID') throw error;
    }
  };
  const report = async (i, isHome) => {
    const { decisionId, toolId, outcome } = planned(i);
    for (;;) {
      try {
        if (isHome) decide(i);
        const { status } = await feedback.report({ decisionId, toolId, outcome });
        say(`a ${i} ${status}`);
        return;
      } catch (error) {
        // The decision is not shared yet, or Redis is away.
        if (error.code !== 'FINCH_UNKNOWN_ID' && error.code !== 'FINCH_IO') throw error;
        await sleep(100);
      }
    }
  };
  say('open');
  for await (const line of createInterface({ input: process.stdin })) {
    const [what, number, isHome] = line.split(' ');
    const i = Number(number);
    if (what === 'd') {
      decide(i);
      say(`d ${i}`);
    } else if (what === 'r') {
      report(i, isHome === 'home').catch((error) => {
        console.error(error);
        process.exit(1);
      });
    } else if (what === 'flush') {
      await feedback.flush();
      say('f');
    } else if (what === 'end') {
      await feedback.catchUp();
      const bandit = createHash('sha256').update(feedback.bandit.serialize()).digest('hex');
      say(`e ${JSON.stringify({ ...feedback.checksum(), bandit, health: feedback.health() })}`);
    }
  }
  await feedback.close();
}

// --- The proof -----------------------------------------------------------------------------------------------------

class Redis {
  constructor(folder, port) {
    this.folder = folder;
    this.port = port;
  }

  async start() {
    const args = ['--port', this.port, '--bind', '127.0.0.1', '--dir', this.folder, '--save', ''];
    args.push('--appendonly', 'yes', '--appendfsync', values.fsync, '--loglevel', 'warning');
    args.push('--maxmemory-policy', 'noeviction');
    this.process = spawn('redis-server', args.map(String), {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    this.process.on('error', (error) => {
      console.error(
        `redis-server cannot be started (${error.message}); install it (apt-get install redis-server)`,
      );
      process.exit(1);
    });
    this.ended = new Promise((resolve) => this.process.on('exit', resolve));
    const { process: server } = this;
    while (!(await reachable(this.port))) {
      if (server.exitCode !== null) throw new Error(`redis-server ended with ${server.exitCode}`);
      await sleep(20);
    }
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

function reachable(port) {
  return new Promise((resolve) => {
    const socket = connectTcp(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

/** Stands between some replicas and Redis, and can cut them off. */
class Between {
  /** pass | lose-replies: requests get there, and the connection ends before the reply does | refuse */
  mode = 'pass';
  lost = 0;
  #sockets = new Set();

  constructor(target) {
    this.target = target;
    this.server = createServer((client) => {
      if (this.mode === 'refuse') return client.destroy();
      const server = connectTcp(this.target, '127.0.0.1');
      const both = [client, server];
      for (const socket of both) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          for (const each of both) each.destroy();
        });
      }
      client.on('data', (data) => server.write(data));
      server.on('data', (data) => {
        if (this.mode === 'lose-replies') {
          this.lost++;
          client.destroy();
        } else client.write(data);
      });
    });
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this.server.address().port;
  }

  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.cut();
    this.server.close();
  }
}

/** Reads the whole stream beside the replicas, and applies each report once, in the plainest way. */
class Observer {
  seen = new Set();
  repeated = 0;
  records = 0;
  reference = new Bandit({ dimension });
  #stopped = false;

  async run(port) {
    const { createClient, RESP_TYPES } = await import('redis');
    const key = `toolfinch:{${names.tenant}:${names.catalogue}}:stream`;
    while (!this.#stopped) {
      const client = createClient({
        url: `redis://127.0.0.1:${port}`,
        RESP: 2,
        socket: { reconnectStrategy: false },
      });
      client.on('error', () => undefined);
      try {
        await client.connect();
        while (!this.#stopped) {
          const args = [
            'XREAD',
            'COUNT',
            '500',
            'BLOCK',
            '200',
            'STREAMS',
            key,
            `${this.records}-0`,
          ];
          const reply = await client.sendCommand(args, {
            typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer },
          });
          for (const [id, fields] of reply?.[0]?.[1] ?? []) this.#take(String(id), fields);
        }
      } catch (error) {
        if (error.fatal) throw error;
        await sleep(50);
      }
      if (client.isOpen) client.destroy();
    }
  }

  stop() {
    this.#stopped = true;
  }

  #take(id, fields) {
    const values = Object.fromEntries(fields.map((name, i) => [String(name), fields[i + 1]]));
    if (id !== `${this.records + 1}-0`) {
      throw Object.assign(new Error(`the reader saw ${id} after ${this.records}-0`), {
        fatal: true,
      });
    }
    this.records++;
    const { decisionId, toolId, outcome, x, prior, at, time } = decodeRecord(values.d);
    const i = Number(decisionId.slice('decision-'.length));
    const plan = planned(i);
    if (toolId !== plan.toolId || outcome !== plan.outcome || String(x) !== String(plan.x)) {
      throw Object.assign(new Error(`report ${i} is not what was reported`), { fatal: true });
    }
    if (this.seen.has(i)) {
      this.repeated++;
      return;
    }
    this.seen.add(i);
    if (outcome === 'cancelled') return;
    const when = Math.min(at, time, Number(String(values.t)));
    const y = Float32Array.of(outcome === 'success' ? 1 : 0);
    this.reference.update([toolId], x, Float32Array.of(prior), y, Float64Array.of(when));
  }
}

async function main() {
  const reports = Number(values.reports);
  const chance = random(Number(values.seed));
  const folder = mkdtempSync(path.join(tmpdir(), 'finch-replicas-'));
  const began = performance.now();
  const redis = new Redis(folder, await freePort());
  const children = Array.from({ length: replicas }, (_, k) => ({ k, load: 0 }));
  // However this ends, nothing is left running.
  process.on('exit', () => {
    for (const each of [...children, redis]) each.process?.kill('SIGKILL');
  });
  await redis.start();
  const proxy = new Between(redis.port);
  const proxyPort = await proxy.listen();
  const observer = new Observer();
  const observing = observer.run(redis.port);
  observing.catch((error) => {
    console.error(error);
    process.exit(1);
  });

  /** By report: who still has to acknowledge it. */
  const open = new Map();
  const statuses = {};
  const acknowledged = new Set();
  let next = 0;
  let finished = () => undefined;
  const allDone = new Promise((resolve) => {
    finished = resolve;
  });

  const send = (child, line) => {
    if (child.isUp) child.process.stdin.write(`${line}\n`);
  };
  const ask = (i, k) => send(children[k], `r ${i} ${planned(i).home === k ? 'home' : 'away'}`);
  const begin = (i) => {
    const { home, reporters } = planned(i);
    open.set(i, new Set(reporters));
    for (const k of reporters) children[k].load++;
    if (reporters.some((k) => k !== home)) send(children[home], `d ${i}`);
    for (const k of reporters) ask(i, k);
  };
  const fill = () => {
    while (next < reports && planned(next).reporters.every((k) => children[k].load < inFlight))
      begin(next++);
  };
  const start = async (child) => {
    const args = [fileURLToPath(import.meta.url), '--dist', values.dist];
    args.push('--child', path.join(folder, `replica-${child.k}`));
    args.push('--port', String(child.k < 2 ? proxyPort : redis.port));
    child.process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    child.process.stdin.on('error', () => undefined);
    child.ended = new Promise((resolve) =>
      child.process.on('exit', (code, signal) => resolve(signal ?? code)),
    );
    child.ended.then((how) => {
      if (how !== 'SIGKILL' && how !== 0) {
        console.error(`replica ${child.k} ended by itself (${how})`);
        process.exit(1);
      }
    });
    await new Promise((resolve) => {
      createInterface({ input: child.process.stdout }).on('line', (line) => {
        const [what, number, status] = line.split(' ');
        if (what === 'open') resolve();
        if (what === 'e') child.result(JSON.parse(line.slice(2)));
        if (what === 'f') child.result();
        if (what !== 'a') return;
        const i = Number(number);
        acknowledged.add(i);
        statuses[status] = (statuses[status] ?? 0) + 1;
        const left = open.get(i);
        if (left?.delete(child.k)) child.load--;
        if (left?.size === 0) open.delete(i);
        fill();
        if (next === reports && open.size === 0) finished();
      });
    });
    child.isUp = true;
    // What the killed process did not acknowledge, and what it decided for others.
    for (const [i, left] of open) {
      if (planned(i).home === child.k && [...left].some((k) => k !== child.k))
        send(child, `d ${i}`);
      if (left.has(child.k)) ask(i, child.k);
    }
  };
  const kill = async (child) => {
    child.isUp = false;
    child.process.kill('SIGKILL');
    await child.ended;
  };

  const faults = {
    'replica killed': async () => {
      const child = children[Math.floor(chance() * replicas)];
      await kill(child);
      await sleep(chance() * 500);
      await start(child);
    },
    'redis killed': async () => {
      await redis.kill();
      await sleep(chance() * 1000);
      await redis.start();
    },
    'redis paused': async () => {
      redis.process.kill('SIGSTOP');
      await sleep(500 + chance() * 2500);
      redis.process.kill('SIGCONT');
    },
    'replies lost': async () => {
      proxy.mode = 'lose-replies';
      await sleep(200 + chance() * 600);
      proxy.mode = 'pass';
    },
    'network cut': async () => {
      proxy.mode = 'refuse';
      proxy.cut();
      await sleep(200 + chance() * 1000);
      proxy.mode = 'pass';
    },
    'redis and a replica killed': async () => {
      const child = children[Math.floor(chance() * replicas)];
      await Promise.all([redis.kill(), kill(child)]);
      await redis.start();
      await start(child);
    },
  };

  try {
    await Promise.all(children.map(start));
    fill();
    const count = Number(values.faults);
    const done = {};
    const kinds = Object.keys(faults);
    for (let n = 0; n < count; n++) {
      // Spread over the reports; a kind of fault is not left out for long.
      while (acknowledged.size < ((n + 0.5) / count) * reports) await sleep(10);
      const kind = kinds[n % kinds.length];
      await faults[kind]();
      done[kind] = (done[kind] ?? 0) + 1;
    }
    await allDone;
    const everyone = (line) =>
      Promise.all(
        children.map((child) => {
          const result = new Promise((resolve) => {
            child.result = resolve;
          });
          send(child, line);
          return result;
        }),
      );
    await everyone('flush');
    // A newcomer with an empty folder.
    children.push({ k: replicas, load: 0 });
    await start(children[replicas]);
    const results = await everyone('end');
    const seconds = (performance.now() - began) / 1000;
    while (observer.records < results[0].applied) await sleep(20);
    observer.stop();
    await observing;
    for (const child of children) child.process.stdin.end();
    await Promise.all(children.map((child) => child.ended));
    await redis.kill();

    const [first] = results;
    const reference = createHash('sha256').update(observer.reference.serialize()).digest('hex');
    const lost = [...acknowledged].filter((i) => !observer.seen.has(i)).length;
    const applied = first.applied - first.health.duplicates - first.health.refused;
    const equal =
      results.every(
        ({ applied, sha256 }) => applied === first.applied && sha256 === first.sha256,
      ) && results.every(({ bandit }) => bandit === reference);
    const summary = {
      reports,
      acknowledged: acknowledged.size,
      applied,
      lost,
      twice: applied - observer.seen.size,
      records: first.applied,
      repeatedInStream: observer.repeated,
      acknowledgements: statuses,
      repliesLost: proxy.lost,
      faults: done,
      events: results.flatMap(({ health }) => health.events.map(({ kind }) => kind)),
      equal,
      checksums: results.map(({ sha256 }) => sha256.slice(0, 16)),
      reference: reference.slice(0, 16),
      bandits: results.map(({ bandit }) => bandit.slice(0, 16)),
      snapshot: first.health.snapshot,
      seconds: Number(seconds.toFixed(1)),
    };
    console.log(JSON.stringify(summary, undefined, 2));
    const whole = acknowledged.size === reports && applied === reports;
    if (!equal || !whole || lost > 0 || summary.twice !== 0) {
      throw new Error(`the proof failed; ${folder} is kept for a look`);
    }
    rmSync(folder, { recursive: true });
  } finally {
    proxy.close();
    for (const child of children) child.process?.kill('SIGKILL');
    redis.process.kill('SIGCONT');
    redis.process.kill('SIGKILL');
  }
}

if (values.child === undefined) await main();
else await replica(values.child, Number(values.port));
