// Bad arguments, function by function: the code, a message that names the argument, and nothing changed.
import { describe, expect, test } from 'vitest';

import { addon, type Filled, failure, fill, loose, model, openTokenizer } from './addon.js';

const dimension = 4;
const filled: Filled = fill(3, dimension);
const { index, snapshot } = filled;
const bandit = addon.banditCreate({ dimension });
const vector = new Float32Array([1, 2, 3, 4]);
const nan = new Float32Array([1, Number.NaN, 3, 4]);
const zero = new Float32Array(dimension);
const one = new Float32Array([0.5]);
const time = new Float64Array([0]);
const shared = new Float32Array(new SharedArrayBuffer(16));
const detached = new Float32Array(4);
structuredClone(detached, { transfer: [detached.buffer] });
const tokenizer = openTokenizer();
const tokenizerOptions = {
  vocabPath: `${model.folder}/vocab.txt`,
  lowercase: true,
  stripAccents: true,
  chineseCharacters: true,
};
const encoderOptions = {
  runtimePath: 'nowhere/libonnxruntime.so',
  modelPath: 'nowhere/model.onnx',
  tokenizer,
  outputName: 'out',
  dimension: 384,
  pooling: 'mean',
};
const small = addon.banditCreate({ dimension: 3 });

type Case = [what: string, code: string, says: RegExp, call: () => unknown];

