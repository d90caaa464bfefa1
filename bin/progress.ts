/** Shows long work on stderr: one line rewritten with rate and ETA on a terminal, a plain line every few seconds elsewhere. */
export class ProgressLine {
  readonly #what: string;
  readonly #unit: string;
  readonly #start = performance.now();
  readonly #interactive = process.stderr.isTTY === true;
  #shown = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(what: string, unit: string) {
    this.#what = what;
    this.#unit = unit;
  }

  update(done: number, total: number): void {
    const now = performance.now();
    const pause = this.#interactive ? 100 : 5000;
    if (now - this.#shown < pause && done < total) return;
    this.#shown = now;
    const seconds = (now - this.#start) / 1000;
    const rate = done / Math.max(seconds, 1e-3);
    const left = rate > 0 ? (total - done) / rate : Number.POSITIVE_INFINITY;
    const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
    const line = `${this.#what}: ${done}/${total} ${this.#unit} (${percent} %), ${rate.toFixed(0)}/s, ${
      done < total ? `${duration(left)} left` : `${duration(seconds)} in all`
    }`;
    if (this.#interactive) {
      process.stderr.write(`\r\u001b[K${line}`);
      this.#drawn = true;
    } else {
      process.stderr.write(`${line}\n`);
    }
  }

  end(): void {
    if (this.#drawn) process.stderr.write('\n');
    this.#drawn = false;
  }
}

function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '?';
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return `${Math.ceil(seconds / 60)} min`;
}
