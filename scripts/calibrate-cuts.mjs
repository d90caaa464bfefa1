// Makes lib/truncate/packaged-calibration.ts from held-out queries:
//   node scripts/calibrate-cuts.mjs DATA [--cache .cache/cuts]
// DATA holds metatool and sealtools, whose licences (MIT, Apache-2.0) allow it, with the queries that the encoder was not trained
// on (training: prepare --held-out); at most 700 of each are taken.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { calibrateAbstention, calibrateCut } from '../dist/esm/lib/index.js';
import { candidateLists } from './cut-lists.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { cache: { type: 'string', default: '.cache/cuts' } },
});
const [data] = positionals;
if (data === undefined) {
  console.error('usage: node scripts/calibrate-cuts.mjs DATA [--cache .cache/cuts]');
  process.exit(2);
}
const perSet = 700;
const parts = [];
for (const set of ['metatool', 'sealtools']) {
  parts.push(await candidateLists(data, values.cache, set, 'train', perSet));
}
const { pipeline } = parts[0];
const lists = parts.flatMap((part) => part.lists);
const cut = calibrateCut(lists, {
  pipeline,
  among: 'retrieved',
  targets: [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98],
});
const abstention = calibrateAbstention(lists, { pipeline });

const file = fileURLToPath(new URL('../lib/truncate/packaged-calibration.ts', import.meta.url));
const short = (_, value) => (typeof value === 'number' ? Number(value.toPrecision(7)) : value);
writeFileSync(
  file,
  `// Made by scripts/calibrate-cuts.mjs from ${lists.length} held-out queries; make it anew when the default encoder or hybrid scores change.
import type { AbstentionCalibration, CutCalibration } from './calibration.js';

/**
 * The calibrated cut of the default encoder with hybrid retrieval. Other catalogues are not exchangeable with the two it was
 * made from, so its targets are a starting point there and no guarantee (docs/cuts.md says how far off).
 */
export const packagedCut: CutCalibration = ${JSON.stringify(cut, short)};

/** The threshold of abstaining for the default encoder with hybrid retrieval; the same holds for it. */
export const packagedAbstention: AbstentionCalibration = ${JSON.stringify(abstention, short)};
`,
);
execFileSync('npx', ['biome', 'check', '--write', file], { stdio: 'inherit' });
