import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A server process that listens on a port of its own choice. */
export class ChildServer {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #child;

  /** @param {import('./servers.mjs').ServerPlan} plan */
  constructor(plan) {
    this.plan = plan;
  }

  get pid() {
    return this.#child?.pid;
  }

  /** @returns {Promise<number>} its port */
  async start() {
    const { name, args, env } = this.plan;
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#child = child;
    const lines = createInterface({ input: child.stdout });
    const [line] = await Promise.race([
      once(lines, 'line'),
      once(child, 'exit').then(() => {
        throw new Error(`the server ${name} ended while starting`);
      }),
    ]);
    return JSON.parse(line).port;
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    this.#child?.kill(signal);
  }

  async kill() {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
}
