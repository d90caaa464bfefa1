// Bad arguments of the dynamic cut.
import { addon, loose } from '../addon.js';
import { one, refuses, vector } from './fixture.js';

refuses('truncate', [
  [
    'truncate of rising scores',
    'FINCH_INVALID_ARGUMENT',
    /./,
    () => addon.truncate(new Float32Array([1, 2]), null, { signals: ['score'] }),
  ],
  [
    'truncate of NaN',
    'FINCH_NOT_FINITE',
    /./,
    () => addon.truncate(new Float32Array([Number.NaN, 0]), null, { signals: ['score'] }),
  ],
  [
    'truncate without embeddings',
    'FINCH_INVALID_ARGUMENT',
    /embeddings.*signals: \['score'\]/,
    () => addon.truncate(new Float32Array([1, 0]), null),
  ],
  [
    'truncate of broken embeddings',
    'FINCH_DIMENSION',
    /embeddings/,
    () => addon.truncate(new Float32Array([1, 0]), new Float32Array(3)),
  ],
  [
    'truncate of no embeddings',
    'FINCH_DIMENSION',
    /embeddings/,
    () => addon.truncate(new Float32Array([1, 0]), new Float32Array(0)),
  ],
  [
    'truncate of embeddings for nothing',
    'FINCH_DIMENSION',
    /embeddings/,
    () => addon.truncate(new Float32Array(0), vector),
  ],
  [
    'truncate of a zero embedding',
    'FINCH_ZERO_VECTOR',
    /./,
    () => addon.truncate(new Float32Array([3, 2, 1]), new Float32Array([1, 1, 0, 0, 1, 1])),
  ],
  [
    'truncate with maxK below minK',
    'FINCH_INVALID_ARGUMENT',
    /./,
    () => addon.truncate(one, vector, { minK: 3, maxK: 2 }),
  ],
  [
    'truncate with no signals',
    'FINCH_INVALID_ARGUMENT',
    /options\.signals/,
    () => addon.truncate(one, vector, { signals: [] }),
  ],
  [
    'truncate with an unknown signal',
    'FINCH_INVALID_ARGUMENT',
    /'gap'/,
    () => loose.truncate(one, vector, { signals: ['gap'] }),
  ],
  [
    'truncate at an unknown boundary',
    'FINCH_INVALID_ARGUMENT',
    /options\.boundary/,
    () => loose.truncate(one, vector, { boundary: 'middle' }),
  ],
  [
    'truncateBatch without offsets',
    'FINCH_INVALID_ARGUMENT',
    /offsets/,
    () => addon.truncateBatch(one, vector, new Float64Array(0)),
  ],
  [
    'truncateBatch beyond the end',
    'FINCH_INVALID_ARGUMENT',
    /offsets/,
    () => addon.truncateBatch(one, vector, new Float64Array([0, 2])),
  ],
  [
    'truncateBatch backwards',
    'FINCH_INVALID_ARGUMENT',
    /ascend.*offsets\[2\]/,
    () => addon.truncateBatch(one, vector, new Float64Array([0, 1, 0, 1])),
  ],
]);
