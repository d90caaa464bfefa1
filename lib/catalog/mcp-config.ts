import { aList, anObject, aString, aTable, fields, optional } from '../check.js';
import { excerpt, kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { isRecord, own } from './tool.js';

/** A server that is started as a child process and speaks over its standard streams. */
export interface McpStdioServer {
  readonly type: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server at a URL. `auto`: streamable HTTP, then the older SSE transport when the server refuses that. */
export interface McpHttpServer {
  readonly type: 'http' | 'sse' | 'auto';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type McpServerConfig = McpStdioServer | McpHttpServer;

export interface McpConfig {
  /** Servers to connect to, by name, in the order of the file. */
  readonly servers: ReadonlyMap<string, McpServerConfig>;
  /** Names of servers the file switches off (`disabled: true`, `enabled: false`). */
  readonly disabled: readonly string[];
}

/**
 * Reads the configuration that MCP hosts share: `{ "mcpServers": { name: { command, args, env, cwd } | { url, headers,
 * type } } }`; also VS Code's `{ "servers": … }`, and comments and trailing commas as its files have them.
 *
 * Variables (`${NAME}`) are kept as written: {@link expandMcpServer} fills them in when a server is connected to, so that
 * one missing secret fails one server, and no secret lies in this object.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT for anything else, naming the server and the field
 */
export function readMcpConfig(text: string): McpConfig {
  aString(text, 'MCP configuration: the text');
  let root: unknown;
  try {
    root = JSON.parse(stripComments(text.replace(/^\uFEFF/, '')));
  } catch (cause) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `MCP configuration: the JSON does not parse: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
  const nested = isRecord(root) ? own(root, 'mcp') : undefined;
  const list = isRecord(root)
    ? (own(root, 'mcpServers') ??
      own(root, 'servers') ??
      (isRecord(nested) ? own(nested, 'servers') : undefined))
    : undefined;
  if (!isRecord(list)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `MCP configuration: found ${kindOf(root)}, expected { "mcpServers": { name: { "command": … } | { "url": … } } }`,
    );
  }
  const servers = new Map<string, McpServerConfig>();
  const disabled: string[] = [];
  for (const [name, entry] of Object.entries(list)) {
    if (isRecord(entry) && (own(entry, 'disabled') === true || own(entry, 'enabled') === false)) {
      disabled.push(name);
    } else {
      servers.set(name, readMcpServer(name, entry));
    }
  }
  if (servers.size === 0) {
    const why = disabled.length > 0 ? `all ${disabled.length} servers are disabled` : 'it is empty';
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `MCP configuration: no server to connect to: ${why}`,
    );
  }
  return { servers, disabled };
}

const typeNames: ReadonlyMap<unknown, McpServerConfig['type']> = new Map([
  ['stdio', 'stdio'],
  ['local', 'stdio'],
  ['http', 'http'],
  ['streamable-http', 'http'],
  ['streamableHttp', 'http'],
  ['streamable_http', 'http'],
  ['sse', 'sse'],
]);

/** One entry of `mcpServers`, as hosts write it. */
export type McpServerEntry =
  | {
      readonly command: string;
      readonly args?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | {
      readonly url: string;
      readonly type?: 'http' | 'sse' | 'auto';
      readonly headers?: Readonly<Record<string, string>>;
    };

/** Reads one entry of `mcpServers`. @throws FinchError FINCH_INVALID_ARGUMENT naming the server and the field */
export function readMcpServer(name: string, entry: unknown): McpServerConfig {
  aString(name, 'MCP server: its name');
  const where = `MCP server ${excerpt(name)}`;
  const wrong = (field: string, value: unknown, expected: string): FinchError =>
    new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: ${field} is ${kindOf(value)}, expected ${expected}`,
    );
  if (name === '') throw wrong('its name', name, 'a string that is not empty');
  if (!isRecord(entry)) throw wrong('its entry', entry, 'an object with command or url');
  const command = own(entry, 'command');
  const url = own(entry, 'url') ?? own(entry, 'serverUrl');
  const given = own(entry, 'type') ?? own(entry, 'transport');
  const type = given === 'auto' ? undefined : typeNames.get(given);
  if (given !== undefined && given !== 'auto' && type === undefined)
    throw wrong('type', given, 'stdio, http or sse');
  const strings = (field: string): Record<string, string> => {
    const value = own(entry, field);
    if (value === undefined || value === null) return {};
    if (!isRecord(value)) throw wrong(field, value, 'an object of strings');
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        if (typeof item === 'number' || typeof item === 'boolean') return [key, String(item)];
        if (typeof item !== 'string') throw wrong(`${field}.${key}`, item, 'a string');
        return [key, item];
      }),
    );
  };
  if (type === 'stdio' || (type === undefined && command !== undefined)) {
    if (typeof command !== 'string' || command === '') {
      throw wrong('command', command, 'the program to start, as a string');
    }
    const args = own(entry, 'args') ?? [];
    if (!Array.isArray(args)) throw wrong('args', args, 'an array of strings');
    args.forEach((arg, index) => {
      if (typeof arg !== 'string') throw wrong(`args[${index}]`, arg, 'a string');
    });
    const cwd = own(entry, 'cwd');
    if (cwd !== undefined && typeof cwd !== 'string')
      throw wrong('cwd', cwd, 'a folder as a string');
    const server = { type: 'stdio', command, args: args as string[], env: strings('env') } as const;
    return cwd === undefined ? server : { ...server, cwd };
  }
  if (typeof url !== 'string' || url === '') {
    throw wrong('url', url, "an http(s) URL (or give 'command' for a server to be started)");
  }
  return { type: type ?? 'auto', url, headers: strings('headers') };
}

