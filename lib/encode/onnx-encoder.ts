import path from 'node:path';
import { throwIfAborted, withAbort } from '../abort.js';
import { anObject, aString, fields, optional } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import {
  type Binding,
  type CancelHandle,
  type EncoderHandle,
  binding as loadedBinding,
  type TokenizerHandle,
} from '../native.js';
import { packageRoot } from '../package-root.js';
import { checkEncodeArguments, type EncodeOptions, type Encoder } from './encoder.js';
import { Lifetime } from './lifetime.js';
import { type ModelFolder, readModelFolder } from './model-folder.js';
import { openModel } from './open-model.js';

/** The addon's functions that an encoder uses. */
export type EncoderBinding = Pick<
  Binding,
  | 'cancelCreate'
  | 'cancelSignal'
  | 'tokenizerOpen'
  | 'tokenize'
  | 'encoderOpen'
  | 'encoderClose'
  | 'encoderRuntime'
  | 'encode'
>;

export interface OnnxEncoderOptions {
  /** The onnxruntime library; found by `findRuntime` when left out. */
  runtimePath?: string | undefined;
  /** Compare the files' checksums. Default true. */
  verify?: boolean | undefined;
  /**
   * Texts of equal token length per run, 1 to 1,024. Default 1: a text's bits then never depend on what shares its run.
   */
  batchSize?: number | undefined;
  signal?: AbortSignal | undefined;
  /** The addon; the process's own when left out. */
  binding?: EncoderBinding | undefined;
}

// One native call copies its texts on the calling thread: slices keep that copy, and the wait of others, short.
const sliceTexts = 256;
const sliceCharacters = 1 << 18;
const slicesInFlight = 2;

/** An encoder that runs an ONNX model folder natively, on Toolfinch's thread pool. */
export class OnnxEncoder implements Encoder {
  readonly model: string;
  readonly dimension: number;
  readonly relevanceFloor: number | undefined;
  /** Longest input in tokens; the rest of a text is cut. */
  readonly maxTokens: number;
  /** The version of onnxruntime. */
  readonly runtime: string;
  /** The model folder. */
  readonly folder: ModelFolder;

  readonly #binding: EncoderBinding;
  readonly #handle: EncoderHandle;
  readonly #tokenizer: TokenizerHandle;
  readonly #lifetime = new Lifetime('the encoder');

  private constructor(
    folder: ModelFolder,
    binding: EncoderBinding,
    handle: EncoderHandle,
    tokenizer: TokenizerHandle,
  ) {
    const { manifest } = folder;
    this.folder = folder;
    this.model = `${manifest.name}@${manifest.revision}`;
    this.dimension = manifest.dimension;
    this.maxTokens = manifest.maxTokens;
    this.relevanceFloor = manifest.relevanceFloor;
    this.runtime = binding.encoderRuntime(handle);
    this.#binding = binding;
    this.#handle = handle;
    this.#tokenizer = tokenizer;
  }

