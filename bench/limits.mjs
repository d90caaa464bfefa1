// What the machine can do, asked in the same rounds as what is held against it.
import { summary } from './rounds.mjs';

const ways = 3;

/** Picks the way of reading that is fastest for a working set. */
function bestWay(probe, bytes, threads) {
  let best = { way: 0, rate: 0 };
  for (let way = 0; way < ways; way++) {
    const rate = Math.max(...[0, 1].map(() => probe.bandwidth(bytes, threads, way, 0.003)));
    if (rate > best.rate) best = { way, rate };
  }
  return best.way;
}

/** The largest multiple of a page, at least one a thread. */
function pages(bytes, threads) {
  return Math.max(threads, Math.round(bytes / 4096)) * 4096;
}

export function bandwidthContestant(probe, bytes, threads) {
  const size = pages(bytes, threads);
  const way = bestWay(probe, size, threads);
  return {
    name: `read ${size}`,
    bytes: size,
    way,
    measure: () => probe.bandwidth(size, threads, way, 0.003),
  };
}

export function peakContestants(probe, threads) {
  const levels = probe.levels();
  const kinds = ['f32', 'bf16', 'i8'].filter((kind) => levels[kind]);
  if (levels.tile) kinds.push('tileBf16', 'tileI8');
  return kinds.map((kind) => ({
    name: `peak ${kind}`,
    kind,
    measure: () => probe.peak(kind, threads, 0.003),
  }));
}

/** Bytes a component takes, and the units that could multiply it: the fastest one that the machine has is the limit. */
const costs = {
  f32: { bytes: 4, peaks: ['f32'] },
  bf16: { bytes: 2, peaks: ['f32', 'bf16', 'tileBf16'] },
  // Half precision is widened to float32: no unit sums it in more than 16 bits.
  f16: { bytes: 2, peaks: ['f32'] },
  i8: { bytes: 1, peaks: ['f32', 'i8', 'tileI8'] },
};

/** Bytes read for a storage; one scan of all vectors, however many queries. */
export function storageBytes(storage, count, dimension) {
  return count * dimension * costs[storage].bytes;
}

/**
 * The least time a search can take, in ms: all bytes at the bandwidth of a working set of that size, or all operations
 * at the peak rate, whichever is longer. `rates` are medians by contestants' names.
 */
export function floorOf(rates, storage, { count, dimension, batch, threads }) {
  const bytes = pages(storageBytes(storage, count, dimension), threads);
  const peak = peakOf(rates, storage);
  const read = (storageBytes(storage, count, dimension) / rates.get(`read ${bytes}`)) * 1000;
  const compute = ((2 * count * dimension * batch) / peak) * 1000;
  return { ms: Math.max(read, compute), by: read >= compute ? 'bandwidth' : 'arithmetic' };
}

/** Operations per second of the fastest unit for a storage. */
export function peakOf(rates, storage) {
  return Math.max(...costs[storage].peaks.map((kind) => rates.get(`peak ${kind}`) ?? 0));
}

/** Medians of a round robin's limits by name. */
export function ratesOf(results) {
  const rates = new Map();
  for (const [name, { samples }] of results) {
    if (name.startsWith('read ') || name.startsWith('peak '))
      rates.set(name, summary(samples).median);
  }
  return rates;
}
