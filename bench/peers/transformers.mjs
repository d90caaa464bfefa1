// transformers.js, as a reranker.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * transformers.js on the same file, as its users rerank: the tokenizer of the model's base, all pairs padded into one run. It
 * wants files of its own layout, which are made in a folder of its own beside the ONNX file's copy.
 */
export async function transformersReranker(peers, model, tokens, threads) {
  const require = createRequire(path.join(path.resolve(peers), 'package.json'));
  const {
    AutoModelForSequenceClassification,
    AutoTokenizer,
    env,
  } = require('@huggingface/transformers');
  const scratch = mkdtempSync(path.join(tmpdir(), 'finch-transformers-'));
  process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
  const { manifest } = model;
  const words = readFileSync(model.file(manifest.tokenizer.vocab), 'utf8').trimEnd().split('\n');
  const vocab = Object.fromEntries(words.map((word, id) => [word, id]));
  const special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'].filter((word) => word in vocab);
  const files = {
    'config.json': {
      model_type: 'bert',
      architectures: ['BertForSequenceClassification'],
      num_labels: 1,
    },
    'tokenizer_config.json': { tokenizer_class: 'BertTokenizer', model_max_length: tokens },
    'tokenizer.json': {
      version: '1.0',
      added_tokens: special.map((content) => ({
        id: vocab[content],
        content,
        special: true,
        normalized: false,
      })),
      normalizer: {
        type: 'BertNormalizer',
        clean_text: true,
        handle_chinese_chars: true,
        strip_accents: null,
        lowercase: true,
      },
      pre_tokenizer: { type: 'BertPreTokenizer' },
      post_processor: {
        type: 'TemplateProcessing',
        single: [token('[CLS]', 0), sequence('A', 0), token('[SEP]', 0)],
        pair: [
          token('[CLS]', 0),
          sequence('A', 0),
          token('[SEP]', 0),
          sequence('B', 1),
          token('[SEP]', 1),
        ],
        special_tokens: Object.fromEntries(
          ['[CLS]', '[SEP]'].map((id) => [id, { id, ids: [vocab[id]], tokens: [id] }]),
        ),
      },
      decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
      model: {
        type: 'WordPiece',
        unk_token: '[UNK]',
        continuing_subword_prefix: '##',
        max_input_chars_per_word: 100,
        vocab,
      },
    },
  };
  const home = path.join(scratch, 'reranker');
  mkdirSync(path.join(home, 'onnx'), { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(path.join(home, name), JSON.stringify(content));
  }
  copyFileSync(model.file(manifest.model.file), path.join(home, 'onnx/model.onnx'));
  env.allowRemoteModels = false;
  env.localModelPath = scratch;
  const tokenizer = await AutoTokenizer.from_pretrained('reranker');
  const net = await AutoModelForSequenceClassification.from_pretrained('reranker', {
    dtype: 'fp32',
    session_options: {
      executionProviders: ['cpu'],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      graphOptimizationLevel: 'all',
    },
  });
  return async (query, documents) => {
    const inputs = tokenizer(new Array(documents.length).fill(query), {
      text_pair: documents,
      padding: true,
      truncation: true,
      max_length: tokens,
    });
    return (await net(inputs)).logits.data;
  };
}

function token(id, type_id) {
  return { SpecialToken: { id, type_id } };
}

function sequence(id, type_id) {
  return { Sequence: { id, type_id } };
}
