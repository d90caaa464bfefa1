// The live experiment's short form: 31 real servers, real faults, and what its records say of them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineTool } from '../../dist/esm/lib/index.js';
import { fillArguments } from '../../experiments/live-validation/agent/fill.mjs';
import { ServerHealth } from '../../experiments/live-validation/agent/server-health.mjs';
import type {
  Results,
  Run,
  Record as Step,
} from '../../experiments/live-validation/experiment.mjs';
import { drawFaults, serverOf } from '../../experiments/live-validation/faults/draw.mjs';
import { planServers } from '../../experiments/live-validation/fleet/servers.mjs';
import {
  generateTasks,
  type Task,
  taskKinds,
} from '../../experiments/live-validation/tasks/generate.mjs';

const experiment = fileURLToPath(new URL('../../experiments/live-validation/', import.meta.url));
const phases = ['before', 'during', 'after'] as const;
type Call = Step['calls'][number];

const failed = ({ outcome }: Call): boolean => outcome === 'error' || outcome === 'timeout';

/** Resolves when the process is gone; fails the test when it stays. */
async function ended(pid: number): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await sleep(100);
  }
  throw new Error(`process ${pid} is still there`);
}

describe('the short form', () => {
  let folder = '';
  let results: Results;
  let output = '';

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'toolfinch-live-short-'));
    const file = path.join(folder, 'results.json');
    const child = spawn(
      process.execPath,
      [path.join(experiment, 'run.mjs'), '--short', '--json', file],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(0);
    results = JSON.parse(await readFile(file, 'utf8'));
    // 31 servers have to start, on a machine that may be busy.
  }, 1_200_000);

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const methodRun = (method: string): Run =>
    results.runs.find((run) => run.method === method) as Run;
  const faultOf = (call: Call) =>
    results.plans[0]?.faults.find(({ server }) => server === serverOf(call.tool))?.fault.kind;
  const callsOf = (run: Run, phase?: Step['phase']): Call[] =>
    run.records
      .filter((record) => phase === undefined || record.phase === phase)
      .flatMap(({ calls }) => calls);

  it('has every server answer first', () => {
    expect(results.servers).toBeGreaterThanOrEqual(20);
    expect(results.answered).toBe(results.servers);
    expect(results.tools).toBeGreaterThan(results.servers);
    for (const run of results.runs) {
      expect(callsOf(run, 'before').some(({ outcome }) => outcome === 'success')).toBe(true);
    }
  });

  it('makes calls fail, of each faulty server that is called', () => {
    for (const run of results.runs) {
      const broken = callsOf(run, 'during').filter(
        (call) => !['partial', undefined].includes(faultOf(call)),
      );
      expect(broken.length).toBeGreaterThan(0);
      expect(broken.every(failed)).toBe(true);
    }
    const kinds = callsOf(methodRun('no feedback'), 'during').filter(failed).map(faultOf);
    expect(new Set(kinds).size).toBeGreaterThanOrEqual(3);
  });

  it('has the same servers work again afterwards', () => {
    const again = callsOf(methodRun('no feedback'), 'after').filter(
      (call) => faultOf(call) !== undefined,
    );
    expect(again.some(({ outcome }) => outcome === 'success')).toBe(true);
  });

  it('gives every method the same tasks', () => {
    const [one, ...others] = results.runs.map(({ records }) =>
      records.map(({ kind, phase, first, answerable }) => ({ kind, phase, first, answerable })),
    );
    for (const other of others) expect(other).toEqual(one);
    const { tasks, methods } = results.settings;
    expect(results.runs.map(({ method }) => method)).toEqual(methods);
    for (const phase of phases) {
      expect(one?.filter((record) => record.phase === phase)).toHaveLength(tasks[phase]);
    }
  });

  it('keeps accounts that add up', () => {
    for (const { method, records } of results.runs) {
      const excluded = new Set<string>();
      for (const { calls, solved, answerable } of records) {
        expect(calls.length).toBeLessThanOrEqual(1);
        expect(solved).toBe(calls.at(-1)?.outcome === 'success');
        if (solved) expect(answerable).toBe(true);
        for (const call of calls) {
          expect(call.ms).toBeGreaterThan(0);
          expect(excluded.has(call.tool)).toBe(false);
          if (method === 'blacklist' && failed(call)) excluded.add(call.tool);
        }
      }
      const solvedNow = records.filter(({ phase, solved }) => phase === 'during' && solved).length;
      const share = (100 * solvedNow) / results.settings.tasks.during;
      const row = output.split('\n').find((line) => line.startsWith(`| ${method} |`));
      expect(Math.abs(Number.parseFloat(row?.split('|')[3] ?? '') - share)).toBeLessThan(0.06);
    }
  });

  it('leaves no process behind', async () => {
    expect(results.pids?.length).toBeGreaterThanOrEqual(results.servers);
    await Promise.all((results.pids ?? []).map(ended));
  });
});