  /**
   * Opens a model folder.
   *
   * @throws FinchError those of {@link readModelFolder} and `findRuntime`; FINCH_DEVICE (the runtime refuses the
   *   model), FINCH_DIMENSION (the model's output is not the manifest's), FINCH_CORRUPT (vocabulary), FINCH_ABORTED.
   */
  static async open(folder: string, options: OnnxEncoderOptions = {}): Promise<OnnxEncoder> {
    anObject(options, 'options');
    const { signal, batchSize } = options;
    if (
      batchSize !== undefined &&
      !(Number.isSafeInteger(batchSize) && batchSize >= 1 && batchSize <= 1024)
    ) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `batchSize is ${kindOf(batchSize)}; expected a whole number from 1 to 1024`,
      );
    }
    const model = await readModelFolder(folder, { verify: options.verify, signal });
    const { manifest } = model;
    const binding = options.binding ?? loadedBinding();
    const { handle, tokenizer } = await openModel(
      binding,
      model,
      options,
      (paths) =>
        binding.encoderOpen({
          ...paths,
          dimension: manifest.dimension,
          maxTokens: manifest.maxTokens,
          pooling: manifest.pooling,
          ...(batchSize === undefined ? {} : { batchSize }),
        }),
      (late) => binding.encoderClose(late),
    );
    return new OnnxEncoder(model, binding, handle, tokenizer);
  }

  /**
   * Encodes texts on the pool; concurrent calls share its threads text by text. Aborting frees them within one text.
   *
   * @returns float32, `texts.length` x `dimension`, unit rows.
   * @throws FinchError FINCH_ABORTED, FINCH_CLOSED, FINCH_INVALID_ARGUMENT, FINCH_DEVICE, FINCH_NO_MEMORY.
   */
  async encode(texts: readonly string[], options: EncodeOptions = {}): Promise<Float32Array> {
    checkEncodeArguments(texts, options);
    return this.#lifetime.run(async () => {
      const { signal } = options;
      throwIfAborted(signal);
      if (texts.length === 0) return new Float32Array(0);
      const cancel = this.#binding.cancelCreate();
      const work = this.#encodeSlices(texts, this.#prefix(options), cancel);
      return withAbort(work, signal, () => this.#binding.cancelSignal(cancel));
    });
  }

  /**
   * How many tokens the model sees of `text`, start and end included; at most `maxTokens`.
   *
   * @throws FinchError FINCH_CLOSED, FINCH_INVALID_ARGUMENT.
   */
  countTokens(text: string, options: EncodeOptions = {}): number {
    checkEncodeArguments([text], options);
    if (this.#lifetime.closed) {
      throw new FinchError('FINCH_CLOSED', 'the encoder is closed; open a new one');
    }
    return this.#binding.tokenize(this.#tokenizer, this.#prefix(options) + text, this.maxTokens)
      .length;
  }

  close(): Promise<void> {
    return this.#lifetime.close(() => this.#binding.encoderClose(this.#handle));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #prefix(options: EncodeOptions): string {
    const { queryPrefix = '', toolPrefix = '' } = this.folder.manifest;
    return options.kind === 'tool' ? toolPrefix : queryPrefix;
  }

  async #encodeSlices(
    texts: readonly string[],
    prefix: string,
    cancel: CancelHandle,
  ): Promise<Float32Array> {
    const out = new Float32Array(texts.length * this.dimension);
    let next = 0;
    let failed = false;
    const takeSlices = async () => {
      while (next < texts.length && !failed) {
        const first = next;
        let characters = 0;
        while (
          next < texts.length &&
          next - first < sliceTexts &&
          (next === first || characters < sliceCharacters)
        ) {
          characters += (texts[next] as string).length;
          next++;
        }
        const slice = texts.slice(first, next);
        const prefixed = prefix === '' ? slice : slice.map((text) => prefix + text);
        try {
          out.set(
            await this.#binding.encode(this.#handle, prefixed, cancel),
            first * this.dimension,
          );
        } catch (error) {
          failed = true;
          this.#binding.cancelSignal(cancel);
          throw error;
        }
      }
    };
    // The first failure is the call's; the other slice is cancelled and has settled before the call does.
    const settled = await Promise.allSettled(Array.from({ length: slicesInFlight }, takeSlices));
    let failure: PromiseRejectedResult | undefined;
    for (const result of settled) {
      if (result.status !== 'rejected') continue;
      const cancelled =
        result.reason instanceof FinchError && result.reason.code === 'FINCH_ABORTED';
      if (failure === undefined || !cancelled) failure = result;
    }
    if (failure !== undefined) throw failure.reason;
    return out;
  }
}

/** The name of the embedded model's folder under the package's `models/`. */
export const defaultModel = 'toolfinch-retriever';

const anOptions = fields({ models: optional(aString) });

/**
 * Opens the model that comes with the package.
 *
 * @param options `models`: the folder of models; the package's own when left out.
 * @throws FinchError as {@link OnnxEncoder.open}.
 */
export async function defaultEncoder(
  options: OnnxEncoderOptions & { models?: string } = {},
): Promise<OnnxEncoder> {
  anOptions(options, 'options');
  const { models = path.join(packageRoot(), 'models'), ...rest } = options;
  return OnnxEncoder.open(path.join(models, defaultModel), rest);
}
