import { fileURLToPath } from 'node:url';
import { connectMcp, importTools, mergeTools, readMcpConfig } from '../../../dist/esm/lib/index.js';
import { Control } from '../faults/control.mjs';
import { HttpProxy } from '../faults/http-proxy.mjs';
import { callOpenApi } from './call-openapi.mjs';
import { ChildServer } from './child-server.mjs';
import { prepareFolder } from './folder.mjs';
import { planServers } from './servers.mjs';

/** @typedef {import('../../../dist/esm/lib/index.js').Tool} Tool */
/** @typedef {import('../../../dist/esm/lib/index.js').McpConnection} McpConnection */

const stdioProxy = fileURLToPath(new URL('../faults/stdio-proxy.mjs', import.meta.url));
const token = 'first';
/** Starting many processes on a busy machine takes its time. */
const startMs = 120_000;
const startedAtOnce = 4;

/** All servers of the experiment as running processes, each behind a proxy that can make it fail. */
export class Fleet {
  /** @type {Tool[]} */
  tools = [];
  /** @type {import('./servers.mjs').ServerPlan[]} */
  plans;
  #control = new Control();
  /** @type {Map<string, ChildServer>} */
  #children = new Map();
  /** @type {Map<string, HttpProxy>} */
  #proxies = new Map();
  /** @type {Map<string, string>} address of the proxy before an HTTP server */
  #addresses = new Map();
  /** @type {Map<string, McpConnection>} */
  #connections = new Map();
  /** @type {Map<string, Tool>} */
  #byId = new Map();
  /** @type {Map<string, import('../faults/fault.mjs').Fault>} */
  #faults = new Map();
  /** @type {import('../../../dist/esm/lib/index.js').McpConfig} */
  #config = { servers: new Map(), disabled: [] };
  /** @type {Promise<void> | undefined} */
  #starting;
  #closing = false;

  /** @param {string} folder an empty folder for the servers' files */
  constructor(folder) {
    this.folder = folder;
    this.plans = planServers(folder);
  }

