/**
 * A clock that never goes back. Availability relaxes with the time since a tool's latest outcome, so a system clock that
 * was ahead and is put right would keep a failing tool out until it gets there again. Here time goes on from where it
 * was instead, at the system clock's pace, until that has caught up.
 */
export class MonotoneClock {
  readonly #system: () => number;
  #read: number | undefined;
  #time = Number.NEGATIVE_INFINITY;

  /** @param system Unix milliseconds, finite. */
  constructor(system: () => number) {
    this.#system = system;
  }

  /** Unix milliseconds, not before any earlier answer. */
  now(): number {
    const read = this.#system();
    // How long a step back took, the system clock does not say: it counts as no time.
    const elapsed = Math.max(0, read - (this.#read ?? read));
    this.#read = read;
    this.#time = read >= this.#time ? read : this.#time + elapsed;
    return this.#time;
  }

  /** A time that was recorded by this clock in an earlier run: it is not before that. */
  notBefore(time: number): void {
    if (Number.isFinite(time)) this.#time = Math.max(this.#time, time);
  }

  /** A time of the system clock as one of this clock: while this one is ahead, as long ago as it was there. */
  at(systemTime: number): number {
    const now = this.now();
    const ahead = now - (this.#read ?? now);
    return ahead > 0 ? Math.min(systemTime + ahead, now) : systemTime;
  }
}
