import { excerpt } from '../describe-value.js';
import { FinchError } from '../errors.js';
import type { McpServerConfig } from './mcp-config.js';
import type { McpSdk } from './mcp-sdk.js';

type SdkTransport = Parameters<InstanceType<McpSdk['Client']>['connect']>[0];

/** One way to a server: the SDK's transport and what is known around it. */
export interface Transport {
  readonly sdk: SdkTransport;
  /** Process id of a child process that has not ended. */
  readonly pid: number | undefined;
  /** What the process wrote to its standard error last, as a clause for a message; empty when nothing. */
  lastWords(): string;
  /** Says good-bye where the protocol has a word for it; bounded in time, never rejects. */
  farewell(): Promise<void>;
  /** To be called once the transport has closed. */
  ended(): void;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT for a URL that is none */
export function openTransport(
  name: string,
  config: McpServerConfig,
  kind: 'stdio' | 'http' | 'sse',
  sdk: McpSdk,
): Transport {
  if (config.type === 'stdio') return stdioTransport(config, sdk);
  const url = URL.canParse(config.url) ? new URL(config.url) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `MCP server ${excerpt(name)}: ${excerpt(config.url)} is not an http or https URL`,
    );
  }
  const requestInit = { headers: { ...config.headers } };
  const nothing = { pid: undefined, lastWords: () => '', ended: () => undefined };
  if (kind === 'sse') {
    const transport = new sdk.SSEClientTransport(url, { requestInit });
    return { ...nothing, sdk: transport as SdkTransport, farewell: () => Promise.resolve() };
  }
  const transport = new sdk.StreamableHTTPClientTransport(url, { requestInit });
  return {
    ...nothing,
    sdk: transport as SdkTransport,
    farewell: async () => {
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, 1000);
      });
      await Promise.race([transport.terminateSession().catch(() => undefined), patience]);
      clearTimeout(timer);
    },
  };
}

/** Characters of standard error that are kept. */
const keptWords = 2000;

function stdioTransport(
  config: Extract<McpServerConfig, { type: 'stdio' }>,
  sdk: McpSdk,
): Transport {
  const { command, args, env, cwd } = config;
  const transport = new sdk.StdioClientTransport({
    command,
    args: [...args],
    env: { ...env },
    stderr: 'pipe',
    ...(cwd === undefined ? {} : { cwd }),
  });
  let words = '';
  // Read also when nobody asks: a full pipe would stop the server.
  transport.stderr?.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString('utf8')).slice(-keptWords);
  });
  let known: number | undefined;
  let over = false;
  const result: Transport = {
    sdk: transport,
    get pid() {
      if (over) return undefined;
      known ??= transport.pid ?? undefined;
      if (known !== undefined) watch(known);
      return known;
    },
    lastWords: () =>
      words.trim() === '' ? '' : `; it wrote: ${excerpt(words.trim().slice(-400), 400)}`,
    farewell: () => Promise.resolve(),
    ended: () => {
      over = true;
      if (known !== undefined) running.delete(known);
    },
  };
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    // Known from the start, so that an exit of this process at any later point takes the child with it.
    if (result.pid === undefined) throw new Error('the process ended at once');
  };
  return result;
}

/** Child processes that run now. A host that exits without closing still ends them. */
const running = new Set<number>();
let watching = false;

function watch(pid: number): void {
  running.add(pid);
  if (watching) return;
  watching = true;
  process.on('exit', () => {
    for (const child of running) {
      try {
        process.kill(child, 'SIGTERM');
      } catch {
        // It has ended by itself.
      }
    }
  });
}
