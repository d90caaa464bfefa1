import { throwIfAborted, withAbort } from '../abort.js';
import type { Binding, TokenizerHandle } from '../native.js';
import { packageRoot } from '../package-root.js';
import type { ModelFolder, ModelManifest } from './model-folder.js';
import { findRuntime } from './runtime.js';

/** What every kind of model is opened from. */
interface OpenOptions {
  readonly runtimePath?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the addon is told of every kind of model. */
export interface SessionPaths {
  readonly runtimePath: string;
  readonly modelPath: string;
  readonly tokenizer: TokenizerHandle;
  readonly outputName: string;
}

/**
 * Finds the runtime, opens the tokenizer of a model folder and then its session with `open`; a session that comes after an
 * abort is closed.
 *
 * @throws FinchError those of `findRuntime`, the tokenizer and `open`; FINCH_ABORTED
 */
export async function openModel<Handle>(
  binding: Pick<Binding, 'tokenizerOpen'>,
  model: ModelFolder<Pick<ModelManifest, 'tokenizer' | 'model'>>,
  { runtimePath, signal }: OpenOptions,
  open: (paths: SessionPaths) => Promise<Handle>,
  close: (handle: Handle) => void,
): Promise<{ handle: Handle; tokenizer: TokenizerHandle }> {
  const found = findRuntime({
    runtimePath,
    // The last: a service's working directory is often /, and models may lie anywhere.
    from: [process.cwd(), model.path, packageRoot()],
  });
  const { tokenizer: words, model: session } = model.manifest;
  const tokenizer = binding.tokenizerOpen({
    vocabPath: model.file(words.vocab),
    lowercase: words.lowercase,
    stripAccents: words.stripAccents,
    chineseCharacters: words.chineseCharacters,
    maxWordCharacters: words.maxWordCharacters,
    unknown: words.unknown,
    start: words.start,
    end: words.end,
    pad: words.pad,
    continuation: words.continuationPrefix,
  });
  throwIfAborted(signal);
  const opening = open({
    runtimePath: found,
    modelPath: model.file(session.file),
    tokenizer,
    outputName: session.output,
  });
  const handle = await withAbort(opening, signal, () => {
    // The session cannot be stopped half-made: it is closed as soon as it is there.
    opening.then(close, () => undefined);
  });
  return { handle, tokenizer };
}
