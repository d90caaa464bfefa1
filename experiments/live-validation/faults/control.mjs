import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

/**
 * The experiment's end of the connections to its stdio proxies.
 */
export class Control {
  /** @type {Map<string, { socket: import('node:net').Socket, pid: number }>} */
  #proxies = new Map();
  /** @type {Map<string, () => void>} */
  #acknowledge = new Map();
  #server = createServer((socket) => this.#accept(socket));

  /** Listens on a free port of the loopback interface. @returns {Promise<number>} */
  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return /** @type {import('node:net').AddressInfo} */ (this.#server.address()).port;
  }

  /** Process id of the server behind a proxy. @param {string} name */
  pid(name) {
    return this.#proxies.get(name)?.pid;
  }

  /**
   * Resolves when the proxy has the fault, or is gone.
   *
   * @param {string} name
   * @param {import('./fault.mjs').Fault | null} fault
   * @returns {Promise<void>}
   */
  async set(name, fault) {
    const proxy = this.#proxies.get(name);
    if (proxy === undefined) return;
    const done = new Promise((resolve) => {
      this.#acknowledge.set(name, () => resolve(undefined));
    });
    proxy.socket.write(`${JSON.stringify(fault)}\n`);
    await done;
  }

  /** @returns {Promise<void>} */
  async close() {
    for (const { socket } of this.#proxies.values()) socket.destroy();
    await new Promise((resolve) => this.#server.close(() => resolve(undefined)));
  }

  /** @param {import('node:net').Socket} socket */
  #accept(socket) {
    let name = '';
    socket.on('error', () => undefined);
    socket.on('close', () => {
      // A proxy started anew may have taken the place already.
      if (this.#proxies.get(name)?.socket === socket) this.#proxies.delete(name);
      this.#acknowledge.get(name)?.();
    });
    createInterface({ input: socket }).on('line', (line) => {
      const message = JSON.parse(line);
      if (typeof message.server === 'string') {
        name = message.server;
        this.#proxies.set(name, { socket, pid: message.pid });
      } else {
        this.#acknowledge.get(name)?.();
      }
    });
  }
}