const cases: Case[] = [
  [
    'indexCreate of 0',
    'FINCH_INVALID_ARGUMENT',
    /dimension.*whole number from 1/,
    () => addon.indexCreate(0),
  ],
  ['indexCreate of 1.5', 'FINCH_INVALID_ARGUMENT', /the number 1\.5/, () => addon.indexCreate(1.5)],
  ['indexCreate of -1', 'FINCH_INVALID_ARGUMENT', /the number -1/, () => addon.indexCreate(-1)],
  ['indexCreate of NaN', 'FINCH_INVALID_ARGUMENT', /NaN/, () => addon.indexCreate(Number.NaN)],
  ['indexCreate too large', 'FINCH_INVALID_ARGUMENT', /65536/, () => addon.indexCreate(65537)],
  [
    'indexCreate of a string',
    'FINCH_INVALID_ARGUMENT',
    /the string '4'/,
    () => loose.indexCreate('4'),
  ],
  ['indexCreate of nothing', 'FINCH_INVALID_ARGUMENT', /undefined/, () => loose.indexCreate()],

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

  [
    'upsert of a string for ids',
    'FINCH_INVALID_ARGUMENT',
    /ids.*an array of strings/,
    () => loose.indexUpsertSync(index, 'a', vector),
  ],
  [
    'upsert of a number among ids',
    'FINCH_INVALID_ARGUMENT',
    /ids\[1\].*the number 2/,
    () => loose.indexUpsertSync(index, ['a', 2], new Float32Array(8)),
  ],
  [
    'upsert of an empty id',
    'FINCH_INVALID_ARGUMENT',
    /id/,
    () => addon.indexUpsertSync(index, [''], vector),
  ],
  [
    'upsert of an id too long',
    'FINCH_INVALID_ARGUMENT',
    /4096/,
    () => addon.indexUpsertSync(index, ['x'.repeat(4097)], vector),
  ],
  [
    'upsert of a lone high surrogate',
    'FINCH_INVALID_ARGUMENT',
    /ids\[0\].*lone surrogate/,
    () => addon.indexUpsertSync(index, ['a\ud800'], vector),
  ],
  [
    'upsert of a lone low surrogate',
    'FINCH_INVALID_ARGUMENT',
    /lone surrogate/,
    () => addon.indexUpsertSync(index, ['\udc00a'], vector),
  ],
  [
    'upsert of swapped surrogates',
    'FINCH_INVALID_ARGUMENT',
    /lone surrogate/,
    () => addon.indexUpsertSync(index, ['\udc00\ud800'], vector),
  ],
  [
    'upsert of one id twice',
    'FINCH_DUPLICATE_ID',
    /twice|more than once|duplicate|again/i,
    () => addon.indexUpsertSync(index, ['n', 'n'], new Float32Array(8).fill(1)),
  ],
  [
    'upsert of a vector too short',
    'FINCH_DIMENSION',
    /vectors.*1 x 4 = 4.*holds 3/,
    () => addon.indexUpsertSync(index, ['n'], new Float32Array(3)),
  ],
  [
    'upsert of too many vectors',
    'FINCH_DIMENSION',
    /holds 8/,
    () => addon.indexUpsertSync(index, ['n'], new Float32Array(8)),
  ],
  ['upsert of NaN', 'FINCH_NOT_FINITE', /./, () => addon.indexUpsertSync(index, ['n'], nan)],
  [
    'upsert of infinity',
    'FINCH_NOT_FINITE',
    /./,
    () =>
      addon.indexUpsertSync(index, ['n'], new Float32Array([1, 2, 3, Number.POSITIVE_INFINITY])),
  ],
  [
    'upsert of the zero vector',
    'FINCH_ZERO_VECTOR',
    /./,
    () => addon.indexUpsertSync(index, ['n'], zero),
  ],
  [
    'upsert of a Float64Array',
    'FINCH_INVALID_ARGUMENT',
    /a Float32Array.*a Float64Array/,
    () => loose.indexUpsertSync(index, ['n'], new Float64Array(4)),
  ],
  [
    'upsert of an array of numbers',
    'FINCH_INVALID_ARGUMENT',
    /a Float32Array.*an array/,
    () => loose.indexUpsertSync(index, ['n'], [1, 2, 3, 4]),
  ],
  [
    'upsert of an ArrayBuffer',
    'FINCH_INVALID_ARGUMENT',
    /an ArrayBuffer/,
    () => loose.indexUpsertSync(index, ['n'], vector.buffer),
  ],
  [
    'upsert of a DataView',
    'FINCH_INVALID_ARGUMENT',
    /a DataView/,
    () => loose.indexUpsertSync(index, ['n'], new DataView(vector.buffer)),
  ],
  [
    'upsert of shared memory',
    'FINCH_INVALID_ARGUMENT',
    /SharedArrayBuffer/,
    () => addon.indexUpsertSync(index, ['n'], shared),
  ],
  [
    'upsert of detached memory',
    'FINCH_INVALID_ARGUMENT',
    /detached/,
    () => addon.indexUpsertSync(index, ['n'], detached),
  ],
  [
    'upsert with a prior of 2',
    'FINCH_INVALID_ARGUMENT',
    /prior/,
    () => addon.indexUpsertSync(index, ['n'], vector, new Float32Array([2])),
  ],
  [
    'upsert with a prior of NaN',
    'FINCH_INVALID_ARGUMENT|FINCH_NOT_FINITE',
    /prior/,
    () => addon.indexUpsertSync(index, ['n'], vector, new Float32Array([Number.NaN])),
  ],
  [
    'upsert with too many priors',
    'FINCH_INVALID_ARGUMENT',
    /priors to hold 1.*holds 2/,
    () => addon.indexUpsertSync(index, ['n'], vector, new Float32Array(2)),
  ],
  ['async upsert of NaN', 'FINCH_NOT_FINITE', /./, () => addon.indexUpsert(index, ['n'], nan)],
  [
    'async upsert of a wrong length',
    'FINCH_DIMENSION',
    /./,
    () => addon.indexUpsert(index, ['n'], new Float32Array(5)),
  ],
  [
    'setPriors of an unknown id',
    'FINCH_UNKNOWN_ID',
    /nobody/,
    () => addon.indexSetPriors(index, ['nobody'], one),
  ],
  [
    'setPriors of too few',
    'FINCH_INVALID_ARGUMENT',
    /priors/,
    () => addon.indexSetPriors(index, ['tool 0'], new Float32Array(0)),
  ],
  [
    'remove of an unknown id',
    'FINCH_UNKNOWN_ID',
    /nobody/,
    () => addon.indexRemove(index, ['tool 0', 'nobody']),
  ],
  [
    'remove of one id twice',
    'FINCH_DUPLICATE_ID',
    /./,
    () => addon.indexRemove(index, ['tool 0', 'tool 0']),
  ],
  [
    'buildAnn with connectivity 0',
    'FINCH_INVALID_ARGUMENT',
    /options\.connectivity/,
    () => addon.indexBuildAnn(index, { connectivity: 0 }),
  ],
  [
    'buildAnn with a number',
    'FINCH_INVALID_ARGUMENT',
    /options.*an object/,
    () => loose.indexBuildAnn(index, 3),
  ],
  ['save to an empty path', 'FINCH_INVALID_ARGUMENT', /path/, () => addon.indexSave(index, '', [])],
  [
    'save to a path with NUL',
    'FINCH_INVALID_ARGUMENT',
    /U\+0000/,
    () => addon.indexSave(index, 'a\0b', []),
  ],
  [
    'save into no folder',
    'FINCH_IO',
    /nowhere/,
    () => addon.indexSave(index, 'nowhere/at/all.finch', []),
  ],
  [
    'save with blobs of another shape',
    'FINCH_INVALID_ARGUMENT',
    /blobs\[0\]\.data/,
    () => loose.indexSave(index, 'x', [{ name: 'n', data: 'text' }]),
  ],
  ['save with no blobs', 'FINCH_INVALID_ARGUMENT', /blobs/, () => loose.indexSave(index, 'x')],
  ['open of no file', 'FINCH_IO', /nowhere/, () => addon.indexOpen('nowhere.finch')],
  ['open of another file', 'FINCH_CORRUPT', /./, () => addon.indexOpen('package.json')],
  ['open of a number', 'FINCH_INVALID_ARGUMENT', /path/, () => loose.indexOpen(3)],

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

  ['tokenizerOpen of nothing', 'FINCH_INVALID_ARGUMENT', /options/, () => loose.tokenizerOpen()],
  [
    'tokenizerOpen of no file',
    'FINCH_IO',
    /nowhere/,
    () => addon.tokenizerOpen({ ...tokenizerOptions, vocabPath: 'nowhere.txt' }),
  ],
  [
    'tokenizerOpen without lowercase',
    'FINCH_INVALID_ARGUMENT',
    /options\.lowercase/,
    () => loose.tokenizerOpen({ vocabPath: 'x' }),
  ],
  [
    'tokenizerOpen with an empty token',
    'FINCH_INVALID_ARGUMENT',
    /options\.pad/,
    () => addon.tokenizerOpen({ ...tokenizerOptions, pad: '' }),
  ],
  [
    'tokenizerOpen with a missing token',
    'FINCH_CORRUPT',
    /./,
    () => addon.tokenizerOpen({ ...tokenizerOptions, pad: '[NO SUCH TOKEN]' }),
  ],
  [
    'tokenize of a number',
    'FINCH_INVALID_ARGUMENT',
    /text/,
    () => loose.tokenize(tokenizer, 3, 16),
  ],
  [
    'tokenize to 2 tokens',
    'FINCH_INVALID_ARGUMENT',
    /maxTokens.*from 3/,
    () => addon.tokenize(tokenizer, 'text', 2),
  ],
  ['encoderOpen of nothing', 'FINCH_INVALID_ARGUMENT', /options/, () => loose.encoderOpen()],
  [
    'encoderOpen without a runtime',
    'FINCH_IO|FINCH_DEVICE',
    /./,
    () => loose.encoderOpen(encoderOptions),
  ],
  [
    'encoderOpen with an index for a tokenizer',
    'FINCH_INVALID_ARGUMENT',
    /options\.tokenizer/,
    () => loose.encoderOpen({ ...encoderOptions, tokenizer: index }),
  ],
  [
    'encoderOpen with unknown pooling',
    'FINCH_INVALID_ARGUMENT',
    /options\.pooling/,
    () => loose.encoderOpen({ ...encoderOptions, pooling: 'max' }),
  ],
  [
    'encoderOpen without pooling',
    'FINCH_INVALID_ARGUMENT',
    /options\.pooling/,
    () => loose.encoderOpen({ ...encoderOptions, pooling: undefined }),
  ],
  [
    'encode with an index',
    'FINCH_INVALID_ARGUMENT',
    /encoder/,
    () => loose.encode(index, ['text']),
  ],
];

