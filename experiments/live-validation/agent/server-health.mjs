/** How often a server that did not answer is asked again, on the experiment's clock. */
const pauseMs = 60_000;

/**
 * A host's own health check, beside users' calls: a server one of whose tools failed is pinged at once; when it does not
 * answer, all its tools are left out until it does.
 */
export class ServerHealth {
  /** @type {Map<string, number>} servers that do not answer, and when they were asked last */
  #down = new Map();
  /** All pings ever. */
  pings = 0;

  /**
   * @param {(server: string) => Promise<void>} ping rejects when the server does not answer
   * @param {() => number} now Unix milliseconds
   */
  constructor(ping, now) {
    this.ping = ping;
    this.now = now;
  }

  /** @param {string} server */
  async check(server) {
    this.pings += 1;
    try {
      await this.ping(server);
      this.#down.delete(server);
    } catch {
      this.#down.set(server, this.now());
    }
  }

  /** Asks those again whose time has come. @returns {Promise<ReadonlySet<string>>} the servers to leave out */
  async down() {
    const due = [...this.#down].filter(([, at]) => this.now() - at >= pauseMs);
    await Promise.all(due.map(([server]) => this.check(server)));
    return new Set(this.#down.keys());
  }
}
