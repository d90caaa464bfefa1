import { aborted } from '../abort.js';

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
    const onAbort = () => {
      stop?.();
      reject(aborted(signal));
    };
    if (signal.aborted) {
      work.catch(() => undefined);
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
  });
}