describe('bad arguments', () => {
  test.each(cases)('%s', async (_what, code, says, call) => {
    const before = [addon.indexInspect(index), addon.banditSerialize(bandit)];
    const error = await failure(call);
    expect(error.code).toMatch(new RegExp(`^(${code})$`));
    expect(error.message).toMatch(says);
    expect([addon.indexInspect(index), addon.banditSerialize(bandit)]).toEqual(before);
  });

  test('functions that return a promise reject and never throw', async () => {
    const calls = [
      'indexOpen',
      'indexUpsert',
      'indexSetPriors',
      'indexRemove',
      'indexBuildAnn',
      'indexSave',
      'search',
      'select',
      'encoderOpen',
      'encode',
    ] as const;
    for (const name of calls) {
      const promise = loose[name]();
      expect(promise).toBeInstanceOf(Promise);
      expect((await failure(() => promise)).code).toBe('FINCH_INVALID_ARGUMENT');
    }
  });

  test('every function refuses having no arguments at all', async () => {
    const none = new Set(['abiVersion', 'version', 'isa', 'poolThreads', 'cancelCreate']);
    for (const [name, call] of Object.entries(loose)) {
      // It takes none either, but ends encoding in this process: test/native/exit.test.ts runs it.
      if (name === 'shutdown') continue;
      if (none.has(name)) expect(call()).toBeDefined();
      else expect((await failure(() => call())).code).toBe('FINCH_INVALID_ARGUMENT');
    }
  });

  test('an exception in a getter passes through unchanged', async () => {
    const thrown = new RangeError('from the getter');
    const options = {
      get k(): number {
        throw thrown;
      },
    };
    expect(() => addon.searchSync(snapshot, vector, options)).toThrow(thrown);
    await expect(addon.search(snapshot, vector, options)).rejects.toBe(thrown);
  });

  test('a getter that closes the handle or detaches the vectors meanwhile does no harm', async () => {
    const own = fill(8, dimension);
    const query = new Float32Array([1, 1, 1, 1]);
    const options = {
      get k(): number {
        addon.snapshotClose(own.snapshot);
        structuredClone(query, { transfer: [query.buffer] });
        return 2;
      },
    };
    const error = await failure(() => addon.searchSync(own.snapshot, query, options));
    expect(error.message).toMatch(/detached/);
    const again = {
      get k(): number {
        addon.snapshotClose(other);
        return 2;
      },
    };
    const other = addon.indexSnapshot(own.index);
    expect(addon.searchSync(other, vector, again).counts[0]).toBe(2);
    expect((await failure(() => addon.snapshotCount(other))).code).toBe('FINCH_CLOSED');
  });

  test('errors carry the stack of their caller, also from promises', async () => {
    async function unmistakableCaller(): Promise<void> {
      await addon.indexRemove(index, ['nobody']);
    }
    const error = await failure(unmistakableCaller);
    expect(error.stack).toMatch(/^FinchError: .*nobody/);
    expect(error.stack).toMatch(/unmistakableCaller/);
  });
});
