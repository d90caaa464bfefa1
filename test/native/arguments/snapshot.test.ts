// Bad arguments of reading rows and naming allowed tools.
import { addon, loose } from '../addon.js';
import { refuses, snapshot } from './fixture.js';

refuses('snapshot', [
  [
    'rows of an unknown key',
    'FINCH_UNKNOWN_ID',
    /./,
    () => addon.snapshotIds(snapshot, new Float64Array([99])),
  ],
  [
    'rows of key 0',
    'FINCH_UNKNOWN_ID',
    /./,
    () => addon.snapshotPriors(snapshot, new Float64Array([0])),
  ],
  [
    'rows of key 1.5',
    'FINCH_INVALID_ARGUMENT',
    /keys\[0\].*1\.5/,
    () => addon.snapshotVectors(snapshot, new Float64Array([1.5])),
  ],
  [
    'rows of a negative key',
    'FINCH_INVALID_ARGUMENT',
    /keys\[1\]/,
    () => addon.snapshotVectors(snapshot, new Float64Array([1, -1])),
  ],
  [
    'rows of key 2^53',
    'FINCH_INVALID_ARGUMENT',
    /2\^53/,
    () => addon.snapshotVectors(snapshot, new Float64Array([2 ** 53])),
  ],
  [
    'rows of keys in a Float32Array',
    'FINCH_INVALID_ARGUMENT',
    /a Float64Array/,
    () => loose.snapshotVectors(snapshot, new Float32Array([1])),
  ],
  [
    'find of null',
    'FINCH_INVALID_ARGUMENT',
    /ids\[0\].*null/,
    () => loose.snapshotFind(snapshot, [null]),
  ],
  [
    'allow of a hole',
    'FINCH_INVALID_ARGUMENT',
    /ids\[0\].*undefined/,
    () => loose.allowCreate(snapshot, new Array(1)),
  ],
]);