  /** Starts every server and imports its tools. */
  start() {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start() {
    await prepareFolder(this.folder);
    const port = await this.#control.listen();
    await inParallel(this.plans, (plan) =>
      plan.kind === 'stdio' ? Promise.resolve() : this.#startHttp(plan),
    );
    this.#config = readMcpConfig(JSON.stringify({ mcpServers: this.#entries(port) }));
    await inParallel([...this.#config.servers.keys()], (name) => this.#connect(name));
    const sources = await Promise.all(this.plans.map((plan) => this.#import(plan)));
    this.tools = mergeTools(sources);
    for (const tool of this.tools) this.#byId.set(tool.id, tool);
  }

  /** Ids of all processes of the servers themselves (not of proxies). */
  pids() {
    return this.plans
      .map(({ name }) => this.#control.pid(name) ?? this.#children.get(name)?.pid)
      .filter((pid) => pid !== undefined);
  }

  /**
   * The tool's answer as text.
   *
   * @param {string} toolId
   * @param {Readonly<Record<string, unknown>>} args
   * @param {number} timeoutMs
   * @returns {Promise<string>} rejects when the call fails in any way
   */
  async call(toolId, args, timeoutMs) {
    const tool = this.#byId.get(toolId);
    const server = tool?.group ?? '';
    if (tool === undefined) throw new Error(`no tool ${toolId}`);
    if (tool.endpoint !== undefined) {
      const base = this.#addresses.get(server) ?? '';
      return callOpenApi(tool, args, { base, token, timeoutMs });
    }
    const connection = this.#connections.get(server);
    if (connection === undefined) throw new Error(`${server} is not connected`);
    const result = await connection.call(tool.name, args, { timeoutMs });
    const text = (result.content ?? [])
      .map((part) => /** @type {{ text?: string }} */ (part).text ?? '')
      .join('\n');
    if (result.isError === true) throw new Error(text);
    return text;
  }

  /**
   * Whether a server answers at all: MCP's ping, or a request for the OpenAPI document.
   *
   * @param {string} name
   * @param {number} timeoutMs
   */
  async ping(name, timeoutMs) {
    const connection = this.#connections.get(name);
    if (connection !== undefined) return connection.ping({ timeoutMs });
    await this.#document(name, timeoutMs);
  }

  /**
   * Makes a server fail, or work again (`null`: a killed process is started anew, as its supervisor would).
   *
   * @param {string} name
   * @param {import('../faults/fault.mjs').Fault | null} fault
   */
  async setFault(name, fault) {
    const before = this.#faults.get(name);
    if (fault === null) this.#faults.delete(name);
    else this.#faults.set(name, fault);
    const plan = this.plans.find((each) => each.name === name);
    if (plan === undefined) throw new Error(`no server ${name}`);
    if (plan.kind === 'stdio') {
      if (before?.kind === 'crash') {
        await this.#connections.get(name)?.close();
        await this.#connect(name);
      } else {
        await this.#control.set(name, fault);
      }
      return;
    }
    const child = /** @type {ChildServer} */ (this.#children.get(name));
    const proxy = /** @type {HttpProxy} */ (this.#proxies.get(name));
    proxy.fault = fault;
    if (before?.kind === 'hang') child.signal('SIGCONT');
    if (before?.kind === 'crash') proxy.upstream = await child.start();
    if (fault?.kind === 'hang') child.signal('SIGSTOP');
    if (fault?.kind === 'crash') await child.kill();
  }

  /** Ends every process and closes every port. Twice is fine. */
  async close() {
    // What is starting would outlive the rest.
    this.#closing = true;
    await this.#starting?.catch(() => undefined);
    // A stopped process would not obey, and need not be waited for.
    for (const name of [...this.#faults.keys()]) {
      if (this.#faults.get(name)?.kind === 'hang') await this.setFault(name, null);
    }
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
    await Promise.all([...this.#children.values()].map((child) => child.kill()));
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.close()));
    await this.#control.close();
    this.#connections.clear();
    this.#children.clear();
    this.#proxies.clear();
  }

  #refuseWhenClosing() {
    if (this.#closing) throw new Error('the servers are being closed');
  }

  /** @param {import('./servers.mjs').ServerPlan} plan */
  async #startHttp(plan) {
    this.#refuseWhenClosing();
    const child = new ChildServer(plan);
    const proxy = new HttpProxy();
    this.#children.set(plan.name, child);
    this.#proxies.set(plan.name, proxy);
    this.#addresses.set(plan.name, await proxy.listen());
    proxy.upstream = await child.start();
  }

  /** The entries of an `mcpServers` configuration. @param {number} controlPort */
  #entries(controlPort) {
    const entries = this.plans
      .filter(({ kind }) => kind !== 'openapi')
      .map(({ name, kind, args, env }) => [
        name,
        kind === 'stdio'
          ? {
              command: process.execPath,
              args: [stdioProxy, process.execPath, ...args],
              env: { ...env, FAULT_CONTROL_PORT: String(controlPort), FAULT_SERVER: name },
            }
          : {
              type: 'http',
              url: `${this.#addresses.get(name)}/mcp`,
              // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the configuration
              headers: { Authorization: 'Bearer ${LIVE_VALIDATION_TOKEN}' },
            },
      ]);
    return Object.fromEntries(entries);
  }

  /** @param {string} name */
  async #connect(name) {
    this.#refuseWhenClosing();
    const config = this.#config.servers.get(name);
    if (config === undefined) throw new Error(`${name} is not configured`);
    const environment = { LIVE_VALIDATION_TOKEN: token };
    this.#connections.set(
      name,
      await connectMcp(name, config, { timeoutMs: startMs, environment }),
    );
  }

  /** @param {import('./servers.mjs').ServerPlan} plan */
  async #import({ name }) {
    const connection = this.#connections.get(name);
    if (connection !== undefined) {
      return { origin: name, tools: await connection.listTools({ timeoutMs: startMs }) };
    }
    const { tools } = importTools(await this.#document(name, startMs), { group: name });
    return { origin: name, tools };
  }

  /**
   * @param {string} name
   * @param {number} timeoutMs
   */
  async #document(name, timeoutMs) {
    const response = await fetch(`${this.#addresses.get(name)}/openapi.json`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return response.text();
  }
}

/**
 * @template T
 * @param {readonly T[]} items
 * @param {(item: T) => Promise<void>} work
 */
async function inParallel(items, work) {
  const waiting = [...items];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: startedAtOnce }, worker));
}
