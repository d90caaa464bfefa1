import { access, readFile } from 'node:fs/promises';
import {
  FinchError,
  importMcpServers,
  importTools,
  type McpConfig,
  readMcpConfig,
  type ToolSource,
} from '../lib/index.js';

export interface SourceOptions {
  /** Files: tools in any known shape, or `mcpServers` configs, told apart by their content. */
  readonly files: readonly string[];
  /** `name=command args…` or `name=https://…`: one live server each. */
  readonly servers: readonly string[];
  readonly group: string | undefined;
  readonly strict: boolean;
  readonly warn: (message: string) => void;
}

/** Tools of every source named on the command line, in order. */
export async function readSources(options: SourceOptions): Promise<ToolSource[]> {
  const sources: ToolSource[] = [];
  for (const given of options.files) {
    const { file, group } = await namedSource(given, options.group);
    const text = await readText(file);
    if (isMcpConfig(text)) {
      sources.push(await liveSource(file, readMcpConfig(text), options));
      continue;
    }
    const { tools, warnings } = importTools(text, {
      origin: file,
      ...(group === undefined ? {} : { group }),
    });
    for (const warning of warnings) options.warn(warning);
    sources.push({ origin: file, tools });
  }
  for (const server of options.servers) {
    sources.push(await liveSource(server, serverConfig(server), options));
  }
  return sources;
}

/** `NAME=FILE` puts one file's tools into a group; a file whose own name holds `=` is taken as it is. */
async function namedSource(
  given: string,
  group: string | undefined,
): Promise<{ file: string; group: string | undefined }> {
  const match = /^([^=/\\]+)=(.+)$/s.exec(given);
  if (match?.[1] === undefined || match[2] === undefined) return { file: given, group };
  const whole = await access(given).then(
    () => true,
    () => false,
  );
  return whole ? { file: given, group } : { file: match[2], group: match[1] };
}

async function liveSource(
  origin: string,
  config: McpConfig,
  { strict, warn }: SourceOptions,
): Promise<ToolSource> {
  const { tools, failures, disabled } = await importMcpServers(config, { strict });
  for (const { name, error } of failures)
    warn(`server ${name} could not be read: ${error.message}`);
  for (const name of disabled) warn(`server ${name} is switched off in ${origin}`);
  if (tools.length === 0) {
    throw new FinchError('FINCH_IO', `${origin}: no server gave a tool; see the warnings above.`);
  }
  return { origin, tools };
}

function serverConfig(spec: string): McpConfig {
  const match = /^([^=\s]+)=(.+)$/s.exec(spec);
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `--mcp is '${spec}'; expected NAME=URL or NAME=COMMAND ARGS…, such as files="npx -y @modelcontextprotocol/server-filesystem .".`,
    );
  }
  const [, name, target] = match;
  const [command, ...args] = target.trim().split(/\s+/);
  const server = /^https?:\/\//.test(target) ? { url: target.trim() } : { command, args };
  return readMcpConfig(JSON.stringify({ mcpServers: { [name]: server } }));
}

/** Told by the top level alone: tools may well have a parameter named `servers`. */
function isMcpConfig(text: string): boolean {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    // Editors' configs have comments, which tool lists do not.
    return /^\s*(?:\/[/*][\s\S]*?)?\{\s*"(?:mcpServers|servers|mcp)"\s*:/.test(
      text.slice(0, 65_536),
    );
  }
  if (typeof root !== 'object' || root === null || 'tools' in root || 'openapi' in root)
    return false;
  return (
    'mcpServers' in root || 'mcp' in root || ('servers' in root && !Array.isArray(root.servers))
  );
}

export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new FinchError(
      'FINCH_IO',
      `cannot read ${file}: ${(error as Error).message}. Check the path and its permissions.`,
      { cause: error },
    );
  }
}
