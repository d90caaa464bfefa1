import { onAbort } from '../../abort.js';

/** Lets many wait for the next change of something. */
export class Changes {
  readonly #waiting = new Set<() => void>();

  notify(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves at the next change, when the time is up or when the signal fires, whichever is first. */
  next(signal?: AbortSignal, ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        clearTimeout(timer);
        forget?.();
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(wake, ms);
      const forget = signal === undefined ? undefined : onAbort(signal, wake);
      if (signal?.aborted === true) wake();
      else this.#waiting.add(wake);
    });
  }
}
