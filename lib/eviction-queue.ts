/** An entry's place in an {@link EvictionQueue}: what moves or removes it without a search. */
export interface Place<Key> {
  readonly key: Key;
  older: Place<Key> | undefined;
  newer: Place<Key> | undefined;
}

/**
 * Keys, the next to evict first; every step costs the same however many there are. It stands beside a Map, whose own
 * order would do but for its cost: a Map steps over the slots of all deleted entries to find its first, so evicting
 * from its front takes time that grows with its size.
 */
export class EvictionQueue<Key> {
  #oldest: Place<Key> | undefined;
  #newest: Place<Key> | undefined;
  #size = 0;

  constructor(keys: Iterable<Key> = []) {
    for (const key of keys) this.push(key);
  }

  get size(): number {
    return this.#size;
  }

  /** The key that {@link shift} would take; undefined when there is none. */
  get oldest(): Key | undefined {
    return this.#oldest?.key;
  }

  /** Adds a key as the newest. Equal keys are not looked for. */
  push(key: Key): Place<Key> {
    const place: Place<Key> = { key, older: undefined, newer: undefined };
    this.#append(place);
    return place;
  }

  /** Takes the oldest key out. */
  shift(): Key | undefined {
    const place = this.#oldest;
    if (place !== undefined) this.remove(place);
    return place?.key;
  }

  /** Makes a key that is in this queue the newest. */
  touch(place: Place<Key>): void {
    if (place === this.#newest) return;
    this.remove(place);
    this.#append(place);
  }

  /** Takes out a key that is in this queue. */
  remove(place: Place<Key>): void {
    const { older, newer } = place;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    // A removed place must not keep its old neighbours alive.
    place.older = undefined;
    place.newer = undefined;
    this.#size--;
  }

  clear(): void {
    this.#oldest = undefined;
    this.#newest = undefined;
    this.#size = 0;
  }

  #append(place: Place<Key>): void {
    place.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = place;
    else this.#newest.newer = place;
    this.#newest = place;
    this.#size++;
  }
}
