import { anObject, aString, fields, optional } from '../check.js';
import { excerpt, kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { type WaitOptions, withDeadline } from './deadline.js';
import { toolFromMcp } from './importers/mcp.js';
import {
  type Environment,
  expandMcpServer,
  type McpServerConfig,
  type McpServerEntry,
  readMcpServer,
} from './mcp-config.js';
import { loadMcpSdk, type McpSdk } from './mcp-sdk.js';
import { openTransport, type Transport } from './mcp-transport.js';
import { assertUniqueIds } from './merge-tools.js';
import { isRecord, own, type Tool } from './tool.js';

export interface ConnectMcpOptions extends WaitOptions {
  /** Fills in the `${NAME}`s of the configuration. Default `process.env`. */
  readonly environment?: Environment;
  /** Provenance of the server's tools for the metadata prior. */
  readonly source?: string;
}

/** A tool's answer as the server sent it; see MCP's CallToolResult. */
export interface McpCallResult {
  readonly content?: readonly unknown[];
  readonly structuredContent?: unknown;
  /** True when the tool ran and failed: what to report to a selector as a failure. */
  readonly isError?: boolean;
  readonly [field: string]: unknown;
}

/** The most pages one listing may have. */
export const maxPages = 1000;

/** The most tools one server may list. */
export const maxServerTools = 100_000;

/** A live session with one MCP server. Made by {@link connectMcp}; close it when done. */
export interface McpConnection {
  readonly name: string;
  /** The SDK's `Client`, for what this interface leaves out (resources, prompts). */
  readonly client: unknown;
  /** True after {@link close}, and when the server has gone away. */
  readonly closed: boolean;
  /** Process id of a stdio server, while it runs. */
  readonly pid: number | undefined;

  /**
   * All tools of the server, page after page. The time limit holds for the whole listing.
   *
   * The definition of each tool is JSON of what the server sent: keys, order and values are its own; white space and the
   * spelling of numbers and escapes are not, since the SDK hands over parsed messages.
   *
   * @returns the tools in the server's order; none when the server offers none
   * @throws FinchError FINCH_IO, FINCH_ABORTED, FINCH_CLOSED; FINCH_CORRUPT for a listing that breaks the protocol (a
   *   cursor that comes back, more than 1,000 pages or 100,000 tools); FINCH_DUPLICATE_ID; FINCH_INVALID_ARGUMENT for a
   *   malformed tool
   */
  listTools(options?: WaitOptions): Promise<Tool[]>;

  /**
   * Calls a tool by its name (not its id). A tool that ran and failed is a result with `isError`, not an error.
   *
   * @throws FinchError FINCH_IO when the server refuses the call, does not answer in time or goes away; FINCH_ABORTED;
   *   FINCH_CLOSED
   */
  call(
    toolName: string,
    args?: Readonly<Record<string, unknown>>,
    options?: WaitOptions,
  ): Promise<McpCallResult>;

  /** Resolves when the server answers; rejects as {@link call} does. */
  ping(options?: WaitOptions): Promise<void>;

  /** Ends the session and the process: asked to end, then told to, then killed. Twice is fine; never rejects. */
  close(): Promise<void>;

  [Symbol.asyncDispose](): Promise<void>;
}

const anOptions = fields({ environment: optional(anObject), source: optional(aString) });

/**
 * Connects to one MCP server: starts the process (stdio) or opens the session (streamable HTTP, SSE), and initialises.
 *
 * @param name the server's name: the group of its tools and the prefix of their ids
 * @throws FinchError FINCH_IO when the server cannot be started or reached, dies or does not answer in time: the process
 *   is then gone; FINCH_INVALID_ARGUMENT for a bad configuration or an unset variable; FINCH_ABORTED; FINCH_DEVICE when
 *   the MCP SDK is not installed
 */
export async function connectMcp(
  name: string,
  server: McpServerConfig | McpServerEntry,
  options: ConnectMcpOptions = {},
): Promise<McpConnection> {
  anOptions(options, 'options');
  const config = expandMcpServer(name, readMcpServer(name, server), options.environment);
  const sdk = await loadMcpSdk();
  const kinds = config.type === 'auto' ? (['http', 'sse'] as const) : ([config.type] as const);
  for (const kind of kinds) {
    const client = new sdk.Client({ name: 'toolfinch', version: '1' }, { capabilities: {} });
    const transport = openTransport(name, config, kind, sdk);
    const connection = new Session(name, client, transport, sdk, options.source);
    const doing = `connecting to MCP server ${excerpt(name)}`;
    try {
      await withDeadline(doing, options, (signal, timeoutMs) =>
        // The SDK's own timer is the later one, so that one kind of error tells of the deadline.
        client.connect(transport.sdk, { signal, timeout: timeoutMs + 1000 }),
      );
      return connection;
    } catch (error) {
      await connection.kill();
      const refused =
        error instanceof sdk.StreamableHTTPError &&
        error.code !== undefined &&
        [400, 404, 405, 406, 415].includes(error.code);
      if (kind !== kinds.at(-1) && refused) continue;
      throw ioError(doing, error, transport);
    }
  }
  throw new FinchError('FINCH_INTERNAL', 'no transport was tried');
}

class Session implements McpConnection {
  readonly name: string;
  readonly client: unknown;
  readonly #client: InstanceType<McpSdk['Client']>;
  readonly #transport: Transport;
  readonly #sdk: McpSdk;
  readonly #source: string | undefined;
  readonly #ended: Promise<void>;
  #closing: Promise<void> | undefined;
  #gone = false;

  constructor(
    name: string,
    client: InstanceType<McpSdk['Client']>,
    transport: Transport,
    sdk: McpSdk,
    source: string | undefined,
  ) {
    this.name = name;
    this.client = client;
    this.#client = client;
    this.#transport = transport;
    this.#sdk = sdk;
    this.#source = source;
    this.#ended = new Promise((resolve) => {
      client.onclose = () => {
        this.#gone = true;
        transport.ended();
        resolve();
      };
    });
    // Requests carry their own errors; what remains are notes on stray messages.
    client.onerror = () => undefined;
  }

  get closed(): boolean {
    return this.#gone || this.#closing !== undefined;
  }

  get pid(): number | undefined {
    return this.#transport.pid;
  }

  async listTools(options: WaitOptions = {}): Promise<Tool[]> {
    const where = `MCP server ${excerpt(this.name)}`;
    this.#assertOpen();
    if (this.#client.getServerCapabilities()?.tools === undefined) return [];
    const instructions = this.#client.getInstructions();
    const context = {
      group: this.name,
      source: this.#source,
      groupDescription: instructions,
    };
    const tools: Tool[] = [];
    await this.#wait(`listing the tools of ${where}`, options, async (signal, timeout) => {
      const cursors = new Set<string>();
      let cursor: string | undefined;
      for (let page = 1; ; page += 1) {
        const params = cursor === undefined ? {} : { cursor };
        // ResultSchema keeps every field; the SDK's own tool schema would drop those it does not know.
        const result: Record<string, unknown> = await this.#client.request(
          { method: 'tools/list', params },
          this.#sdk.ResultSchema,
          { signal, timeout },
        );
        const list = own(result, 'tools');
        if (!Array.isArray(list)) {
          throw broken(
            where,
            `page ${page} of tools/list has tools ${kindOf(list)}, expected an array`,
          );
        }
        list.forEach((value: unknown, index) => {
          const at = `${where}, page ${page}, tools[${index}]`;
          if (!isRecord(value)) throw broken(at, `${kindOf(value)} is no tool`);
          tools.push(toolFromMcp({ value, raw: JSON.stringify(value), where: at }, context));
        });
        const next = own(result, 'nextCursor');
        if (next === undefined || next === null || next === '') return;
        if (typeof next !== 'string') throw broken(where, `nextCursor is ${kindOf(next)}`);
        if (cursors.has(next)) {
          throw broken(where, `page ${page} of tools/list leads back to cursor ${excerpt(next)}`);
        }
        if (page >= maxPages || tools.length > maxServerTools) {
          throw broken(where, `tools/list goes on after ${page} pages and ${tools.length} tools`);
        }
        cursors.add(next);
        cursor = next;
      }
    });
    assertUniqueIds(tools, where);
    return tools;
  }

  async call(
    toolName: string,
    args: Readonly<Record<string, unknown>> = {},
    options: WaitOptions = {},
  ): Promise<McpCallResult> {
    const doing = `calling ${excerpt(toolName)} of MCP server ${excerpt(this.name)}`;
    return this.#wait(doing, options, (signal, timeout) =>
      this.#client.request(
        { method: 'tools/call', params: { name: toolName, arguments: args } },
        this.#sdk.ResultSchema,
        { signal, timeout },
      ),
    );
  }

  async ping(options: WaitOptions = {}): Promise<void> {
    const doing = `pinging MCP server ${excerpt(this.name)}`;
    await this.#wait(doing, options, (signal, timeout) => this.#client.ping({ signal, timeout }));
  }

  close(): Promise<void> {
    this.#closing ??= this.#end(false);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Ends a process that never got as far as a session, without the patience of close. */
  kill(): Promise<void> {
    this.#closing ??= this.#end(true);
    return this.#closing;
  }

  async #end(atOnce: boolean): Promise<void> {
    if (!atOnce) await this.#transport.farewell();
    const pid = this.#transport.pid;
    const closing = this.#client.close().catch(() => undefined);
    // The client has let go of a transport whose initialisation failed; closing twice is harmless.
    const transport = this.#transport.sdk.close().catch(() => undefined);
    if (pid !== undefined) {
      if (atOnce) signalProcess(pid, 'SIGTERM');
      const hard = setTimeout(() => signalProcess(pid, 'SIGKILL'), atOnce ? 500 : 3000);
      // The end is seen when the pipes close, and a grandchild may hold them: not waited for without end.
      let patience: NodeJS.Timeout | undefined;
      const enough = new Promise<void>((resolve) => {
        patience = setTimeout(resolve, atOnce ? 1500 : 4500);
      });
      await Promise.race([this.#ended, enough]);
      clearTimeout(hard);
      clearTimeout(patience);
    }
    if (!atOnce) await Promise.all([closing, transport]);
    this.#gone = true;
    this.#transport.ended();
  }

  async #wait<T>(
    doing: string,
    options: WaitOptions,
    work: (signal: AbortSignal, timeoutMs: number) => Promise<T>,
  ): Promise<T> {
    this.#assertOpen();
    try {
      return await withDeadline(doing, options, (signal, timeoutMs) =>
        work(signal, timeoutMs + 1000),
      );
    } catch (error) {
      throw ioError(doing, error, this.#transport);
    }
  }

  #assertOpen(): void {
    if (!this.closed) return;
    const why = this.#closing === undefined ? 'its server has gone away' : 'it was closed';
    throw new FinchError(
      'FINCH_CLOSED',
      `the connection to MCP server ${excerpt(this.name)} is no longer open: ${why}; connect again with connectMcp`,
    );
  }
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

function broken(where: string, what: string): FinchError {
  return new FinchError('FINCH_CORRUPT', `${where}: ${what}; the server breaks the protocol`);
}

function ioError(doing: string, error: unknown, transport: Transport): FinchError {
  if (error instanceof FinchError) {
    if (error.code !== 'FINCH_IO') return error;
    return new FinchError('FINCH_IO', error.message + transport.lastWords(), {
      cause: error.cause,
    });
  }
  const reason = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
  const detail = cause === '' ? reason : `${reason} (${cause})`;
  return new FinchError('FINCH_IO', `${doing}: ${detail.slice(0, 500)}${transport.lastWords()}`, {
    cause: error,
  });
}
