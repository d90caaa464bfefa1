// What the tests of bad arguments share: handles, arrays, and how a case is checked.
import { describe, expect, test } from 'vitest';

import { addon, type Filled, failure, fill } from '../addon.js';

export const dimension = 4;
const filled: Filled = fill(3, dimension);
export const { index, snapshot } = filled;
export const bandit = addon.banditCreate({ dimension });
export const vector = new Float32Array([1, 2, 3, 4]);
export const nan = new Float32Array([1, Number.NaN, 3, 4]);
export const zero = new Float32Array(dimension);
export const one = new Float32Array([0.5]);
export const time = new Float64Array([0]);
export const shared = new Float32Array(new SharedArrayBuffer(16));
export const detached = new Float32Array(4);
structuredClone(detached, { transfer: [detached.buffer] });
export const small = addon.banditCreate({ dimension: 3 });

/** A call, the code it must fail with (or a choice of codes), and what the message must say. */
export type Case = [what: string, code: string, says: RegExp, call: () => unknown];

/** Each case fails as it says, and leaves the index and the bandit as they were. */
export function refuses(family: string, cases: readonly Case[]): void {
  describe(`bad arguments: ${family}`, () => {
    test.each(cases)('%s', async (_what, code, says, call) => {
      const before = [addon.indexInspect(index), addon.banditSerialize(bandit)];
      const error = await failure(call);
      expect(error.code).toMatch(new RegExp(`^(${code})$`));
      expect(error.message).toMatch(says);
      expect([addon.indexInspect(index), addon.banditSerialize(bandit)]).toEqual(before);
    });
  });
}
