import { setMaxListeners } from 'node:events';
import { aSignal, fields, optional } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';

/** Options of everything that waits for a server. */
export interface WaitOptions {
  /** Milliseconds, above 0, at most 2^31 − 1. Default 30,000. */
  readonly timeoutMs?: number;
  /** Ends the wait with FINCH_ABORTED. */
  readonly signal?: AbortSignal;
}

const anOptions = fields({ signal: optional(aSignal) });
const longestTimer = 2 ** 31 - 1;

/**
 * Runs `work` until it settles, the time is over or the signal fires, whichever is first. The work's own signal fires
 * in the last two cases; listeners on the caller's signal are removed in every case.
 *
 * @param doing for messages: `connecting to MCP server 'files'`
 * @throws FinchError FINCH_IO when the time is over, FINCH_ABORTED on the signal, FINCH_INVALID_ARGUMENT for a bad timeout
 */
export async function withDeadline<T>(
  doing: string,
  options: WaitOptions,
  work: (signal: AbortSignal, timeoutMs: number) => Promise<T>,
): Promise<T> {
  anOptions(options, `${doing}: options`);
  const { timeoutMs = 30_000, signal } = options;
  if (typeof timeoutMs !== 'number' || !(timeoutMs > 0 && timeoutMs <= longestTimer)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${doing}: timeoutMs is ${kindOf(timeoutMs)}, expected a number of milliseconds above 0 and at most ${longestTimer}`,
    );
  }
  const controller = new AbortController();
  // The SDK leaves one listener per request on it; a listing makes a thousand.
  setMaxListeners(0, controller.signal);
  const aborted = (): FinchError =>
    new FinchError('FINCH_ABORTED', `${doing}: aborted by the caller`, { cause: signal?.reason });
  if (signal?.aborted === true) throw aborted();
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  const ended = new Promise<never>((_, reject) => {
    const end = (error: FinchError): void => {
      reject(error);
      controller.abort(error);
    };
    timer = setTimeout(
      () => end(new FinchError('FINCH_IO', `${doing}: no answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    onAbort = () => end(aborted());
    signal?.addEventListener('abort', onAbort, { once: true });
  });
  const working = work(controller.signal, timeoutMs);
  // When the deadline wins, the work still settles later; its rejection has then been answered.
  working.catch(() => undefined);
  try {
    return await Promise.race([working, ended]);
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
  }
}
