import { aList, anObject, aString, fields, rule } from '../check.js';
import { excerpt } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { type ConnectMcpOptions, connectMcp, type McpConnection } from './mcp.js';
import { type McpConfig, readMcpConfig } from './mcp-config.js';
import { mergeTools } from './merge-tools.js';
import type { Tool } from './tool.js';

export interface ImportMcpOptions extends ConnectMcpOptions {
  /** Fail altogether when one server fails. Default false: it is reported in `failures`. */
  readonly strict?: boolean;
  /** Leave the connections open and return them. Default false: every server is closed again. */
  readonly keepOpen?: boolean;
}

export interface McpImport {
  /** Tools of every server that answered, in the order of the configuration; ids are `server/tool`. */
  readonly tools: readonly Tool[];
  readonly servers: readonly { readonly name: string; readonly toolCount: number }[];
  /** Servers that are configured but could not be read. */
  readonly failures: readonly { readonly name: string; readonly error: FinchError }[];
  readonly disabled: readonly string[];
  /** By server name; empty unless `keepOpen`. */
  readonly connections: ReadonlyMap<string, McpConnection>;
}

const aConfig = fields({
  servers: rule((value) => value instanceof Map, 'a Map of servers, as readMcpConfig gives it'),
  disabled: aList(aString),
});

/**
 * Connects to every server of a configuration at once and lists its tools. `timeoutMs` holds for each step (connecting,
 * listing) of each server.
 *
 * @param config a configuration's text, or what {@link readMcpConfig} made of it
 * @throws FinchError FINCH_IO when no server gave a tool, or one failed and `strict` is set; FINCH_ABORTED; everything
 *   that {@link readMcpConfig} throws. Every process that was started has then ended.
 */
export async function importMcpServers(
  config: McpConfig | string,
  options: ImportMcpOptions = {},
): Promise<McpImport> {
  if (typeof config !== 'string') aConfig(config, 'config');
  anObject(options, 'options');
  const { servers: configured, disabled } =
    typeof config === 'string' ? readMcpConfig(config) : config;
  const settled = await Promise.allSettled(
    Array.from(configured, async ([name, server]) => {
      const connection = await connectMcp(name, server, options);
      try {
        const tools = await connection.listTools(options);
        if (options.keepOpen !== true) await connection.close();
        return { name, connection, tools };
      } catch (error) {
        await connection.close();
        throw error;
      }
    }),
  );
  const names = [...configured.keys()];
  const reached: { name: string; connection: McpConnection; tools: Tool[] }[] = [];
  const failures: { name: string; error: FinchError }[] = [];
  settled.forEach((outcome, index) => {
    const name = names[index] ?? '';
    if (outcome.status === 'fulfilled') reached.push(outcome.value);
    else failures.push({ name, error: asFinchError(name, outcome.reason) });
  });
  try {
    const missingSdk = failures.find(({ error }) => error.code === 'FINCH_DEVICE');
    if (missingSdk !== undefined) throw missingSdk.error;
    const aborted = failures.find(({ error }) => error.code === 'FINCH_ABORTED');
    if (aborted !== undefined) throw aborted.error;
    if (options.strict === true && failures.length > 0) {
      throw failed(`${failures.length} of ${names.length} MCP servers failed`, failures);
    }
    const tools = mergeTools(
      reached.map(({ name, tools }) => ({ origin: `MCP server ${excerpt(name)}`, tools })),
    );
    if (tools.length === 0) throw failed('no MCP server gave a tool', failures);
    return {
      tools,
      servers: reached.map(({ name, tools }) => ({ name, toolCount: tools.length })),
      failures,
      disabled,
      connections: new Map(
        options.keepOpen === true ? reached.map(({ name, connection }) => [name, connection]) : [],
      ),
    };
  } catch (error) {
    await Promise.all(reached.map(({ connection }) => connection.close()));
    throw error;
  }
}

function failed(
  what: string,
  failures: readonly { name: string; error: FinchError }[],
): FinchError {
  const details = failures
    .map(({ name, error }) => `${excerpt(name)}: ${error.message}`)
    .join('; ');
  return new FinchError('FINCH_IO', details === '' ? what : `${what}: ${details}`, {
    cause: failures[0]?.error,
  });
}

function asFinchError(name: string, error: unknown): FinchError {
  return error instanceof FinchError
    ? error
    : new FinchError('FINCH_INTERNAL', `MCP server ${excerpt(name)}: ${String(error)}`, {
        cause: error,
      });
}
