// Bad arguments of the bandit.
import { addon, loose } from '../addon.js';
import { bandit, dimension, nan, one, refuses, small, time, vector, zero } from './fixture.js';

refuses('bandit', [
  ['banditCreate of nothing', 'FINCH_INVALID_ARGUMENT', /options/, () => loose.banditCreate()],
  [
    'banditCreate of dimension 0',
    'FINCH_INVALID_ARGUMENT',
    /options\.dimension/,
    () => addon.banditCreate({ dimension: 0 }),
  ],
  [
    'banditCreate of lambda 0',
    'FINCH_INVALID_ARGUMENT',
    /options\.lambda.*greater than 0/,
    () => addon.banditCreate({ dimension, lambda: 0 }),
  ],
  [
    'banditCreate of gamma 1.5',
    'FINCH_INVALID_ARGUMENT',
    /gamma/,
    () => addon.banditCreate({ dimension, gamma: 1.5 }),
  ],
  [
    'banditCreate of alpha -1',
    'FINCH_INVALID_ARGUMENT',
    /options\.alpha/,
    () => addon.banditCreate({ dimension, alpha: -1 }),
  ],
  [
    'banditCreate of alpha NaN',
    'FINCH_NOT_FINITE',
    /options\.alpha/,
    () => addon.banditCreate({ dimension, alpha: Number.NaN }),
  ],
  [
    'banditCreate of lambda 1e300',
    'FINCH_INVALID_ARGUMENT',
    /32-bit float/,
    () => addon.banditCreate({ dimension, lambda: 1e300 }),
  ],
  [
    'banditCreate of an unknown form',
    'FINCH_INVALID_ARGUMENT',
    /'calibrated', 'literal', 'mean'/,
    () => loose.banditCreate({ dimension, form: 'ucb' }),
  ],
  [
    'banditScore of too few priors',
    'FINCH_INVALID_ARGUMENT',
    /priors/,
    () => addon.banditScore(bandit, ['a', 'b'], one, vector, 0, false),
  ],
  [
    'banditScore of a short context',
    'FINCH_DIMENSION',
    /x to hold/,
    () => addon.banditScore(bandit, ['a'], one, new Float32Array(3), 0, false),
  ],
  [
    'banditScore at time NaN',
    'FINCH_NOT_FINITE',
    /now/,
    () => addon.banditScore(bandit, ['a'], one, vector, Number.NaN, false),
  ],
  [
    'banditScore with explore 1',
    'FINCH_INVALID_ARGUMENT',
    /explore.*true or false/,
    () => loose.banditScore(bandit, ['a'], one, vector, 0, 1),
  ],
  [
    'banditScore of a zero context',
    'FINCH_ZERO_VECTOR',
    /./,
    () => addon.banditScore(bandit, ['a'], one, zero, 0, false),
  ],
  [
    'banditUpdate of reward 2',
    'FINCH_INVALID_ARGUMENT',
    /./,
    () => addon.banditUpdate(bandit, ['a'], vector, one, new Float32Array([2]), time),
  ],
  [
    'banditUpdate of a NaN context',
    'FINCH_NOT_FINITE',
    /./,
    () => addon.banditUpdate(bandit, ['a'], nan, one, one, time),
  ],
  [
    'banditUpdate of too few contexts',
    'FINCH_DIMENSION',
    /xs/,
    () => addon.banditUpdate(bandit, ['a', 'b'], vector, one, one, time),
  ],
  [
    'banditUpdate of too few times',
    'FINCH_INVALID_ARGUMENT',
    /times/,
    () => addon.banditUpdate(bandit, ['a'], vector, one, one, new Float64Array(0)),
  ],
  [
    'banditUpdate of float32 times',
    'FINCH_INVALID_ARGUMENT',
    /times.*a Float64Array/,
    () => loose.banditUpdate(bandit, ['a'], vector, one, one, one),
  ],
  [
    'banditDeserialize of noise',
    'FINCH_CORRUPT|FINCH_VERSION',
    /./,
    () => addon.banditDeserialize(bandit, new Uint8Array(64).fill(7)),
  ],
  [
    'banditDeserialize of nothing',
    'FINCH_CORRUPT',
    /./,
    () => addon.banditDeserialize(bandit, new Uint8Array(0)),
  ],
  [
    'banditDeserialize of another bandit',
    'FINCH_DIMENSION',
    /./,
    () => addon.banditDeserialize(bandit, addon.banditSerialize(small)),
  ],
]);
