import { aborted, throwIfAborted } from '../abort.js';
import { aFunction } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';

export interface RunOptions {
  /** Queries in flight at once, an integer >= 1; 1 for methods that learn from one query to the next. Default 8. */
  readonly concurrency?: number | undefined;
  /** Called after each query. */
  readonly onProgress?:
    | ((progress: { readonly done: number; readonly total: number }) => void)
    | undefined;
  /** Aborting rejects at once with FINCH_ABORTED; queries in flight are left to end unheard. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs an asynchronous callback over queries, a few at a time, starting them in order; results are in the order of
 * the queries. The first failure stops new ones from starting and is thrown when those in flight have ended.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT (concurrency), FINCH_ABORTED; whatever the callback throws
 */
export async function runQueries<Q, R>(
  queries: readonly Q[],
  run: (query: Q) => R | Promise<R>,
  { concurrency = 8, onProgress, signal }: RunOptions,
): Promise<R[]> {
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `concurrency is ${kindOf(concurrency)}; expected an integer of 1 or more`,
    );
  }
  if (onProgress !== undefined) aFunction(onProgress, 'onProgress');
  throwIfAborted(signal);
  const results = new Array<R>(queries.length);
  let next = 0;
  let done = 0;
  let failure: { readonly error: unknown } | undefined;
  const lane = async (): Promise<void> => {
    while (failure === undefined && !signal?.aborted && next < queries.length) {
      const i = next++;
      try {
        results[i] = await run(queries[i] as Q);
        if (!signal?.aborted) onProgress?.({ done: ++done, total: queries.length });
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  const lanes = Promise.all(Array.from({ length: Math.min(concurrency, queries.length) }, lane));
  await untilAborted(lanes, signal);
  if (failure !== undefined) throw failure.error;
  return results;
}

async function untilAborted(
  work: Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (signal === undefined) {
    await work;
    return;
  }
  let stop = (): void => undefined;
  try {
    await Promise.race([
      work,
      new Promise((_, reject) => {
        stop = () => reject(aborted(signal));
        signal.addEventListener('abort', stop, { once: true });
      }),
    ]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
  throwIfAborted(signal);
}
