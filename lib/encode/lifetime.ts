import { FinchError } from '../errors.js';

/** Counts the calls in flight of something that can be closed, and refuses calls once it is. */
export class Lifetime {
  readonly #what: string;
  #inFlight = 0;
  #closing: Promise<void> | undefined;
  #onIdle: (() => void) | undefined;

  constructor(what: string) {
    this.#what = what;
  }

  get closed(): boolean {
    return this.#closing !== undefined;
  }

  /** Runs `work` unless closed (FINCH_CLOSED). */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) {
      throw new FinchError('FINCH_CLOSED', `${this.#what} is closed; open a new one`);
    }
    this.#inFlight++;
    try {
      return await work();
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#onIdle?.();
    }
  }

  /** Refuses new calls, waits for those in flight, then calls `release` once. Every call gets the same promise. */
  close(release: () => void | Promise<void>): Promise<void> {
    this.#closing ??= (async () => {
      if (this.#inFlight > 0) {
        await new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        });
      }
      await release();
    })();
    return this.#closing;
  }
}
