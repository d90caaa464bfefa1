import { EvictionQueue } from '../../eviction-queue.js';
import type { DecisionWindow } from '../decision-window.js';
import { type DecisionRecord, decodeRecord, encodeRecord } from '../records.js';
import { Changes } from './changes.js';
import type { CatalogueKeys } from './keys.js';
import type { RedisLink } from './redis-link.js';
import type { ReplicaLimits } from './replica-options.js';
import { share } from './scripts.js';

const maxDecisionBytes = 256 * 1024;
const batchBytes = 512 * 1024;

/**
 * Decisions in Redis, so that a tool's outcome can be reported at another replica than the one that chose it. They are
 * sent soon and not waited for: a decision that did not get there is reported where it was made.
 */
export class DecisionSharing {
  /** Decisions that were too large. */
  oversized = 0;
  readonly #window: DecisionWindow;
  readonly #keys: CatalogueKeys;
  readonly #limits: ReplicaLimits;
  readonly #waiting = new EvictionQueue<string>();
  #sending = 0;
  readonly #wake = new Changes();

  constructor(window: DecisionWindow, keys: CatalogueKeys, limits: ReplicaLimits) {
    this.#window = window;
    this.#keys = keys;
    this.#limits = limits;
  }

  /** Decisions that Redis has not confirmed. */
  get waiting(): number {
    return this.#waiting.size + this.#sending;
  }

  add(id: string): void {
    if (this.#limits.sharedDecisions === 0) return;
    this.#waiting.push(id);
    // Redis would keep no more of them.
    while (this.#waiting.size > this.#limits.sharedDecisions) this.#waiting.shift();
    this.#wake.notify();
  }

  /** Sends what waits, until the signal fires. */
  async run(link: RedisLink, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const ids: string[] = [];
      const args: Array<string | Buffer> = [];
      let bytes = 0;
      while (bytes < batchBytes && this.#waiting.size > 0) {
        const id = this.#waiting.shift() as string;
        const decision = this.#window.decisions.get(id);
        if (decision === undefined) continue;
        const record = encodeRecord(decision);
        if (record.length > maxDecisionBytes) {
          this.oversized++;
          continue;
        }
        ids.push(id);
        args.push(id, record);
        bytes += record.length;
      }
      if (ids.length === 0) {
        await this.#wake.next(signal);
        continue;
      }
      const { decisionTtlMs, sharedDecisions } = this.#limits;
      this.#sending = ids.length;
      try {
        await link.script(
          share,
          [this.#keys.decisions, this.#keys.decisionOrder],
          [String(decisionTtlMs), String(sharedDecisions), ...args],
        );
      } catch (error) {
        for (const id of ids) this.#waiting.push(id);
        throw error;
      } finally {
        this.#sending = 0;
      }
    }
  }

  /** A decision that some replica shared; undefined when there is none. */
  async find(link: RedisLink, id: string): Promise<DecisionRecord | undefined> {
    const reply = await link.command(['HGET', this.#keys.decisions, id]);
    if (!Buffer.isBuffer(reply)) return undefined;
    const record = decodeRecord(reply);
    return record.type === 'decision' && record.id === id ? record : undefined;
  }
}
