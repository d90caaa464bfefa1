import { aFunction, aNumber, fields, optional } from '../check.js';
import { shown } from '../describe-value.js';
import { FinchError } from '../errors.js';
import type { Bandit } from './bandit.js';
import type { Outcome } from './reward.js';

/** What health checks need of a {@link FeedbackStore}. */
export interface CheckedFeedback {
  readonly bandit: Bandit;
  readonly dimension: number;
  now(): number;
  reportHealth(toolId: string, outcome: Outcome): Promise<unknown>;
}

export interface HealthCheckOptions {
  feedback: CheckedFeedback;
  /** The catalogue's ids, such as `() => index.ids()`. */
  toolIds: () => readonly string[];
  /**
   * Asks a tool, or its server, whether it would work: for MCP a ping of the server. `false` or a rejection: not yet.
   * The signal aborts after `timeoutMs` and when the checks are stopped.
   */
  probe: (toolId: string, options: { signal: AbortSignal }) => boolean | Promise<boolean>;
  /** Milliseconds between a tool's checks; default 30,000. */
  intervalMs?: number;
  /** The longest interval, for tools whose checks succeed but whose calls then fail; default 3,600,000. */
  maxIntervalMs?: number;
  /** Default 10,000. */
  timeoutMs?: number;
  /** Checks under way at once; default 4. */
  concurrency?: number;
}

const anOptions = fields({
  feedback: fields({ now: aFunction, reportHealth: aFunction }),
  toolIds: aFunction,
  probe: aFunction,
  intervalMs: optional(aNumber),
  maxIntervalMs: optional(aNumber),
  timeoutMs: optional(aNumber),
  concurrency: optional(aNumber),
});

/** Tools scored before others get a turn. */
const chunk = 512;

interface Watch {
  /** When the tool is checked next. */
  due: number;
  interval: number;
  /** A check has found it working since. */
  revived: boolean;
}

/**
 * Finds out that a failed tool works again without a user's call: every tool whose latest report is a failure is probed at
 * intervals, and the first probe that succeeds is reported, so that the tool is offered as before. A probe that fails is
 * no news and is not reported. A tool that fails again after its probe succeeded (the probe does not see what fails) is
 * probed at twice the interval, up to `maxIntervalMs`.
 */
export class HealthChecks implements Disposable {
  readonly #options: Required<HealthCheckOptions>;
  readonly #watched = new Map<string, Watch>();
  readonly #anyContext: Float32Array;
  #timer: NodeJS.Timeout | undefined;
  #stopped = new AbortController();
  #running: Promise<number> | undefined;

  /** @throws FinchError FINCH_INVALID_ARGUMENT */
  constructor(options: HealthCheckOptions) {
    anOptions(options, 'options');
    this.#options = {
      intervalMs: 30_000,
      maxIntervalMs: 3_600_000,
      timeoutMs: 10_000,
      concurrency: 4,
      ...options,
    };
    const { intervalMs, maxIntervalMs, timeoutMs, concurrency } = this.#options;
    for (const [name, value] of Object.entries({ intervalMs, maxIntervalMs, timeoutMs })) {
      if (value >= 1 && value < 2 ** 31) continue;
      throw invalid(name, value, 'milliseconds, 1 or more and below 2^31');
    }
    if (maxIntervalMs < intervalMs)
      throw invalid('maxIntervalMs', maxIntervalMs, 'at least intervalMs');
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw invalid('concurrency', concurrency, 'an integer, 1 or more');
    }
    this.#anyContext = new Float32Array(options.feedback.dimension).fill(1);
  }

  /** Checks every `intervalMs`, without keeping the process alive. Twice is fine. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#stopped = new AbortController();
    this.#timer = setInterval(() => {
      // What fails here fails in the reports too, where it is heard.
      this.run().catch(() => undefined);
    }, this.#options.intervalMs);
    this.#timer.unref();
  }

  /** Ends {@link start}; probes under way are aborted, and nothing of them is reported. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#stopped.abort();
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  /**
   * Probes the tools that are due now. A call while another runs waits for that one.
   *
   * @returns how many were found working.
   * @throws FinchError what `reportHealth` throws
   */
  run(): Promise<number> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Tools whose latest report is a failure. */
  async failing(): Promise<string[]> {
    const { feedback, toolIds } = this.#options;
    const ids = toolIds();
    const failing: string[] = [];
    for (let start = 0; start < ids.length; start += chunk) {
      if (start > 0) await new Promise(setImmediate);
      const some = ids.slice(start, start + chunk);
      const priors = new Float32Array(some.length).fill(0.5);
      const { lastOutcome } = feedback.bandit.score(some, priors, this.#anyContext, feedback.now());
      failing.push(...some.filter((_, i) => (lastOutcome[i] as number) < 0.5));
    }
    return failing;
  }

  async #run(): Promise<number> {
    const { feedback, concurrency } = this.#options;
    const signal = this.#stopped.signal.aborted
      ? new AbortController().signal
      : this.#stopped.signal;
    const now = feedback.now();
    const due = this.#due(await this.failing(), now);
    let found = 0;
    const lane = async () => {
      for (let id = due.pop(); id !== undefined && !signal.aborted; id = due.pop()) {
        if (!(await this.#works(id, signal)) || signal.aborted) continue;
        const watch = this.#watched.get(id);
        if (watch !== undefined) watch.revived = true;
        await feedback.reportHealth(id, 'success');
        found += 1;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
    return found;
  }

  #due(failing: readonly string[], now: number): string[] {
    const { intervalMs, maxIntervalMs } = this.#options;
    const down = new Set(failing);
    for (const [id, { revived, due }] of this.#watched) {
      // A tool that has been well for as long as its interval starts afresh.
      if (!down.has(id) && (!revived || now > due)) this.#watched.delete(id);
    }
    const due: string[] = [];
    for (const id of failing) {
      const watch = this.#watched.get(id) ?? { due: now, interval: intervalMs, revived: false };
      this.#watched.set(id, watch);
      if (watch.revived) {
        watch.interval = Math.min(maxIntervalMs, 2 * watch.interval);
        watch.due = now + watch.interval;
        watch.revived = false;
      }
      if (now < watch.due) continue;
      watch.due = now + watch.interval;
      due.push(id);
    }
    return due.reverse();
  }

  async #works(id: string, stopped: AbortSignal): Promise<boolean> {
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(this.#options.timeoutMs)]);
    const aborted = new Promise<false>((resolve) => {
      signal.addEventListener('abort', () => resolve(false), { once: true });
    });
    try {
      return (await Promise.race([this.#options.probe(id, { signal }), aborted])) === true;
    } catch {
      return false;
    }
  }
}

function invalid(name: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `options.${name} is ${shown(value)}; expected ${expected}`,
  );
}
