import { aborted, onAbort } from '../abort.js';

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
