import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  defaultEncoder,
  defaultModel,
  type EncoderBinding,
  OnnxEncoder,
} from '../../lib/encode/onnx-encoder.js';
import { FinchError } from '../../lib/errors.js';
import type {
  CancelHandle,
  EncoderHandle,
  NativeEncoderOptions,
  NativeTokenizerOptions,
  TokenizerHandle,
} from '../../lib/native.js';
import { expectCode } from './expect-code.js';
import { vectorOf } from './fake-encoder.js';

const models = path.resolve('models');
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** The addon's part of encoding, in JavaScript: what is asked of it is seen, and answered when the test says. */
class FakeBinding implements EncoderBinding {
  tokenizerOptions: NativeTokenizerOptions | undefined;
  encoderOptions: NativeEncoderOptions | undefined;
  readonly calls: string[][] = [];
  readonly cancelled = new Set<unknown>();
  closed = 0;
  held = false;
  fault: ((texts: readonly string[]) => FinchError | undefined) | undefined;
  opening: Promise<void> = Promise.resolve();
  #waiting: Array<{ go: () => void; cancel: unknown; stop: () => void }> = [];

  cancelCreate = () => ({}) as CancelHandle;
  cancelSignal = (cancel: CancelHandle) => {
    this.cancelled.add(cancel);
    for (const waiting of this.#waiting) if (waiting.cancel === cancel) waiting.stop();
  };
  tokenizerOpen = (options: NativeTokenizerOptions) => {
    this.tokenizerOptions = options;
    return {} as TokenizerHandle;
  };
  tokenize = (_: TokenizerHandle, text: string, maxTokens: number) =>
    new Int32Array(Math.min(maxTokens, text.split(' ').length + 2));
  encoderOpen = async (options: NativeEncoderOptions) => {
    this.encoderOptions = options;
    await this.opening;
    return {} as EncoderHandle;
  };
  encoderClose = () => {
    this.closed++;
  };
  encoderRuntime = () => '1.2.3';
  encode = async (_: EncoderHandle, texts: readonly string[], cancel?: CancelHandle | null) => {
    this.calls.push([...texts]);
    if (this.held) {
      await new Promise<void>((go, reject) => {
        const stop = () => reject(new FinchError('FINCH_ABORTED', 'cancelled'));
        this.#waiting.push({ go, cancel, stop });
      });
    }
    const fault = this.fault?.(texts);
    if (fault !== undefined) throw fault;
    const out = new Float32Array(texts.length * 384);
    for (const [i, text] of texts.entries()) out.set(vectorOf(text, 384), i * 384);
    return out;
  };

  release(): void {
    this.held = false;
    for (const { go } of this.#waiting.splice(0)) go();
  }
}

let folder: string | undefined;
afterEach(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
});

/** A copy of the embedded model with its manifest changed. */
function changedModel(change: object): string {
  folder = mkdtempSync(path.join(tmpdir(), 'finch-onnx-'));
  cpSync(path.join(models, defaultModel), folder, { recursive: true });
  const file = path.join(folder, 'manifest.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...manifest, ...change }));
  return folder;
}

function openFake(binding: FakeBinding, more: object = {}): Promise<OnnxEncoder> {
  return defaultEncoder({ models, binding, verify: false, ...more });
}

describe('an ONNX encoder, over the addon', () => {
  it('hands the manifest on, and says what it is', async () => {
    const binding = new FakeBinding();
    const encoder = await openFake(binding);
    expect(encoder.model).toBe(
      `${encoder.folder.manifest.name}@${encoder.folder.manifest.revision}`,
    );
    expect([encoder.dimension, encoder.maxTokens, encoder.runtime]).toEqual([384, 256, '1.2.3']);
    expect(binding.tokenizerOptions).toMatchObject({
      vocabPath: path.join(models, defaultModel, 'vocab.txt'),
      lowercase: true,
      continuation: '##',
    });
    expect(binding.encoderOptions).toMatchObject({
      modelPath: path.join(models, defaultModel, 'model.onnx'),
      outputName: encoder.folder.manifest.model.output,
      dimension: 384,
      pooling: encoder.folder.manifest.pooling,
    });
    expect(binding.encoderOptions).not.toHaveProperty('batchSize');
    expect(encoder.countTokens('three small words')).toBe(5);
  });

  it('cuts large calls into slices, a few at a time, and puts the rows in order', async () => {
    const binding = new FakeBinding();
    const encoder = await openFake(binding);
    const texts = Array.from({ length: 1000 }, (_, i) => `text ${i}`);
    const rows = await encoder.encode(texts);
    const expected = new Float32Array(1000 * 384);
    for (const [i, text] of texts.entries()) expected.set(vectorOf(text, 384), i * 384);
    expect(Buffer.compare(Buffer.from(rows.buffer), Buffer.from(expected.buffer))).toBe(0);
    expect(binding.calls.map((texts) => texts.length)).toEqual([256, 256, 256, 232]);
    binding.calls.length = 0;
    await encoder.encode(['x'.repeat(300_000), 'y', 'z'.repeat(300_000), 'w']);
    expect(binding.calls.map((texts) => texts.length)).toEqual([1, 2, 1]);
    expect(await encoder.encode([])).toEqual(new Float32Array(0));
  });

  it('puts the prefixes of the manifest before texts', async () => {
    const binding = new FakeBinding();
    const place = changedModel({ queryPrefix: 'query: ', toolPrefix: 'passage: ' });
    const encoder = await OnnxEncoder.open(place, { binding, verify: false });
    await encoder.encode(['a']);
    await encoder.encode(['a'], { kind: 'tool' });
    expect(binding.calls).toEqual([['query: a'], ['passage: a']]);
  });

  it('cancels natively when its signal fires, and leaves other calls alone', async () => {
    const binding = new FakeBinding();
    const encoder = await openFake(binding);
    binding.held = true;
    const controller = new AbortController();
    const stopped = encoder.encode(['a'], { signal: controller.signal });
    const other = encoder.encode(['b']);
    await turn();
    const reason = new Error('enough');
    controller.abort(reason);
    expect((await expectCode(stopped, 'FINCH_ABORTED')).cause).toBe(reason);
    expect(binding.cancelled.size).toBe(1);
    binding.release();
    expect(await other).toEqual(vectorOf('b', 384));
    await expectCode(encoder.encode(['a'], { signal: AbortSignal.abort() }), 'FINCH_ABORTED');
  });

  it('gives the failure of a slice, not the cancellation that it caused', async () => {
    const binding = new FakeBinding();
    const encoder = await openFake(binding);
    binding.fault = (texts) =>
      texts[0] === 'text 256'
        ? new FinchError('FINCH_DEVICE', 'the runtime failed')
        : binding.cancelled.size > 0
          ? new FinchError('FINCH_ABORTED', 'cancelled')
          : undefined;
    const texts = Array.from({ length: 2000 }, (_, i) => `text ${i}`);
    await expectCode(encoder.encode(texts), 'FINCH_DEVICE');
    expect(binding.calls.length).toBeLessThan(8);
  });

  it('settles calls in flight at close, refuses later ones, and closes once', async () => {
    const binding = new FakeBinding();
    const encoder = await openFake(binding);
    binding.held = true;
    const inFlight = encoder.encode(['a']);
    await turn();
    const closing = encoder.close();
    await expectCode(encoder.encode(['b']), 'FINCH_CLOSED');
    await expectCode(() => encoder.countTokens('b'), 'FINCH_CLOSED');
    expect(binding.closed).toBe(0);
    binding.release();
    expect(await inFlight).toEqual(vectorOf('a', 384));
    await closing;
    await encoder[Symbol.asyncDispose]();
    expect(binding.closed).toBe(1);
  });

  it('whose opening was aborted is closed as soon as it is there', async () => {
    const binding = new FakeBinding();
    let opened = () => {};
    binding.opening = new Promise((resolve) => {
      opened = resolve;
    });
    const controller = new AbortController();
    const opening = openFake(binding, { signal: controller.signal });
    while (binding.encoderOptions === undefined) await turn();
    controller.abort();
    await expectCode(opening, 'FINCH_ABORTED');
    expect(binding.closed).toBe(0);
    opened();
    await turn();
    expect(binding.closed).toBe(1);
  });

  it('refuses bad options and texts', async () => {
    const binding = new FakeBinding();
    for (const batchSize of [0, 1.5, 1025, Number.NaN]) {
      await expectCode(openFake(binding, { batchSize }), 'FINCH_INVALID_ARGUMENT');
    }
    await expectCode(openFake(binding, { models: '/nowhere' }), 'FINCH_IO');
    await expectCode(openFake(binding, { runtimePath: '/nowhere.so' }), 'FINCH_DEVICE');
    const encoder = await openFake(binding);
    for (const texts of [undefined, 'text', ['a', 5]] as unknown as string[][]) {
      await expectCode(encoder.encode(texts), 'FINCH_INVALID_ARGUMENT');
    }
    expect(binding.calls).toEqual([]);
  });
});

describe('the embedded encoder', () => {
  let encoder: OnnxEncoder;
  beforeAll(async () => {
    encoder = await defaultEncoder();
  });
  afterAll(() => encoder.close());

  function cosine(rows: Float32Array, i: number, j: number): number {
    let sum = 0;
    for (let k = 0; k < 384; k++) sum += (rows[i * 384 + k] ?? 0) * (rows[j * 384 + k] ?? 0);
    return sum;
  }

  it('gives unit vectors that are near for near meanings', async () => {
    const rows = await encoder.encode([
      'Send an email to a colleague',
      'Compose and deliver an e-mail message',
      'Current temperature and rain forecast for a city',
      'What will the weather be like tomorrow?',
    ]);
    for (let i = 0; i < 4; i++) expect(cosine(rows, i, i)).toBeCloseTo(1, 5);
    expect(cosine(rows, 0, 1)).toBeGreaterThan(cosine(rows, 0, 2) + 0.2);
    expect(cosine(rows, 2, 3)).toBeGreaterThan(cosine(rows, 1, 3) + 0.2);
  });

  it('gives a text the same bits alone, in company, and in concurrent calls', async () => {
    const texts = Array.from(
      { length: 24 },
      (_, i) => `note number ${i} ${'and so on '.repeat(i)}`,
    );
    const together = await encoder.encode(texts);
    const alone = await Promise.all(texts.map((text) => encoder.encode([text])));
    for (const [i, row] of alone.entries()) {
      expect(together.subarray(i * 384, i * 384 + 384)).toEqual(row);
    }
  });

  it('takes empty, odd and very long texts', async () => {
    const texts = ['', ' ', '\ud800', '\0', '漢字かな交じり文', '👩‍👩‍👧', 'long '.repeat(20_000)];
    const rows = await encoder.encode(texts);
    for (let i = 0; i < texts.length; i++) expect(cosine(rows, i, i)).toBeCloseTo(1, 5);
    expect(encoder.countTokens('long '.repeat(20_000))).toBe(encoder.maxTokens);
    expect(encoder.countTokens('')).toBe(2);
  });

  it('stops a long call within moments', async () => {
    const texts = Array.from({ length: 5000 }, (_, i) => `a long list, entry ${i}`);
    const controller = new AbortController();
    const call = encoder.encode(texts, { signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    await expectCode(call, 'FINCH_ABORTED');
    expect((await encoder.encode(['still there'])).length).toBe(384);
  });

  it('that is damaged does not open', async () => {
    const place = changedModel({});
    writeFileSync(path.join(place, 'vocab.txt'), '[PAD]\n');
    await expectCode(OnnxEncoder.open(place), 'FINCH_CORRUPT');
  });
});