const aStdioServer = fields({
  command: aString,
  args: aList(aString),
  env: aTable(aString),
  cwd: optional(aString),
});
const anHttpServer = fields({ url: aString, headers: aTable(aString) });

/** Where `${NAME}` finds its values; default `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A server's configuration with its variables filled in, in every string: `${NAME}`, `${NAME:-default}` and
 * `${env:NAME}`.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT naming a variable that is not set, or one only an editor can fill in
 */
export function expandMcpServer(
  name: string,
  server: McpServerConfig,
  environment: Environment = process.env,
): McpServerConfig {
  aString(name, 'MCP server: its name');
  anObject(environment, `MCP server ${excerpt(name)}: environment`);
  const kinds = { stdio: aStdioServer, http: anHttpServer, sse: anHttpServer, auto: anHttpServer };
  const kind: unknown = isRecord(server) ? server.type : undefined;
  if (typeof kind !== 'string' || !Object.hasOwn(kinds, kind)) {
    const what = isRecord(server)
      ? `server.type is ${kindOf(kind)}`
      : `server is ${kindOf(server)}`;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `MCP server ${excerpt(name)}: ${what}; expected a server of readMcpConfig, of type ${Object.keys(kinds).join(', ')}`,
    );
  }
  kinds[kind as keyof typeof kinds](server, `MCP server ${excerpt(name)}: server`);
  const fillIn = (inside: string): string => {
    const [, variable = '', fallback] =
      /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(inside) ?? [];
    if (variable === '') {
      const shown = inside.length > 60 ? `${inside.slice(0, 60)}…` : inside;
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `MCP server ${excerpt(name)}: \${${shown}} can only be filled in by an editor; write the value, or \${NAME} for ` +
          'an environment variable',
      );
    }
    const value = own(environment, variable);
    // As in a shell, `:-` replaces an empty value too.
    if (typeof value === 'string' && !(value === '' && fallback !== undefined)) return value;
    if (fallback !== undefined) return fallback;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `MCP server ${excerpt(name)}: the environment variable ${variable} is not set; set it, or write \${${variable}:-default}`,
    );
  };
  const expand = (text: string): string => replaceVariables(text, fillIn);
  const expandAll = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, expand(value)]));
  if (server.type === 'stdio') {
    return {
      ...server,
      command: expand(server.command),
      args: server.args.map(expand),
      env: expandAll(server.env),
      ...(server.cwd === undefined ? {} : { cwd: expand(server.cwd) }),
    };
  }
  return { ...server, url: expand(server.url), headers: expandAll(server.headers) };
}

/** Replaces each `${…}`, up to the next `}`. Not a pattern: one tries every unclosed `${` up to the text's end. */
function replaceVariables(text: string, fillIn: (inside: string) => string): string {
  let out = '';
  let from = 0;
  for (;;) {
    const open = text.indexOf('${', from);
    const close = open < 0 ? -1 : text.indexOf('}', open + 2);
    if (close < 0) return out + text.slice(from);
    out += text.slice(from, open) + fillIn(text.slice(open + 2, close));
    from = close + 1;
  }
}

/**
 * JSON with the comments and trailing commas of JSONC blanked out; strings are left alone. One pass over the text,
 * whatever it holds: what is not closed reaches to its end.
 */
function stripComments(text: string): string {
  const pieces: string[] = [];
  let from = 0;
  /** Where in `pieces` a comma is that only space and comments have followed. */
  let comma = -1;
  let at = 0;
  while (at < text.length) {
    const character = text[at] as string;
    if (character === '"') {
      comma = -1;
      at = endOfString(text, at);
    } else if (text.startsWith('//', at) || text.startsWith('/*', at)) {
      const isLine = text[at + 1] === '/';
      const end = text.indexOf(isLine ? '\n' : '*/', at + 2);
      // A block that is not closed stays, for the parser to refuse.
      if (end < 0 && !isLine) break;
      pieces.push(text.slice(from, at), ' ');
      at = end < 0 ? text.length : isLine ? end : end + 2;
      from = at;
    } else if (character === ',') {
      pieces.push(text.slice(from, at), ',');
      comma = pieces.length - 1;
      at++;
      from = at;
    } else {
      const closes = character === '}' || character === ']';
      if (closes && comma >= 0) pieces[comma] = ' ';
      if (closes || !/\s/.test(character)) comma = -1;
      at++;
    }
  }
  pieces.push(text.slice(from));
  return pieces.join('');
}

/** Behind the string that begins at `from`, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text[at] === '\\') at++;
  }
  return text.length;
}
