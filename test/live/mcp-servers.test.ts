// The main job against real MCP servers: index, select, call the chosen tool through the SDK, report; one server is killed
// mid-way, selection moves away from its tools, and comes back once it runs again.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  connectMcp,
  type Decision,
  defaultEncoder,
  type Encoder,
  FeedbackStore,
  type McpConnection,
  type McpServerConfig,
  mergeTools,
  readMcpConfig,
  Selector,
  ToolIndex,
} from '../../dist/esm/lib/index.js';

const modules = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/', import.meta.url),
);
const minute = 60_000;

let folder = '';
let configs: ReadonlyMap<string, McpServerConfig>;
const connections = new Map<string, McpConnection>();
let encoder: Encoder;
let index: ToolIndex;

/** A task an agent may have, and the arguments it would fill in for the tool it was given. */
const tasks: { text: string; tool: RegExp; args: () => Record<string, unknown> }[] = [
  {
    text: 'list what is in the directory',
    tool: /\/list_directory$/,
    args: () => ({ path: folder }),
  },
  {
    text: 'echo this message back to me',
    tool: /^everything\/echo$/,
    args: () => ({ message: 'hello' }),
  },
  { text: 'read the entire knowledge graph', tool: /^memory\/read_graph$/, args: () => ({}) },
];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'toolfinch-live-'));
  await writeFile(path.join(folder, 'note.txt'), 'a note');
  const node = (name: string, ...args: string[]) => ({
    command: process.execPath,
    args: [path.join(modules, name, 'dist/index.js'), ...args],
  });
  const mcpServers = {
    everything: node('server-everything', 'stdio'),
    files: node('server-filesystem', folder),
    archive: node('server-filesystem', folder),
    memory: {
      ...node('server-memory'),
      env: { MEMORY_FILE_PATH: path.join(folder, 'memory.jsonl') },
    },
  };
  configs = readMcpConfig(JSON.stringify({ mcpServers })).servers;
  await Promise.all([...configs.keys()].map(start));
  const sources = await Promise.all(
    [...connections].map(async ([origin, connection]) => ({
      origin,
      tools: await connection.listTools(),
    })),
  );
  encoder = await defaultEncoder();
  index = await ToolIndex.build(mergeTools(sources), { encoder });
});

afterAll(async () => {
  await Promise.all([...connections.values()].map((connection) => connection.close()));
  index.close();
  await encoder.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(name: string): Promise<void> {
  connections.set(
    name,
    await connectMcp(name, configs.get(name) as McpServerConfig, { timeoutMs: 2 * minute }),
  );
}

function kill(name: string): void {
  const { client } = connections.get(name) as McpConnection;
  const { transport } = client as { transport: { pid: number } };
  process.kill(transport.pid, 'SIGKILL');
}

/** One step of an agent that takes the first tool it is shown. */
class Agent {
  now = Date.now();
  readonly feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
  readonly selector = new Selector({ index, feedback: this.feedback, now: () => this.now });

  async step(
    task: (typeof tasks)[number],
  ): Promise<{ decision: Decision; chosen: string; ok: boolean }> {
    this.now += 5000;
    const decision = await this.selector.select(task.text);
    const chosen = decision.candidates[0]?.id ?? '';
    const [server = '', name = ''] = chosen.split('/');
    const result = await connections
      .get(server)
      ?.call(name, task.args(), { timeoutMs: minute })
      .catch(() => ({ isError: true }));
    const ok = result !== undefined && result.isError !== true;
    await this.selector.report(decision.id, chosen, ok ? 'success' : 'error');
    return { decision, chosen, ok };
  }
}

describe('real MCP servers', () => {
  it('indexes the tools of all of them', () => {
    const groups = new Set(index.tools().map(({ group }) => group));
    expect([...groups].sort()).toEqual(['archive', 'everything', 'files', 'memory']);
    expect(index.count).toBeGreaterThan(35);
  });

  it('chooses a tool that does the task, and it works', async () => {
    const agent = new Agent();
    for (const task of tasks) {
      const { chosen, ok } = await agent.step(task);
      expect(chosen).toMatch(task.tool);
      expect(ok).toBe(true);
    }
  });

  it('moves from a dead server to another that has the same tool', async () => {
    const agent = new Agent();
    const [listing] = tasks as [(typeof tasks)[number]];
    const before = await agent.step(listing);
    expect(before.ok).toBe(true);
    const dead = before.chosen.split('/')[0] as string;
    const other = dead === 'files' ? 'archive/list_directory' : 'files/list_directory';
    kill(dead);
    const steps = [];
    for (let i = 0; i < 8; i += 1) steps.push(await agent.step(listing));
    const failures = steps.filter(({ ok }) => !ok).length;
    expect(failures).toBeGreaterThanOrEqual(1);
    expect(failures).toBeLessThanOrEqual(3);
    expect(steps.slice(-4).map(({ chosen }) => chosen)).toEqual(Array(4).fill(other));
    await connections.get(dead)?.close();
    await start(dead);
    // Its twin dies in turn: the restarted server is chosen again, and works.
    agent.now += 60 * minute;
    const twin = other.split('/')[0] as string;
    kill(twin);
    // An hour on, little of the twin's record is left to tell an outage by: five failures do.
    const after = [];
    for (let i = 0; i < 9; i += 1) after.push(await agent.step(listing));
    expect(after.slice(-4).map(({ chosen, ok }) => [chosen, ok])).toEqual(
      Array(4).fill([before.chosen, true]),
    );
    await connections.get(twin)?.close();
    await start(twin);
  });

  it('moves away from a dead server without a twin, and back when it runs again', async () => {
    const agent = new Agent();
    const graph = tasks[2] as (typeof tasks)[number];
    expect((await agent.step(graph)).ok).toBe(true);
    kill('memory');
    for (let i = 0; i < 4; i += 1) await agent.step(graph);
    const down = (await agent.selector.select(graph.text)).candidates;
    expect(down[0]?.id).not.toBe('memory/read_graph');
    expect(down.find(({ id }) => id === 'memory/read_graph')?.unhealthy).toBe(true);
    await connections.get('memory')?.close();
    await start('memory');
    agent.now += 4 * 60 * minute;
    const back = await agent.step(graph);
    expect([back.chosen, back.ok]).toEqual(['memory/read_graph', true]);
    expect((await agent.step(graph)).chosen).toBe('memory/read_graph');
  });
});
