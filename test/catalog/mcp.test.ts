import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  connectMcp,
  importMcpServers,
  type McpConnection,
  type McpStdioServer,
} from '../../lib/catalog/index.js';
import { freePort } from '../../scripts/free-port.mjs';
import { fixturePath, rejected } from './fixture.js';

const open: { close(): Promise<unknown> }[] = [];
const children: ChildProcess[] = [];
const temporary: string[] = [];
const stray: number[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((connection) => connection.close()));
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const pid of stray.splice(0)) if (alive(pid)) process.kill(pid, 'SIGKILL');
  for (const path of temporary.splice(0)) rmSync(path, { recursive: true, force: true });
});

function fake(mode: string, env: Record<string, string> = {}): McpStdioServer {
  return {
    type: 'stdio',
    command: process.execPath,
    args: [fixturePath('fake-mcp-server.mjs'), mode],
    env,
  };
}

const require = createRequire(import.meta.url);
const sdkRoot = dirname(
  dirname(dirname(dirname(require.resolve('@modelcontextprotocol/sdk/client/index.js')))),
);
const packages = join(sdkRoot, '..');

function real(name: string, ...args: string[]): McpStdioServer {
  const entry = join(packages, `server-${name}`, 'dist', 'index.js');
  return { type: 'stdio', command: process.execPath, args: [entry, ...args], env: {} };
}

/** For servers that answer: a busy machine takes its time. */
const patient = { timeoutMs: 240_000 };

async function connect(...given: Parameters<typeof connectMcp>): Promise<McpConnection> {
  const [name, server, options] = given;
  const connection = await connectMcp(name, server, { ...patient, ...options });
  open.push(connection);
  return connection;
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The library's sources as JavaScript in a folder of their own, for a program that runs outside the test runner. */
function transpiledLibrary(): string {
  const lib = fileURLToPath(new URL('../../lib/', import.meta.url));
  const out = mkdtempSync(join(tmpdir(), 'finch-mcp-'));
  temporary.push(out);
  writeFileSync(join(out, 'package.json'), '{"type":"module"}');
  symlinkSync(join(packages, '..'), join(out, 'node_modules'));
  const files = readdirSync(join(lib, 'catalog'), { recursive: true, encoding: 'utf8' });
  const own = ['check.ts', 'describe-value.ts', 'errors.ts'];
  for (const file of [...own, ...files.map((name) => join('catalog', name))]) {
    if (!file.endsWith('.ts')) continue;
    const target = join(out, file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    const source = readFileSync(join(lib, file), 'utf8');
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
    });
    writeFileSync(target, outputText);
  }
  return out;
}