describe('processes', () => {
  it('are gone, and their folder too, when the experiment is interrupted while they start', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'toolfinch-live-interrupted-'));
    const child = spawn(process.execPath, [path.join(experiment, 'run.mjs'), '--short'], {
      env: { ...process.env, TMPDIR: folder },
      stdio: 'ignore',
      detached: true,
    });
    const group = -(child.pid as number);
    const closed = once(child, 'close');
    while ((await readdir(folder, { recursive: true })).length < 2) await sleep(50);
    child.kill('SIGINT');
    expect((await closed)[0]).toBe(130);
    await ended(group);
    expect(await readdir(folder)).toEqual([]);
    await rm(folder, { recursive: true, force: true });
  }, 120_000);

  it('a stdio server ends when the experiment is gone, even one that hangs', async () => {
    const control = createServer();
    control.listen(0, '127.0.0.1');
    await once(control, 'listening');
    const { port } = control.address() as { port: number };
    const proxy = spawn(
      process.execPath,
      [
        path.join(experiment, 'faults/stdio-proxy.mjs'),
        process.execPath,
        path.join(experiment, 'servers/serve-mcp.mjs'),
        'numbers',
        'stdio',
      ],
      {
        env: { ...process.env, FAULT_CONTROL_PORT: String(port), FAULT_SERVER: 'numbers' },
        stdio: ['pipe', 'ignore', 'inherit'],
      },
    );
    const [socket] = await once(control, 'connection');
    const lines = createInterface({ input: socket });
    const [hello] = await once(lines, 'line');
    const { server, pid } = JSON.parse(hello);
    expect(server).toBe('numbers');
    const told = once(lines, 'line');
    socket.write('{"kind":"hang"}\n');
    expect(JSON.parse((await told)[0])).toEqual({ fault: 'hang' });
    socket.destroy();
    await once(proxy, 'exit');
    await ended(pid);
    control.close();
  });

  it('an HTTP server ends with its standard input', async () => {
    const server = spawn(
      process.execPath,
      [path.join(experiment, 'servers/serve-openapi.mjs'), 'maths'],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    const [line] = await once(createInterface({ input: server.stdout }), 'line');
    const response = await fetch(`http://127.0.0.1:${JSON.parse(line).port}/factors/12`);
    expect(await response.json()).toEqual({ factors: [2, 2, 3] });
    server.stdin.end();
    await once(server, 'exit');
  });
});

describe('the health check', () => {
  it('leaves a server out until it answers, and asks again once a minute', async () => {
    let now = 0;
    let answers = false;
    const ping = async (): Promise<void> => {
      if (!answers) throw new Error('no answer');
    };
    const health = new ServerHealth(ping, () => now);
    expect([...(await health.down())]).toEqual([]);
    await health.check('numbers');
    expect([...(await health.down())]).toEqual(['numbers']);
    expect(health.pings).toBe(1);
    now = 60_000;
    expect([...(await health.down())]).toEqual(['numbers']);
    answers = true;
    now = 119_999;
    expect([...(await health.down())]).toEqual(['numbers']);
    now = 120_000;
    expect([...(await health.down())]).toEqual([]);
    expect(health.pings).toBe(3);
  });
});

describe('tasks and faults', () => {
  const folder = path.join(tmpdir(), 'no such folder');
  const kinds = taskKinds(folder);

  it('has more than 100 ways of asking, each once', () => {
    const templates = kinds.flatMap((kind) => kind.templates);
    expect(templates.length).toBeGreaterThanOrEqual(100);
    expect(new Set(templates).size).toBe(templates.length);
  });

  it('draws the same tasks from the same seed, and others from another', () => {
    const texts = (seed: number) => generateTasks(seed, 50, folder).map(({ text }: Task) => text);
    expect(texts(1)).toEqual(texts(1));
    expect(texts(1)).not.toEqual(texts(2));
    for (const text of texts(3)) expect(text).not.toMatch(/undefined|\{[a-z]\w*\}/);
  });

  it('refuses wrong answers', () => {
    for (const task of generateTasks(5, 300, folder)) {
      for (const answer of ['', 'null', 'unknown']) expect(task.check(answer)).toBe(false);
    }
  });

  it('fills in arguments only where all fit', () => {
    const tool = defineTool({
      name: 'hash',
      inputSchema: {
        type: 'object',
        properties: { message: { type: 'string' }, algorithm: { enum: ['md5'] } },
        required: ['message', 'algorithm'],
      },
    });
    const filled = { message: 'a', algorithm: 'md5' };
    expect(fillArguments(tool, { text: 'a', algorithm: 'md5' })).toEqual(filled);
    expect(fillArguments(tool, { text: 'a' })).toBeUndefined();
    expect(fillArguments(tool, { text: 1, algorithm: 'md5' })).toBeUndefined();
    expect(fillArguments(tool, { text: 'a', algorithm: 'sha1' })).toBeUndefined();
    expect(fillArguments(tool, { text: 'a', algorithm: 'md5', days: 3 })).toBeUndefined();
  });

  it('leaves a working tool wherever there are several', () => {
    const plans = planServers(folder);
    for (let seed = 1; seed <= 50; seed += 1) {
      const tasks = generateTasks(seed, 200, folder);
      const first = tasks.map(({ tools }, i) => tools[(seed + i) % tools.length]);
      const faults = drawFaults(seed, { plans, kinds, tasks, first, delayMs: 1000 });
      const down = new Set(faults.map(({ server }) => server));
      expect(down.size).toBe(faults.length);
      expect(down.size).toBeGreaterThanOrEqual(7);
      for (const { tools } of kinds) {
        const servers = new Set(tools.map(serverOf));
        if (servers.size > 1) expect([...servers].some((name) => !down.has(name))).toBe(true);
      }
    }
  });
});
