// Handles of the wrong kind.
import { loose } from '../addon.js';
import { bandit, index, refuses, snapshot } from './fixture.js';

refuses('handles', [
  [
    'a handle that is none',
    'FINCH_INVALID_ARGUMENT',
    /index.*an object/,
    () => loose.indexInspect({}),
  ],
  ['a handle of null', 'FINCH_INVALID_ARGUMENT', /null/, () => loose.indexInspect(null)],
  [
    'a handle of another kind',
    'FINCH_INVALID_ARGUMENT',
    /an index handle.*a snapshot handle/,
    () => loose.indexInspect(snapshot),
  ],
  [
    'close of another kind',
    'FINCH_INVALID_ARGUMENT',
    /a snapshot handle.*an index handle/,
    () => loose.snapshotClose(index),
  ],
  [
    'bandit for cancel',
    'FINCH_INVALID_ARGUMENT',
    /a cancel handle.*a bandit handle/,
    () => loose.cancelSignal(bandit),
  ],
]);
