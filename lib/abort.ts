import { aSignal } from './check.js';
import { FinchError } from './errors.js';
import { binding, type CancelHandle } from './native.js';

export interface AbortOptions {
  /** Aborting rejects with FINCH_ABORTED; `cause` is the signal's reason. Work that has begun stops at its next block. */
  signal?: AbortSignal | undefined;
}

/** @throws FinchError FINCH_ABORTED when the signal has fired, FINCH_INVALID_ARGUMENT when it is none */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  aSignal(signal, 'signal');
  if (signal.aborted) throw aborted(signal);
}

export function aborted(signal: AbortSignal): FinchError {
  return new FinchError('FINCH_ABORTED', 'the operation was aborted by its signal.', {
    cause: signal.reason,
  });
}

/** Per signal: what to call when it fires. One listener serves them all, since Node warns of a leak at eleven. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `listener` once when the signal fires; the function returned takes it back. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let listeners = waiting.get(signal);
  if (listeners === undefined) {
    const made = new Set<() => void>();
    const fire = () => {
      waiting.delete(signal);
      for (const each of made) each();
    };
    waiting.set(signal, made);
    signal.addEventListener('abort', fire, { once: true });
    listeners = made;
  }
  const mine = listeners;
  mine.add(listener);
  return () => {
    mine.delete(listener);
  };
}

/** `work`, or FINCH_ABORTED as soon as the signal fires, whether or not the work heeds it. */
export async function orAborted<T>(
  signal: AbortSignal | undefined,
  work: T | PromiseLike<T>,
): Promise<T> {
  if (signal === undefined) return work;
  let forget = () => {};
  const fired = new Promise<never>((_, reject) => {
    const stop = () => reject(aborted(signal));
    if (signal.aborted) stop();
    else forget = onAbort(signal, stop);
  });
  return Promise.race([work, fired]).finally(() => forget());
}

/** Runs native work that an AbortSignal can cancel. */
export async function withCancel<T>(
  signal: AbortSignal | undefined,
  run: (cancel: CancelHandle | null) => Promise<T>,
): Promise<T> {
  if (signal === undefined) return run(null);
  throwIfAborted(signal);
  const cancel = binding().cancelCreate();
  const forget = onAbort(signal, () => binding().cancelSignal(cancel));
  try {
    return await run(cancel);
  } catch (error) {
    if (signal.aborted && error instanceof FinchError && error.code === 'FINCH_ABORTED') {
      throw aborted(signal);
    }
    throw error;
  } finally {
    forget();
  }
}