describe('a scripted MCP server', () => {
  it('gives its 1,200 tools over pages, unknown fields kept', async () => {
    const server = await connect('fake', fake('pages', { FAKE_SECRET: `\${SECRET}` }), {
      environment: { SECRET: 's3' },
      source: 'official',
    });
    const tools = await server.listTools(patient);
    expect(tools).toHaveLength(1200);
    expect(new Set(tools.map((tool) => tool.id)).size).toBe(1200);
    expect(tools[1199]).toMatchObject({
      id: 'fake/tool_1199',
      name: 'tool_1199',
      group: 'fake',
      groupDescription: 'Fake for tests, secret s3.',
      source: 'official',
    });
    expect(JSON.parse(tools[700]?.definition ?? '')).toEqual({
      name: 'tool_0700',
      description: 'Does task number 700.',
      inputSchema: { type: 'object', properties: { arg700: { type: 'string' } } },
      ownField: { kept: true, index: 700 },
    });
  });

  it('runs tools; one that fails is a result, one that is refused an error', async () => {
    const server = await connect('fake', fake('pages'));
    await server.ping();
    const result = await server.call('tool_1', { a: [1, 'é'] });
    expect(result).toEqual({ content: [{ type: 'text', text: '{"a":[1,"é"]}' }], isError: false });
    expect((await server.call('fail')).isError).toBe(true);
    await rejected(server.call('refuse'), 'FINCH_IO', "'refuse'", 'unknown tool');
    await rejected(server.call('sleep', {}, { timeoutMs: 100 }), 'FINCH_IO', '100 ms');
    const controller = new AbortController();
    const waiting = server.call('sleep', {}, { signal: controller.signal });
    controller.abort(new Error('enough'));
    const error = await rejected(waiting, 'FINCH_ABORTED', "calling 'sleep'");
    expect(error.cause).toEqual(new Error('enough'));
    await rejected(server.call('tool_1', {}, { signal: AbortSignal.abort() }), 'FINCH_ABORTED');
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await rejected(server.ping({ timeoutMs }), 'FINCH_INVALID_ARGUMENT', 'timeoutMs');
    }
    // Still usable after all that.
    expect((await server.call('tool_2')).isError).toBe(false);
  });

  it('notices a server that dies in a call, and says so afterwards', async () => {
    const server = await connect('fake', fake('pages'));
    expect(server.closed).toBe(false);
    await rejected(server.call('die'), 'FINCH_IO', "calling 'die'");
    expect(server.closed).toBe(true);
    await rejected(server.listTools(patient), 'FINCH_CLOSED', 'gone away');
  });

  it('ends its process on close, twice is fine, use after is refused', async () => {
    const server = await connectMcp('fake', fake('pages'), patient);
    const { pid } = server;
    if (pid === undefined) throw new Error('no pid');
    expect(alive(pid)).toBe(true);
    await Promise.all([server.close(), server.close()]);
    await server.close();
    expect(alive(pid)).toBe(false);
    expect(server.pid).toBeUndefined();
    await rejected(server.ping(), 'FINCH_CLOSED', 'it was closed');
  });

  it('kills a process that will not end', async () => {
    const server = await connectMcp('fake', fake('stubborn'), patient);
    const { pid } = server;
    if (pid === undefined) throw new Error('no pid');
    await server.close();
    expect(alive(pid)).toBe(false);
  });

  it('ends its processes when the host exits without closing', async () => {
    const lib = transpiledLibrary();
    const module = pathToFileURL(join(lib, 'catalog', 'mcp.js')).href;
    const server = JSON.stringify(fake('lingering'));
    const program =
      `const { connectMcp } = await import(${JSON.stringify(module)});\n` +
      `const server = await connectMcp('fake', ${server});\n` +
      'process.stdout.write(String(server.pid), () => process.exit(0));';
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let written = '';
    child.stdout.on('data', (chunk: Buffer) => {
      written += chunk.toString();
    });
    await once(child, 'close');
    const pid = Number(written);
    expect(pid).toBeGreaterThan(0);
    stray.push(pid);
    await vi.waitFor(() => expect(alive(pid)).toBe(false), { timeout: 30_000 });
  });

  it('refuses a cursor that comes back and a listing without end', async () => {
    const looping = await connect('loop', fake('loop'));
    await rejected(looping.listTools(patient), 'FINCH_CORRUPT', "cursor '1'");
    const endless = await connect('endless', fake('endless'));
    await rejected(endless.listTools(patient), 'FINCH_CORRUPT', '1000 pages');
  });

  it('refuses a listing that is none', async () => {
    await rejected(
      (await connect('f', fake('no-array'))).listTools(patient),
      'FINCH_CORRUPT',
      'expected an array',
    );
    await rejected(
      (await connect('f', fake('bad-tool'))).listTools(patient),
      'FINCH_INVALID_ARGUMENT',
      'tools[1]',
      'name is missing',
    );
    await rejected(
      (await connect('f', fake('twins'))).listTools(patient),
      'FINCH_DUPLICATE_ID',
      "'f/tool_0001'",
    );
    expect(await (await connect('f', fake('no-tools'))).listTools(patient)).toEqual([]);
  });

  it('gives up on a server that hangs, in connecting and in listing, and leaves no process', async () => {
    const pids: number[] = [];
    const sdk = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const start = vi.spyOn(sdk.StdioClientTransport.prototype, 'start');
    start.mockImplementation(async function (this: InstanceType<typeof sdk.StdioClientTransport>) {
      start.mockRestore();
      await this.start();
      pids.push(this.pid ?? 0);
    });
    await rejected(connectMcp('h', fake('hang'), { timeoutMs: 700 }), 'FINCH_IO', "'h'", '700 ms');
    expect(pids).toHaveLength(1);
    expect(alive(pids[0] ?? 0)).toBe(false);
    const server = await connect('h', fake('hang-list'));
    await rejected(server.listTools({ timeoutMs: 100 }), 'FINCH_IO', 'listing', '100 ms');
  });

  it('tells why a server did not start', async () => {
    await rejected(
      connectMcp('c', fake('crash'), patient),
      'FINCH_IO',
      "'c'",
      'the licence file is missing',
    );
    const missing = { ...fake('pages'), command: '/no/such/program' };
    await rejected(connectMcp('m', missing), 'FINCH_IO', "'m'", 'ENOENT');
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    await rejected(connectMcp('h', fake('hang'), { signal: controller.signal }), 'FINCH_ABORTED');
    await rejected(
      connectMcp('e', fake('pages', { A: `\${NOT_SET}` }), { environment: {} }),
      'FINCH_INVALID_ARGUMENT',
      'NOT_SET',
    );
    await rejected(
      connectMcp('u', { type: 'http', url: 'nowhere', headers: {} }),
      'FINCH_INVALID_ARGUMENT',
      'nowhere',
    );
    await rejected(
      connectMcp('u', { type: 'http', url: 'file:///etc', headers: {} }),
      'FINCH_INVALID_ARGUMENT',
      'http',
    );
    const nobody = `http://127.0.0.1:${await freePort()}/mcp`;
    await rejected(
      connectMcp('u', { type: 'auto', url: nobody, headers: {} }),
      'FINCH_IO',
      "'u'",
      'ECONNREFUSED',
    );
  });

  it('gives up on an HTTP server that hangs or refuses', async () => {
    const headers: unknown[] = [];
    const refused: unknown[] = [];
    const server: Server = createServer((request, response) => {
      headers.push(request.headers['x-key']);
      if (request.url === '/refuse') refused.push(request.method);
      if (request.url === '/refuse') response.writeHead(405).end('not here');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = { type: 'auto', headers: { 'X-Key': 'k' } } as const;
    await rejected(
      connectMcp('h', { ...config, url: `${base}/hang` }, { timeoutMs: 300 }),
      'FINCH_IO',
      '300 ms',
    );
    await rejected(
      connectMcp('h', { ...config, url: `${base}/refuse` }, patient),
      'FINCH_IO',
      '405',
    );
    // Streamable HTTP was tried first, then SSE; both sent the headers.
    expect(refused).toEqual(['POST', 'GET']);
    expect(new Set(headers)).toEqual(new Set(['k']));
    server.closeAllConnections();
    server.close();
  });
});

describe('importMcpServers', () => {
  const config = (servers: Record<string, McpStdioServer>): string =>
    JSON.stringify({ mcpServers: servers });

  it('reports a broken server beside the tools of the others', async () => {
    const result = await importMcpServers(
      config({
        good: fake('pages'),
        bad: fake('crash'),
        other: fake('bad-tool'),
        none: fake('empty'),
      }),
      patient,
    );
    expect(result.tools).toHaveLength(1200);
    expect(result.servers).toEqual([
      { name: 'good', toolCount: 1200 },
      { name: 'none', toolCount: 0 },
    ]);
    expect(result.failures.map(({ name, error }) => [name, error.code])).toEqual([
      ['bad', 'FINCH_IO'],
      ['other', 'FINCH_INVALID_ARGUMENT'],
    ]);
    expect(result.connections.size).toBe(0);
  });

  it('fails when strict, when nothing is left, and when aborted', async () => {
    const mixed = config({ good: fake('pages'), bad: fake('crash') });
    await rejected(
      importMcpServers(mixed, { ...patient, strict: true }),
      'FINCH_IO',
      '1 of 2',
      "'bad'",
    );
    await rejected(
      importMcpServers(config({ bad: fake('crash') }), patient),
      'FINCH_IO',
      'no MCP server',
      "'bad'",
    );
    await rejected(
      importMcpServers(config({ e: fake('empty') }), patient),
      'FINCH_IO',
      'no MCP server',
    );
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    const hanging = config({ h: fake('hang'), good: fake('pages') });
    await rejected(importMcpServers(hanging, { signal: controller.signal }), 'FINCH_ABORTED');
  });

  it('says how to install the SDK when it is missing', async () => {
    vi.resetModules();
    vi.doMock('@modelcontextprotocol/sdk/client/index.js', () => {
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    });
    try {
      const fresh = await import('../../lib/catalog/index.js');
      const line = 'npm install @modelcontextprotocol/sdk';
      await rejected(fresh.connectMcp('a', fake('pages')), 'FINCH_DEVICE', line);
      await rejected(fresh.importMcpServers(config({ a: fake('pages') })), 'FINCH_DEVICE', line);
    } finally {
      vi.doUnmock('@modelcontextprotocol/sdk/client/index.js');
      vi.resetModules();
    }
  });
});

describe('MCP servers from npm', () => {
  it('are read and called over stdio, all at once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'finch-mcp-'));
    temporary.push(folder);
    const servers = {
      everything: real('everything', 'stdio'),
      files: real('filesystem', folder),
      memory: {
        ...real('memory'),
        env: { MEMORY_FILE_PATH: join(folder, 'memory.json') },
      },
    };
    const result = await importMcpServers(JSON.stringify({ mcpServers: servers }), {
      ...patient,
      keepOpen: true,
    });
    open.push(...result.connections.values());
    expect(result.failures).toEqual([]);
    expect([...result.connections.keys()]).toEqual(['everything', 'files', 'memory']);
    const ids = result.tools.map((tool) => tool.id);
    expect(ids).toEqual(
      expect.arrayContaining(['everything/echo', 'files/read_text_file', 'memory/create_entities']),
    );
    for (const tool of result.tools) {
      expect(tool.description).not.toBe('');
      expect(tool.parameters?.type).toBe('object');
      expect(JSON.parse(tool.definition).inputSchema).toEqual(tool.parameters);
    }
    const echoed = await result.connections.get('everything')?.call('echo', { message: 'finch' });
    expect(JSON.stringify(echoed?.content)).toContain('finch');
    const listed = await result.connections.get('files')?.call('list_allowed_directories');
    expect(JSON.stringify(listed?.content)).toContain(basename(folder));
    const outside = await result.connections
      .get('files')
      ?.call('read_text_file', { path: '/etc/passwd' });
    expect(outside?.isError).toBe(true);
    const graph = await result.connections.get('memory')?.call('read_graph');
    expect(graph?.isError ?? false).toBe(false);
  });

  it('are read and called over streamable HTTP', async () => {
    const port = await freePort();
    const { command, args } = real('everything', 'streamableHttp');
    const child = spawn(command, args, {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    children.push(child);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
      child.stderr.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('listening')) resolve();
      });
    });
    const url = `http://127.0.0.1:${port}/mcp`;
    for (const type of ['http', 'auto'] as const) {
      const server = await connect('web', { type, url, headers: {} });
      const tools = await server.listTools(patient);
      expect(tools.map((tool) => tool.id)).toContain('web/echo');
      const result = await server.call('echo', { message: 'over http' });
      expect(JSON.stringify(result.content)).toContain('over http');
      await server.ping();
      await server.close();
      expect(server.closed).toBe(true);
    }
    const server = await connect('web', { type: 'http', url, headers: {} });
    child.removeAllListeners('exit');
    child.kill('SIGKILL');
    await once(child, 'exit');
    await rejected(
      server.call('echo', { message: 'x' }, { timeoutMs: 20_000 }),
      'FINCH_IO',
      "'echo'",
    );
  });
});
