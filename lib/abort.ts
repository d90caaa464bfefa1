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

/**
 * Settles as `work` does, or rejects with FINCH_ABORTED as soon as `signal` fires, after calling `stop`. `work` is then
 * left to settle unheard, so it must be safe to abandon.
 */
export function withAbort<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  stop?: () => void,
): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const abort = () => {
      stop?.();
      reject(aborted(signal));
    };
    if (signal.aborted) {
      work.catch(() => undefined);
      abort();
      return;
    }
    const forget = onAbort(signal, abort);
    work.then(
      (value) => {
        forget();
        resolve(value);
      },
      (error: unknown) => {
        forget();
        reject(error);
      },
    );
  });
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
