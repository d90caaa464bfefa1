// Bad arguments of the tokenizer and the encoder.
import { addon, loose, model, openTokenizer } from '../addon.js';
import { index, refuses } from './fixture.js';

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

refuses('encode', [
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
]);
