import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readModelFolder } from '../../lib/encode/model-folder.js';
import { OnnxEncoder } from '../../lib/encode/onnx-encoder.js';
import { findRuntime } from '../../lib/encode/runtime.js';
import { expectCode } from './expect-code.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'finch-model-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Tree = { [name: string]: unknown };

function put(name: string, text: string): { sha256: string; bytes: number } {
  writeFileSync(path.join(folder, name), text);
  return {
    sha256: createHash('sha256').update(text).digest('hex'),
    bytes: Buffer.byteLength(text),
  };
}

function goodManifest(): Tree {
  return {
    format: 1,
    name: 'tiny',
    revision: 'abc',
    task: 'encoder',
    dimension: 8,
    maxTokens: 16,
    pooling: 'mean',
    normalize: true,
    tokenizer: {
      type: 'wordpiece',
      vocab: 'vocab.txt',
      lowercase: true,
      stripAccents: true,
      chineseCharacters: true,
      unknown: '[UNK]',
      start: '[CLS]',
      end: '[SEP]',
      pad: '[PAD]',
      maxWordCharacters: 100,
      continuationPrefix: '##',
    },
    model: { file: 'model.onnx', inputs: ['input_ids'], output: 'out', batchInvariant: true },
    files: { 'model.onnx': put('model.onnx', 'weights'), 'vocab.txt': put('vocab.txt', '[PAD]\n') },
    license: 'Apache-2.0',
  };
}

function putManifest(manifest: unknown): void {
  writeFileSync(path.join(folder, 'manifest.json'), JSON.stringify(manifest));
}

/** The manifest with the field at a dotted path set, or removed when `value` is undefined. */
function changed(dotted: string, value: unknown): Tree {
  const manifest = goodManifest();
  const parts = dotted.split('.');
  const last = parts.pop() ?? '';
  let at = manifest;
  for (const part of parts) at = at[part] as Tree;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return manifest;
}

describe('a model folder', () => {
  it('that is whole gives its manifest and absolute paths', async () => {
    putManifest({ ...goodManifest(), queryPrefix: 'q: ', base: { anything: 1 } });
    const model = await readModelFolder(path.relative(process.cwd(), folder));
    expect(model.path).toBe(folder);
    expect(model.manifest).toMatchObject({ name: 'tiny', dimension: 8, queryPrefix: 'q: ' });
    expect(model.file('vocab.txt')).toBe(path.join(folder, 'vocab.txt'));
  });

  it.each([
    ['name', undefined],
    ['name', ''],
    ['revision', 7],
    ['task', 'reranker'],
    ['dimension', 0],
    ['dimension', 1.5],
    ['dimension', 65537],
    ['dimension', '384'],
    ['maxTokens', 2],
    ['pooling', 'max'],
    ['normalize', 'yes'],
    ['license', null],
    ['tokenizer', undefined],
    ['tokenizer.type', 'sentencepiece'],
    ['tokenizer.vocab', 'other.txt'],
    ['tokenizer.lowercase', undefined],
    ['tokenizer.pad', undefined],
    ['tokenizer.maxWordCharacters', -1],
    ['model.file', undefined],
    ['model.file', 'other.onnx'],
    ['model.inputs', []],
    ['model.inputs', [1]],
    ['model.output', undefined],
    ['model.batchInvariant', 1],
    ['files', []],
    ['queryPrefix', 5],
    ['relevanceFloor', 2],
  ])('with %s = %j is FINCH_CORRUPT, naming it', async (dotted, value) => {
    putManifest(changed(dotted, value));
    const error = await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
    expect(error.message).toContain(dotted);
  });

  it('tells all that is missing at once', async () => {
    const manifest = goodManifest() as { tokenizer: Tree; files: Tree } & Tree;
    delete manifest.name;
    delete manifest.tokenizer.start;
    manifest.files['card.md'] = { sha256: '0'.repeat(64), bytes: 3 };
    rmSync(path.join(folder, 'model.onnx'));
    putManifest(manifest);
    const error = await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
    for (const part of ['4 faults', 'name', 'tokenizer.start', 'model.onnx', 'card.md']) {
      expect(error.message).toContain(part);
    }
  });

  it('with files missing alone is FINCH_IO, naming each', async () => {
    putManifest(goodManifest());
    rmSync(path.join(folder, 'model.onnx'));
    rmSync(path.join(folder, 'vocab.txt'));
    const error = await expectCode(readModelFolder(folder), 'FINCH_IO');
    expect(error.message).toMatch(/2 faults.*model\.onnx.*vocab\.txt/);
  });

  it('with another size or content is FINCH_CORRUPT; content is left alone without verify', async () => {
    putManifest(goodManifest());
    writeFileSync(path.join(folder, 'model.onnx'), 'WEIGHTS');
    const content = await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
    expect(content.message).toContain('SHA-256');
    await readModelFolder(folder, { verify: false });
    writeFileSync(path.join(folder, 'model.onnx'), 'weights and more');
    const size = await expectCode(readModelFolder(folder, { verify: false }), 'FINCH_CORRUPT');
    expect(size.message).toContain('16 bytes, expected 7');
  });

  it('whose files lead out of it is refused before they are looked at', async () => {
    for (const name of [
      '../secret',
      '/etc/passwd',
      'a/../../b',
      'C:\\x',
      'a\\..\\..\\b',
      '.',
      '',
    ]) {
      const manifest = goodManifest() as { files: Tree } & Tree;
      manifest.files[name] = { sha256: '0'.repeat(64), bytes: 1 };
      putManifest(manifest);
      const error = await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
      expect(error.message).toContain('outside the folder');
      expect(error.message).not.toContain('ENOENT');
    }
  });

  it('without a manifest, or with one that is not JSON or of another format, says so', async () => {
    const none = await expectCode(readModelFolder(folder), 'FINCH_IO');
    expect(none.message).toContain('manifest.json');
    await expectCode(readModelFolder(path.join(folder, 'nowhere')), 'FINCH_IO');
    writeFileSync(path.join(folder, 'manifest.json'), '{"format": 1,');
    await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
    for (const value of [null, [], 'text', {}]) {
      putManifest(value);
      await expectCode(readModelFolder(folder), 'FINCH_CORRUPT');
    }
    putManifest({ format: 2 });
    const version = await expectCode(readModelFolder(folder), 'FINCH_VERSION');
    expect(version.message).toContain('format 2');
  });

  it.each(['', null, undefined, 5, ['a']])('%j is no folder', async (wrong) => {
    await expectCode(readModelFolder(wrong as never), 'FINCH_INVALID_ARGUMENT');
    await expectCode(OnnxEncoder.open(wrong as never), 'FINCH_INVALID_ARGUMENT');
  });

  it('is not read once its signal fired', async () => {
    putManifest(goodManifest());
    await expectCode(readModelFolder(folder, { signal: AbortSignal.abort() }), 'FINCH_ABORTED');
  });
});

