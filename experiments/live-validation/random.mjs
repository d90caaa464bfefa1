/** Random draws that a seed repeats (mulberry32). */
export class Random {
  /** @param {number} seed a whole number */
  constructor(seed) {
    this.state = seed >>> 0;
  }

  /** In [0, 1). */
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * A whole number from `low` to `high`, both included.
   *
   * @param {number} low
   * @param {number} high
   */
  between(low, high) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /**
   * @template T
   * @param {readonly T[]} items not empty
   * @returns {T}
   */
  pick(items) {
    return /** @type {T} */ (items[this.between(0, items.length - 1)]);
  }

  /**
   * @template T
   * @param {readonly T[]} items
   * @returns {T[]}
   */
  shuffled(items) {
    const out = [...items];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.between(0, i);
      [out[i], out[j]] = [/** @type {T} */ (out[j]), /** @type {T} */ (out[i])];
    }
    return out;
  }

  /**
   * `count` different items.
   *
   * @template T
   * @param {readonly T[]} items
   * @param {number} count
   */
  some(items, count) {
    return this.shuffled(items).slice(0, count);
  }
}
