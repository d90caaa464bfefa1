import fc from 'fast-check';
import type { LabelledList } from '../../dist/esm/lib/index.js';

/** A list of n scores, best first, with embeddings and some right tools. */
export const labelledList = (): fc.Arbitrary<LabelledList> =>
  fc
    .record({
      scores: fc.array(fc.double({ min: -2, max: 2, noNaN: true }), {
        minLength: 1,
        maxLength: 12,
      }),
      numbers: fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 36, maxLength: 36 }),
      flags: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
      missing: fc.nat(2),
    })
    .map(({ scores, numbers, flags, missing }) => {
      const relevant = scores.flatMap((_, i) => (flags[i] ? [i] : []));
      return {
        scores: [...scores].sort((a, b) => b - a),
        // The first of three is 1: no row is zero.
        embeddings: Float32Array.from(numbers.slice(0, 3 * scores.length), (number, i) =>
          i % 3 === 0 ? 1 : number / 9,
        ),
        relevant,
        gold: relevant.length + missing,
      };
    });

/** Lists whose right tool's place depends on how clear its scores are: synthetic, independent, from one source. */
export function drawLists(count: number, random: () => number): LabelledList[] {
  return Array.from({ length: count }, () => {
    const clear = random();
    const scores = Array.from({ length: 12 }, () => random()).sort((a, b) => b - a);
    scores[0] = (scores[0] as number) + clear;
    const relevant = new Set<number>();
    const gold = 1 + Math.floor(random() * 3);
    while (relevant.size < gold) {
      relevant.add(Math.floor(12 * random() ** (1 + 4 * clear)));
    }
    return { scores, relevant: [...relevant], gold };
  });
}
