// Timing several things fairly: in turn, round after round, so that whatever else the machine does hits all alike.
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Contestants have a `name` and one of
 *   run()          the call to time; may return a promise
 *   timed(times)   does the call so many times elsewhere and resolves to the seconds it took
 *   measure()      a figure of its own (the machine's limits), not a time
 * and maybe `settleMs`: how long its threads may spin after it is done, so that they do not disturb the next one.
 *
 * Resolves to a Map of name -> { samples, rounds }: milliseconds per call, or figures, with the round of each. A sample
 * of a call shorter than `sampleMs` is the mean of several in a row, after one untimed: data that fit a cache are in it.
 * What is slow takes part in every second, third, ... round, at least `least` times.
 */
export async function roundRobin(contestants, { budgetMs, least, sampleMs = 2, most = 400 }) {
  const entries = [];
  for (const contestant of contestants) {
    const first = await sampleOf(contestant, 1, false);
    const { elapsed } = await sampleOf(contestant, 1, false);
    const once = Math.min(first.elapsed, elapsed);
    const times = contestant.measure ? 1 : Math.max(1, Math.min(5000, Math.ceil(sampleMs / once)));
    entries.push({
      contestant,
      times,
      cost: once * (times === 1 ? 1 : times + 1),
      samples: [],
      rounds: [],
    });
  }
  // As many rounds as the faster ones fit into the budget; no one may take more than its share, save to reach `least`.
  const share = budgetMs / entries.length;
  const wanted = entries.map(({ cost, contestant }) =>
    Math.max(least, Math.min(most, Math.floor(share / (cost + (contestant.settleMs ?? 0))))),
  );
  const rounds = Math.max(...wanted);
  for (let round = 0; round < rounds; round++) {
    // A different one begins each time: the one after a slow one would otherwise always meet the same caches.
    for (let i = 0; i < entries.length; i++) {
      const at = (i + round) % entries.length;
      // Spreads its `wanted` samples evenly over the rounds.
      const due =
        Math.floor(((round + 1) * wanted[at]) / rounds) > Math.floor((round * wanted[at]) / rounds);
      if (!due) continue;
      const { contestant, times, samples, rounds: taken } = entries[at];
      const { value } = await sampleOf(contestant, times, times > 1);
      samples.push(value);
      taken.push(round);
    }
  }
  return new Map(
    entries.map(({ contestant, samples, rounds: taken }) => [
      contestant.name,
      { samples, rounds: taken },
    ]),
  );
}

async function sampleOf(contestant, times, warm) {
  const { run, timed, measure, settleMs } = contestant;
  const start = performance.now();
  let value;
  if (measure !== undefined) {
    value = await measure();
  } else if (timed !== undefined) {
    value = ((await timed(times)) * 1000) / times;
  } else {
    if (warm) await run();
    const begin = performance.now();
    for (let i = 0; i < times; i++) {
      const result = run();
      if (result instanceof Promise) await result;
    }
    value = (performance.now() - begin) / times;
  }
  const elapsed = Math.max(1e-6, measure === undefined ? value : performance.now() - start);
  if (settleMs) await sleep(settleMs);
  return { value, elapsed };
}

/** Median and spread of numbers; `n` is how many there were. */
export function summary(samples) {
  const sorted = Float64Array.from(samples).sort();
  return {
    median: quantile(sorted, 0.5),
    p10: quantile(sorted, 0.1),
    p90: quantile(sorted, 0.9),
    n: sorted.length,
  };
}

function quantile(sorted, q) {
  if (sorted.length === 0) return Number.NaN;
  const at = q * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.ceil(at);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** a / b: the ratios in the rounds where both took part; of the medians, where those are too few. */
export function ratio(a, b) {
  const other = new Map(b.rounds.map((round, i) => [round, b.samples[i]]));
  const pairs = [];
  a.rounds.forEach((round, i) => {
    if (other.has(round)) pairs.push(a.samples[i] / other.get(round));
  });
  if (pairs.length >= 3) return summary(pairs);
  const median = summary(a.samples).median / summary(b.samples).median;
  return { median, p10: median, p90: median, n: pairs.length };
}
