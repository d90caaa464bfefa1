import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe } from 'vitest';
import { freePort } from '../../../scripts/free-port.mjs';

/** The version of the redis-server on the PATH; undefined when there is none. */
export const redisVersion = (() => {
  try {
    return /v=([\d.]+)/.exec(
      execFileSync('redis-server', ['--version'], { encoding: 'utf8' }),
    )?.[1];
  } catch {
    return undefined;
  }
})();

/** Tests that need a redis-server. */
export const describeRedis = describe.runIf(redisVersion !== undefined);

const open: Array<{ close(): Promise<void> }> = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** Closed after the test, the latest first. */
export function closing<T extends { close(): Promise<void> }>(what: T): T {
  open.push(what);
  return what;
}

/** A redis-server process of the test's own, ended after it. */
export class TestRedis {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'finch-redis-'));
  readonly port: number;
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  static async start(args: readonly string[] = [], port?: number): Promise<TestRedis> {
    const redis = closing(new TestRedis(port ?? (await freePort()), args));
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const fixed = [
      '--bind',
      '127.0.0.1',
      '--dir',
      this.folder,
      '--save',
      '',
      '--loglevel',
      'warning',
    ];
    const port = this.#args.includes('--port') ? [] : ['--port', String(this.port)];
    const server = spawn('redis-server', [...fixed, ...port, ...this.#args], { stdio: 'ignore' });
    this.#process = server;
    this.#ended = new Promise((resolve) => server.on('exit', resolve));
    const up = () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(this.port, '127.0.0.1', () => {
          socket.destroy();
          resolve(true);
        });
        socket.on('error', () => resolve(false));
      });
    while (!(await up())) {
      if (server.exitCode !== null) {
        throw new Error(`redis-server ended with ${server.exitCode}`);
      }
      await sleep(10);
    }
  }

  /** As `kill -9` does. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGCONT');
    this.#process?.kill('SIGKILL');
    await this.#ended;
  }

  pause(): void {
    this.#process?.kill('SIGSTOP');
  }

  resume(): void {
    this.#process?.kill('SIGCONT');
  }

  /** One command by redis-cli, which shares nothing with the client that is tested. */
  cli(...args: string[]): string {
    return execFileSync('redis-cli', ['-p', String(this.port), ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Stands before a Redis; loses replies or refuses connections when told to. */
export class Wire {
  mode: 'pass' | 'lose-replies' | 'refuse' = 'pass';
  /** Replies that were lost. */
  lost = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(target: number) {
    this.#server = createServer((client) => {
      if (this.mode === 'refuse') {
        client.destroy();
        return;
      }
      const server = connect(target, '127.0.0.1');
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (data) => server.write(data));
      server.on('data', (data) => {
        if (this.mode !== 'lose-replies') client.write(data);
        else {
          this.lost++;
          client.destroy();
        }
      });
    });
  }

  static async to(target: number): Promise<Wire> {
    const wire = closing(new Wire(target));
    await new Promise<void>((resolve) => wire.#server.listen(0, '127.0.0.1', resolve));
    return wire;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
