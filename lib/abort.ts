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

/** Runs native work that an AbortSignal can cancel. */
export async function withCancel<T>(
  signal: AbortSignal | undefined,
  run: (cancel: CancelHandle | null) => Promise<T>,
): Promise<T> {
  if (signal === undefined) return run(null);
  throwIfAborted(signal);
  const cancel = binding().cancelCreate();
  const onAbort = () => binding().cancelSignal(cancel);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await run(cancel);
  } catch (error) {
    if (signal.aborted && error instanceof FinchError && error.code === 'FINCH_ABORTED') {
      throw aborted(signal);
    }
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
