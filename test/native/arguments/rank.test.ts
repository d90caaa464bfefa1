// Bad arguments of fusing, ranking and the fused select.
import { addon, loose } from '../addon.js';
import { bandit, nan, one, refuses, small, snapshot, vector } from './fixture.js';

refuses('rank', [
  [
    'fuse of unequal lengths',
    'FINCH_INVALID_ARGUMENT',
    /prior to hold 4/,
    () => addon.fuse(vector, null, one, null),
  ],
  ['fuse of NaN', 'FINCH_NOT_FINITE', /./, () => addon.fuse(nan, null, null, null)],
  [
    'fuse of weights that sum to 2',
    'FINCH_INVALID_ARGUMENT',
    /./,
    () => addon.fuse(vector, null, null, null, { semantic: 1, bandit: 0.5, prior: 0.5 }),
  ],
  [
    'fuse of weights all 0',
    'FINCH_INVALID_ARGUMENT',
    /all are 0/,
    () => addon.fuse(vector, null, null, null, { semantic: 0, bandit: 0, prior: 0 }),
  ],
  [
    'fuse without a weight',
    'FINCH_INVALID_ARGUMENT',
    /weights\.prior/,
    () => loose.fuse(vector, null, null, null, { semantic: 1, bandit: 0 }),
  ],
  [
    'rank of one key twice',
    'FINCH_INVALID_ARGUMENT|FINCH_DUPLICATE_ID',
    /./,
    () =>
      addon.rank(snapshot, null, new Float64Array([1, 1]), new Float32Array(2), vector, { now: 0 }),
  ],
  [
    'rank of an unknown key',
    'FINCH_UNKNOWN_ID',
    /./,
    () => addon.rank(snapshot, null, new Float64Array([77]), one, vector, { now: 0 }),
  ],
  [
    'rank of too few scores',
    'FINCH_INVALID_ARGUMENT',
    /semantic/,
    () => addon.rank(snapshot, null, new Float64Array([1, 2]), one, vector, { now: 0 }),
  ],
  [
    'rank without a time',
    'FINCH_INVALID_ARGUMENT',
    /options\.now/,
    () => loose.rank(snapshot, null, new Float64Array([1]), one, vector, {}),
  ],
  [
    'rank with a bandit of another dimension',
    'FINCH_DIMENSION',
    /dimension 4.*has 3/,
    () => addon.rank(snapshot, small, new Float64Array([1]), one, vector, { now: 0 }),
  ],
  [
    'select of two queries',
    'FINCH_DIMENSION',
    /query/,
    () => addon.selectSync(snapshot, bandit, new Float32Array(8), { k: 1 }, { now: 0 }),
  ],
  [
    'select with a bad cut',
    'FINCH_INVALID_ARGUMENT',
    /rank\.cut\.minK/,
    () => addon.select(snapshot, null, vector, { k: 1 }, { now: 0, cut: { minK: -1 } }),
  ],
  [
    'select with bad weights',
    'FINCH_INVALID_ARGUMENT',
    /rank\.weights\.clamp/,
    () =>
      loose.select(
        snapshot,
        null,
        vector,
        { k: 1 },
        { now: 0, weights: { semantic: 1, bandit: 0, prior: 0, clamp: 'yes' } },
      ),
  ],
]);
