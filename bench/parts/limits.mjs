// Read bandwidth from the first cache to memory, and peak rates of arithmetic.
import { bandwidthContestant, peakContestants } from '../limits.mjs';
import { roundRobin, summary } from '../rounds.mjs';

const kib = 1024;

export function limitSteps({ options, plan }) {
  return options.threads.map((threads) => ({
    name: `limits of the machine, ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
    seconds: 5,
    async run({ probe, results }) {
      probe.pin(threads);
      const sizes = workingSets(plan.shapes, options.mode);
      const contestants = [
        ...sizes.map((bytes) => bandwidthContestant(probe, bytes, threads)),
        ...peakContestants(probe, threads),
      ];
      const found = await roundRobin(contestants, {
        budgetMs: options.mode === 'smoke' ? 100 : 3000,
        least: plan.least,
        most: 100,
      });
      const peaks = {};
      const reads = [];
      for (const contestant of contestants) {
        const stats = summary(found.get(contestant.name).samples);
        if (contestant.kind) peaks[contestant.kind] = stats;
        else reads.push({ bytes: contestant.bytes, way: contestant.way, perSecond: stats });
      }
      results.limits.push({ threads, reads, peaks });
    },
  }));
}

/** Powers of four from the first cache on, and every matrix of the plan in every storage. */
function workingSets(shapes, mode) {
  const largest = mode === 'smoke' ? 4096 * kib : 1024 * 1024 * kib;
  const sizes = [];
  for (let size = 16 * kib; size <= largest; size *= 4) sizes.push(size);
  for (const [count, dimension] of shapes) sizes.push(count * dimension * 4);
  return [...new Set(sizes.map((size) => Math.round(size / 4096) * 4096))].sort((a, b) => a - b);
}
