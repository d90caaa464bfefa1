/** Times the stages of one request. */
export class StageClock {
  readonly #start = performance.now();
  readonly #milliseconds: Record<string, number> = {};

  get stages(): string[] {
    return Object.keys(this.#milliseconds);
  }

  async time<T>(stage: string, run: () => T | Promise<T>): Promise<T> {
    const start = performance.now();
    const result = await run();
    this.#milliseconds[stage] = performance.now() - start;
    return result;
  }

  timeSync<T>(stage: string, run: () => T): T {
    const start = performance.now();
    const result = run();
    this.#milliseconds[stage] = performance.now() - start;
    return result;
  }

  finish(): Record<string, number> {
    return { ...this.#milliseconds, total: performance.now() - this.#start };
  }
}