describe('the runtime', () => {
  /** An onnxruntime-node with the given libraries, as npm would install it below `folder`. */
  function install(...libraries: string[]): void {
    const root = path.join(folder, 'node_modules/onnxruntime-node');
    mkdirSync(root, { recursive: true });
    writeFileSync(path.join(root, 'package.json'), '{"name": "onnxruntime-node"}');
    for (const library of libraries) {
      const file = path.join(root, 'bin', library);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, '');
    }
  }
  const where = (platform: string, arch: string) =>
    findRuntime({ from: [path.join(folder, 'src/deep'), folder], platform, arch, env: {} });

  it('is found in onnxruntime-node for each system, from any folder of the application', () => {
    const expected: Record<string, string> = {
      'linux/x64': 'napi-v6/linux/x64/libonnxruntime.so.1',
      'linux/arm64': 'napi-v6/linux/arm64/libonnxruntime.so.1',
      'darwin/arm64': 'napi-v6/darwin/arm64/libonnxruntime.1.dylib',
      'win32/x64': 'napi-v6/win32/x64/onnxruntime.dll',
    };
    install(...Object.values(expected), 'napi-v3/linux/x64/libonnxruntime.so.1');
    for (const [system, library] of Object.entries(expected)) {
      const [platform = '', arch = ''] = system.split('/');
      expect(where(platform, arch)).toMatch(new RegExp(`onnxruntime-node/bin/${library}$`));
    }
  });

  it('missing says what to install; missing for the system says what there is', async () => {
    const none = await expectCode(() => where('linux', 'x64'), 'FINCH_DEVICE');
    expect(none.message).toContain('npm install onnxruntime-node');
    expect(none.message).toContain('ONNXRUNTIME_NODE_INSTALL=skip');
    install('napi-v6/linux/x64/libonnxruntime.so.1');
    const other = await expectCode(() => where('freebsd', 'x64'), 'FINCH_DEVICE');
    expect(other.message).toContain('freebsd/x64');
    expect(other.message).toContain('linux/x64');
  });

  it('is found from the package, whatever the working directory', async () => {
    const found = findRuntime({ env: {} });
    const back = process.cwd();
    try {
      process.chdir('/');
      expect(findRuntime({ env: {} })).toBe(found);
      // A model outside the project.
      putManifest(goodManifest());
      const opened: string[] = [];
      const stop = new Error('far enough');
      const binding = {
        tokenizerOpen: () => ({}),
        encoderOpen: ({ runtimePath }: { runtimePath: string }) => {
          opened.push(runtimePath);
          return Promise.reject(stop);
        },
      };
      const opening = OnnxEncoder.open(folder, { binding: binding as never });
      await expect(opening).rejects.toBe(stop);
      expect(opened).toEqual([process.env.TOOLFINCH_ONNXRUNTIME || found]);
    } finally {
      process.chdir(back);
    }
  });

  it('is the one named, by option before variable, and a wrong name is said', async () => {
    const [byOption, byVariable] = ['option.so', 'variable.so'].map((name) => {
      put(name, '');
      return path.join(folder, name);
    });
    const env = { TOOLFINCH_ONNXRUNTIME: byVariable };
    expect(findRuntime({ env, from: [] })).toBe(byVariable);
    expect(findRuntime({ env, runtimePath: byOption, from: [] })).toBe(byOption);
    const wrong = await expectCode(
      () => findRuntime({ env: { TOOLFINCH_ONNXRUNTIME: '/nowhere.so' } }),
      'FINCH_DEVICE',
    );
    expect(wrong.message).toContain('TOOLFINCH_ONNXRUNTIME');
  });
});
