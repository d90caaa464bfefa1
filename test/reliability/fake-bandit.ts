import type { BanditOptions, BanditState } from '../../lib/reliability/bandit.js';

interface Arm {
  a: Float64Array;
  b: Float64Array;
  last: number;
  updates: number;
}

/**
 * A bandit in plain JavaScript for tests of what surrounds one: the update rule of SPEC 4 (calibrated) in float64, order
 * dependent like the native one, so that a lost, repeated or reordered update changes the bytes.
 */
export class FakeBandit implements BanditState {
  readonly options: BanditOptions;
  closed = false;
  #arms = new Map<string, Arm>();

  constructor(options: BanditOptions) {
    this.options = options;
  }

  update(
    ids: readonly string[],
    xs: Float32Array | null,
    priors: Float32Array,
    rewards: Float32Array,
    times: Float64Array,
  ): void {
    const { dimension, gamma = 0.95, lambda = 1 } = this.options;
    for (const [i, id] of ids.entries()) {
      let arm = this.#arms.get(id);
      if (arm === undefined) {
        arm = {
          a: new Float64Array(dimension).fill(lambda),
          b: new Float64Array(dimension),
          last: 0,
          updates: 0,
        };
        this.#arms.set(id, arm);
      }
      for (let j = 0; xs !== null && j < dimension; j++) {
        const x = (xs[i * dimension + j] ?? 0) * Math.sqrt(dimension);
        const y = (rewards[i] ?? 0) - (priors[i] ?? 0);
        arm.a[j] = gamma * (arm.a[j] ?? 0) + x * x + (1 - gamma) * lambda;
        arm.b[j] = gamma * (arm.b[j] ?? 0) + y * x;
      }
      arm.last = times[i] ?? 0;
      arm.updates++;
    }
  }

  drop(ids: readonly string[]): void {
    for (const id of ids) this.#arms.delete(id);
  }

  updatesOf(id: string): number {
    return this.#arms.get(id)?.updates ?? 0;
  }

  serialize(): Uint8Array {
    const arms = [...this.#arms].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return Buffer.from(
      JSON.stringify(
        arms.map(([id, { a, b, last, updates }]) => [id, [...a], [...b], last, updates]),
      ),
    );
  }

  deserialize(state: Uint8Array): void {
    const arms = JSON.parse(Buffer.from(state).toString()) as Array<
      [string, number[], number[], number, number]
    >;
    this.#arms = new Map(
      arms.map(([id, a, b, last, updates]) => [
        id,
        { a: Float64Array.from(a), b: Float64Array.from(b), last, updates },
      ]),
    );
  }

  close(): void {
    this.closed = true;
  }
}
