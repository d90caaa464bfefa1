// Bad arguments of searching and of cosine.
import { addon, loose } from '../addon.js';
import { detached, index, nan, refuses, shared, snapshot, vector, zero } from './fixture.js';

refuses('search', [
  [
    'search with k 0',
    'FINCH_INVALID_ARGUMENT',
    /options\.k.*from 1 to 65536/,
    () => addon.searchSync(snapshot, vector, { k: 0 }),
  ],
  [
    'search with k too large',
    'FINCH_INVALID_ARGUMENT',
    /65536/,
    () => addon.searchSync(snapshot, vector, { k: 65537 }),
  ],
  [
    'search without options',
    'FINCH_INVALID_ARGUMENT',
    /options.*undefined/,
    () => loose.searchSync(snapshot, vector),
  ],
  [
    'search in an unknown mode',
    'FINCH_INVALID_ARGUMENT',
    /'auto', 'exact', 'ann'.*'fast'/,
    () => loose.searchSync(snapshot, vector, { k: 1, mode: 'fast' }),
  ],
  [
    'search by ann without a graph',
    'FINCH_INVALID_ARGUMENT',
    /./,
    () => addon.searchSync(snapshot, vector, { k: 1, mode: 'ann' }),
  ],
  [
    'search with a wrong dimension',
    'FINCH_DIMENSION',
    /multiple of the dimension 4.*is 6/,
    () => addon.searchSync(snapshot, new Float32Array(6), { k: 1 }),
  ],
  ['search with NaN', 'FINCH_NOT_FINITE', /./, () => addon.searchSync(snapshot, nan, { k: 1 })],
  ['search with zero', 'FINCH_ZERO_VECTOR', /./, () => addon.searchSync(snapshot, zero, { k: 1 })],
  [
    'search with shared memory',
    'FINCH_INVALID_ARGUMENT',
    /SharedArrayBuffer/,
    () => addon.searchSync(snapshot, shared, { k: 1 }),
  ],
  [
    'search with detached memory',
    'FINCH_INVALID_ARGUMENT',
    /detached/,
    () => addon.search(snapshot, detached, { k: 1 }),
  ],
  [
    'search of far too many results',
    'FINCH_INVALID_ARGUMENT',
    /2\^27/,
    () => addon.search(snapshot, new Float32Array(4 * 4096).fill(1), { k: 65536 }),
  ],
  [
    'search with an index for allow',
    'FINCH_INVALID_ARGUMENT',
    /options\.allow.*an index handle/,
    () => loose.searchSync(snapshot, vector, { k: 1, allow: index }),
  ],
  [
    'async search with k 0',
    'FINCH_INVALID_ARGUMENT',
    /./,
    () => addon.search(snapshot, vector, { k: 0 }),
  ],
  [
    'cosine of dimension 0',
    'FINCH_INVALID_ARGUMENT',
    /dimension/,
    () => addon.cosine(vector, vector, 0),
  ],
  ['cosine of a broken row', 'FINCH_DIMENSION', /multiple/, () => addon.cosine(vector, vector, 3)],
  [
    'cosine of unequal counts',
    'FINCH_DIMENSION',
    /b to hold/,
    () => addon.cosine(vector, new Float32Array(8), 4),
  ],
  ['cosine with zero', 'FINCH_ZERO_VECTOR', /./, () => addon.cosine(vector, zero, 4)],
]);
