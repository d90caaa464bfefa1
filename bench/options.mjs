// The command line of `npm run bench`.
import path from 'node:path';
import { parseArgs } from 'node:util';

export const partNames = [
  'limits',
  'exact',
  'growth',
  'ann',
  'reliability',
  'select',
  'loop',
  'crossing',
];

const usage = `npm run bench -- [options]

  --full             longer: more rounds, (1,000,000 x 384), larger ANN catalogues
  --smoke            tiny shapes, a few seconds: does the suite work?
  --python           also faiss-cpu, numpy and torch, in a virtual environment under .cache/
  --offline          install nothing: peers that are not there are left out
  --only NAME[,...]  only these parts: ${partNames.join(', ')}
  --threads 1,2      thread counts (default: 1 and 2, as far as the machine has them)
  --out FOLDER       where results and pictures go (default: bench/results)
  --markdown FILE    measures nothing: prints the tables of a results file for docs/benchmarks.md
  --help`;

export function readOptions(argv, cpus) {
  const { values } = parseArgs({
    args: argv,
    options: {
      full: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      python: { type: 'boolean', default: false },
      offline: { type: 'boolean', default: false },
      only: { type: 'string' },
      threads: { type: 'string' },
      out: { type: 'string' },
      markdown: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  if (values.full && values.smoke)
    throw new Error('--full and --smoke exclude each other; expected one of them');
  const only = values.only?.split(',').map((name) => name.trim());
  for (const name of only ?? []) {
    if (!partNames.includes(name))
      throw new Error(`--only ${name}: there is no such part; there are ${partNames.join(', ')}`);
  }
  const threads = (values.threads ?? '1,2').split(',').map(Number);
  for (const count of threads) {
    if (!Number.isInteger(count) || count < 1)
      throw new Error(`--threads ${values.threads}: expected whole numbers, such as 1,2`);
  }
  const possible = threads.filter((count) => count <= cpus);
  if (possible.length === 0)
    throw new Error(`--threads ${values.threads}: this process has ${cpus} CPUs`);
  return {
    mode: values.smoke ? 'smoke' : values.full ? 'full' : 'normal',
    python: values.python,
    offline: values.offline,
    only,
    threads: possible,
    out: values.out && path.resolve(values.out),
    markdown: values.markdown,
    wants: (name) => only === undefined || only.includes(name),
  };
}

/** What each mode measures. Shapes are [vectors, dimension]. */
export const plans = {
  smoke: {
    shapes: [
      [700, 48],
      [1500, 32],
    ],
    batches: [1, 8],
    cellMs: 120,
    least: 3,
    growthCounts: [200, 800],
    growthBatches: [1, 4],
    ann: [{ count: 3000, dimension: 32, clusters: 40, queries: 60 }],
    arms: 100,
    rounds: 3,
    loopRequests: 40,
    loopIdleMs: 200,
    texts: 4,
  },
  normal: {
    shapes: [
      [5172, 768],
      [16464, 384],
      [44000, 1024],
    ],
    batches: [1, 8, 64, 256],
    cellMs: 3000,
    least: 5,
    growthCounts: [500, 1000, 2000, 5000, 10000, 20000, 40000],
    growthBatches: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    ann: [{ count: 20000, dimension: 384, clusters: 400, queries: 500 }],
    arms: 5000,
    rounds: 21,
    loopRequests: 600,
    loopIdleMs: 2000,
    texts: 32,
  },
  full: {
    shapes: [
      [5172, 768],
      [16464, 384],
      [44000, 1024],
      [1000000, 384],
    ],
    batches: [1, 8, 64, 256],
    cellMs: 15000,
    least: 7,
    growthCounts: [500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000],
    growthBatches: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    ann: [
      { count: 44000, dimension: 1024, clusters: 800, queries: 1000 },
      { count: 200000, dimension: 384, clusters: 2000, queries: 1000 },
    ],
    arms: 5000,
    rounds: 101,
    loopRequests: 2000,
    loopIdleMs: 5000,
    texts: 200,
  },
};
