import type { RankedList } from './ranked-list.js';

type Scores = RankedList['scores'];

/** How many scores reach `least`. */
export function thresholdCut(scores: Scores, least: number): number {
  let k = 0;
  while (k < scores.length && (scores[k] as number) >= least) k += 1;
  return k;
}

/** How many scores are at least `ratio` times the best; where the best is not above 0, a ratio means nothing: 1. */
export function ratioCut(scores: Scores, ratio: number): number {
  const best = scores[0];
  if (best === undefined) return 0;
  return best > 0 ? thresholdCut(scores, ratio * best) : 1;
}

/**
 * Kneedle (Satopää, Albrecht, Irwin and Raghavan 2011) on the falling curve of scores: both axes scaled to [0, 1], the
 * difference curve d_i = (1 − y_i) − x_i, and the first local maximum of it after which it falls by more than
 * sensitivity / (n − 1), the mean step of x, before it rises above that maximum. The elbow is the first tool of the tail, so
 * those before it are kept. A curve without an elbow (straight, flat, or fewer than three scores) is not cut.
 *
 * @param sensitivity the paper's S, above 0; larger: only sharper elbows
 */
export function elbowCut(scores: Scores, sensitivity: number): number {
  const n = scores.length;
  const span = (scores[0] as number) - (scores[n - 1] as number);
  if (n < 3 || !(span > 0)) return n;
  const difference = (i: number) =>
    ((scores[0] as number) - (scores[i] as number)) / span - i / (n - 1);
  const fall = sensitivity / (n - 1);
  let peak = 0;
  let highest = 0;
  for (let i = 1; i < n; i++) {
    const d = difference(i);
    // Below the diagonal there is no elbow; rounding must not make one.
    if (d > highest + 1e-12) {
      peak = i;
      highest = d;
    } else if (peak > 0 && d < highest - fall) {
      return peak;
    }
  }
  return n;
}
