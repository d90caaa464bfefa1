// Lines that say how far the run is and how long it will still take.

export class Progress {
  #start = performance.now();
  #total;
  #done = 0;
  #out;

  /** @param steps objects with `seconds`, an estimate */
  constructor(steps, out = process.stderr) {
    this.#total = steps.reduce((sum, { seconds }) => sum + seconds, 0);
    this.#out = out;
  }

  begin(name) {
    const elapsed = this.elapsed();
    // The estimates hold for a quiet machine; how long it took so far says how this one compares.
    const pace = this.#done >= 5 ? elapsed / this.#done : 1;
    const left = Math.max(0, this.#total - this.#done) * pace;
    const percent = Math.min(99, Math.round((100 * this.#done) / Math.max(1, this.#total)));
    this.#out.write(
      `[${clock(elapsed)} ${String(percent).padStart(2)} %, ${clock(left)} left] ${name}\n`,
    );
  }

  end(step) {
    this.#done += step.seconds;
  }

  elapsed() {
    return (performance.now() - this.#start) / 1000;
  }
}

function clock(seconds) {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
