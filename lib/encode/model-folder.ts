import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { throwIfAborted } from '../abort.js';
import { anObject } from '../check.js';
import { FinchError } from '../errors.js';
import type { PairTruncation } from '../native.js';

/** The manifest's format that this release reads and `training/` writes. */
export const manifestFormat = 1;

/** How a model's text becomes token ids: BERT's WordPiece. */
export interface WordPieceManifest {
  type: 'wordpiece';
  /** File of the vocabulary, one token a line. */
  vocab: string;
  lowercase: boolean;
  stripAccents: boolean;
  chineseCharacters: boolean;
  unknown: string;
  start: string;
  end: string;
  pad: string;
  maxWordCharacters: number;
  continuationPrefix: string;
}

/** What every `manifest.json` says. */
interface AnyManifest {
  format: typeof manifestFormat;
  name: string;
  revision: string;
  tokenizer: WordPieceManifest;
  model: {
    file: string;
    inputs: string[];
    output: string;
    /** True when a text's vector is the same bits whatever texts share its run. */
    batchInvariant: boolean;
  };
  /** Every file of the folder that is needed, with its size in bytes and SHA-256 in hex. */
  files: Record<string, { sha256: string; bytes: number }>;
  license: string;
}

/** `manifest.json` of an encoder's folder. */
export interface ModelManifest extends AnyManifest {
  task: 'encoder';
  /** Length of a vector, 1 to 65,536. */
  dimension: number;
  /** Longest input in tokens, start and end included; at least 3. */
  maxTokens: number;
  pooling: 'mean' | 'none' | 'cls';
  /** Whether vectors are meant to be compared by direction; Toolfinch normalises in either case. */
  normalize: boolean;
  /** Put before a text of kind `'query'`. */
  queryPrefix?: string;
  /** Put before a text of kind `'tool'`. */
  toolPrefix?: string;
  /** The cosine below which the best match is usually none, as measured for this model; -1 to 1. */
  relevanceFloor?: number;
}

/** `manifest.json` of a reranker's folder: a cross-encoder with one logit a pair. */
export interface RerankerManifest extends AnyManifest {
  task: 'reranker';
  /** Longest pair in tokens, start and both ends included; at least 5. */
  maxTokens: number;
  /** How the model was trained to read pairs that are too long; `'longest-first'` when left out. */
  truncation?: PairTruncation;
  /** The probability below which the best match is usually none, as measured for this model; 0 to 1. */
  relevanceFloor?: number;
}

/** A model folder that passed its checks. */
export interface ModelFolder<Manifest = ModelManifest> {
  /** Absolute. */
  readonly path: string;
  readonly manifest: Manifest;
  /** Absolute path of one of the manifest's files. */
  file(name: string): string;
}

export interface ModelFolderOptions {
  /** Compare each file's SHA-256 (about 2 ms a megabyte, off the event loop's way) beside its size. Default true. */
  verify?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

type Kind = 'string' | 'boolean' | 'count' | 'strings';

const kindNames: Record<Kind, string> = {
  string: 'a non-empty string',
  boolean: 'true or false',
  count: 'a positive whole number',
  strings: 'a non-empty array of strings',
};

type Task = 'encoder' | 'reranker';

const fields: ReadonlyArray<readonly [string, Kind]> = [
  ['name', 'string'],
  ['revision', 'string'],
  ['maxTokens', 'count'],
  ['license', 'string'],
  ['tokenizer.vocab', 'string'],
  ['tokenizer.lowercase', 'boolean'],
  ['tokenizer.stripAccents', 'boolean'],
  ['tokenizer.chineseCharacters', 'boolean'],
  ['tokenizer.unknown', 'string'],
  ['tokenizer.start', 'string'],
  ['tokenizer.end', 'string'],
  ['tokenizer.pad', 'string'],
  ['tokenizer.maxWordCharacters', 'count'],
  ['tokenizer.continuationPrefix', 'string'],
  ['model.file', 'string'],
  ['model.inputs', 'strings'],
  ['model.output', 'string'],
  ['model.batchInvariant', 'boolean'],
];

const encoderFields: ReadonlyArray<readonly [string, Kind]> = [
  ['dimension', 'count'],
  ['normalize', 'boolean'],
];

const choices: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['tokenizer.type', ['wordpiece']],
];

/** The shortest input of each task: its special tokens, and one of each text. */
const leastTokens: Readonly<Record<Task, number>> = { encoder: 3, reranker: 5 };
/** What a relevance floor of each task is: a cosine, or a probability. */
const leastFloor: Readonly<Record<Task, number>> = { encoder: -1, reranker: 0 };

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function at(root: unknown, dotted: string): unknown {
  let value = root;
  for (const part of dotted.split('.')) value = isRecord(value) ? value[part] : undefined;
  return value;
}

function fits(value: unknown, kind: Kind): boolean {
  switch (kind) {
    case 'string':
      return typeof value === 'string' && value.length > 0;
    case 'boolean':
      return typeof value === 'boolean';
    case 'count':
      return Number.isSafeInteger(value) && (value as number) > 0;
    case 'strings':
      return Array.isArray(value) && value.length > 0 && value.every((v) => fits(v, 'string'));
  }
}

/** A file of the folder itself: no absolute path, no way out, no NUL. */
function staysInside(name: string): boolean {
  const parts = name.split(/[\\/]/);
  return (
    !path.isAbsolute(name) &&
    !/^[a-zA-Z]:/.test(name) &&
    !name.includes('\0') &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

/** Everything wrong with a manifest's fields, in words; empty when it is good. */
function faultsOf(manifest: unknown, task: Task): string[] {
  const faults: string[] = [];
  const missing = (name: string, expected: string) => {
    const value = at(manifest, name);
    faults.push(
      value === undefined
        ? `${name} is missing (${expected})`
        : `${name} is ${JSON.stringify(value)?.slice(0, 60)}, expected ${expected}`,
    );
  };
  const isEncoder = task === 'encoder';
  const chosen: typeof choices = [
    ['task', [task]],
    ...(isEncoder ? ([['pooling', ['mean', 'none', 'cls']]] as const) : []),
    ...choices,
  ];
  for (const [name, allowed] of chosen) {
    const value = at(manifest, name);
    if (typeof value !== 'string' || !allowed.includes(value)) {
      missing(name, allowed.map((choice) => JSON.stringify(choice)).join(' or '));
    }
  }
  for (const [name, kind] of isEncoder ? [...fields, ...encoderFields] : fields) {
    if (!fits(at(manifest, name), kind)) missing(name, kindNames[kind]);
  }
  const truncation = at(manifest, 'truncation');
  if (!isEncoder && truncation !== undefined && !isTruncation(truncation)) {
    missing('truncation', '"longest-first" or "document-first", or left out');
  }
  for (const name of isEncoder ? ['queryPrefix', 'toolPrefix'] : []) {
    const value = at(manifest, name);
    if (value !== undefined && typeof value !== 'string') missing(name, 'a string, or left out');
  }
  const floor = at(manifest, 'relevanceFloor');
  const lowest = leastFloor[task];
  if (floor !== undefined && !(typeof floor === 'number' && floor >= lowest && floor <= 1)) {
    missing('relevanceFloor', `a number from ${lowest} to 1, or left out`);
  }
  const dimension = at(manifest, 'dimension');
  if (isEncoder && fits(dimension, 'count') && (dimension as number) > 65536) {
    faults.push(`dimension is ${String(dimension)}, expected at most 65536`);
  }
  const maxTokens = at(manifest, 'maxTokens');
  if (fits(maxTokens, 'count') && (maxTokens as number) < leastTokens[task]) {
    faults.push(`maxTokens is ${String(maxTokens)}, expected at least ${leastTokens[task]}`);
  }

  const files = at(manifest, 'files');
  if (!isRecord(files)) {
    missing('files', 'an object from file name to { sha256, bytes }');
    return faults;
  }
  for (const [name, entry] of Object.entries(files)) {
    if (!staysInside(name)) faults.push(`files has ${JSON.stringify(name)}, outside the folder`);
    const sha256 = at(entry, 'sha256');
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) {
      faults.push(`files[${JSON.stringify(name)}].sha256 is not 64 lower-case hex digits`);
    }
    if (!Number.isSafeInteger(at(entry, 'bytes'))) {
      faults.push(`files[${JSON.stringify(name)}].bytes is not a whole number`);
    }
  }
  for (const name of ['model.file', 'tokenizer.vocab']) {
    const file = at(manifest, name);
    if (typeof file === 'string' && file.length > 0 && !Object.hasOwn(files, file)) {
      faults.push(`${name} is ${JSON.stringify(file)}, which files does not list`);
    }
  }
  return faults;
}

async function sha256Of(file: string, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash('sha256');
  // One megabyte at a time: about 2 ms of hashing between two turns of the event loop.
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    throwIfAborted(signal);
    hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isTruncation(value: unknown): value is PairTruncation {
  return value === 'longest-first' || value === 'document-first';
}

/**
 * Reads and checks an encoder's folder: `manifest.json` and every file it lists. All that is wrong is told in one error.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT (not a path), FINCH_IO (no folder, no manifest, files missing), FINCH_VERSION (another format), FINCH_CORRUPT
 *   (not JSON, fields missing or wrong, size or checksum differs), FINCH_ABORTED.
 */
export async function readModelFolder(
  folder: string,
  options: ModelFolderOptions = {},
): Promise<ModelFolder> {
  return readFolder<ModelManifest>(folder, options, 'encoder');
}

/** The same for a reranker's folder; throws as {@link readModelFolder}. */
export async function readRerankerFolder(
  folder: string,
  options: ModelFolderOptions = {},
): Promise<ModelFolder<RerankerManifest>> {
  return readFolder<RerankerManifest>(folder, options, 'reranker');
}

async function readFolder<Manifest>(
  folder: string,
  options: ModelFolderOptions,
  task: Task,
): Promise<ModelFolder<Manifest>> {
  anObject(options, 'options');
  const { verify = true, signal } = options;
  throwIfAborted(signal);
  if (typeof folder !== 'string' || folder === '') {
    const found = folder === '' ? 'empty' : folder === null ? 'null' : typeof folder;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `folder is ${found}; expected the path of a model folder as a non-empty string`,
    );
  }
  const root = path.resolve(folder);
  const manifestPath = path.join(root, 'manifest.json');
  let text: string;
  try {
    text = await readFile(manifestPath, 'utf8');
  } catch (cause) {
    throw new FinchError(
      'FINCH_IO',
      `cannot read ${manifestPath} (${reasonOf(cause)}); a model is a folder with a manifest.json, its ONNX file ` +
        'and its vocabulary',
      { cause },
    );
  }
  let manifest: unknown;
  try {
    manifest = JSON.parse(text);
  } catch (cause) {
    throw new FinchError('FINCH_CORRUPT', `${manifestPath} is not JSON: ${reasonOf(cause)}`, {
      cause,
    });
  }
  const format = at(manifest, 'format');
  if (isRecord(manifest) && format !== undefined && format !== manifestFormat) {
    throw new FinchError(
      'FINCH_VERSION',
      `${manifestPath} has format ${JSON.stringify(format)}; this release reads format ${manifestFormat}. ` +
        'Use a model exported for it, or another release of toolfinch',
    );
  }
  const faults = faultsOf(manifest, task);
  if (format === undefined) faults.unshift(`format is missing (${manifestFormat})`);

  // Files are looked at even when fields are wrong, so that one error tells all.
  const absent: string[] = [];
  const files = at(manifest, 'files');
  for (const [name, entry] of isRecord(files) ? Object.entries(files) : []) {
    if (!staysInside(name)) continue;
    const file = path.join(root, name);
    try {
      const { size } = await stat(file);
      const bytes = at(entry, 'bytes');
      const sha256 = at(entry, 'sha256');
      if (Number.isSafeInteger(bytes) && size !== bytes) {
        faults.push(`${name} has ${size} bytes, expected ${String(bytes)}`);
      } else if (verify && typeof sha256 === 'string') {
        const actual = await sha256Of(file, signal);
        if (actual !== sha256) faults.push(`${name} has SHA-256 ${actual}, expected ${sha256}`);
      }
    } catch (error) {
      if (error instanceof FinchError) throw error;
      absent.push(`${name} is missing (${reasonOf(error)})`);
    }
  }
  if (faults.length + absent.length > 0) {
    const all = [...faults, ...absent];
    throw new FinchError(
      faults.length > 0 ? 'FINCH_CORRUPT' : 'FINCH_IO',
      `model folder ${root} has ${all.length === 1 ? 'a fault' : `${all.length} faults`}: ${all.join('; ')}. ` +
        'Copy or export the model again',
    );
  }
  return {
    path: root,
    manifest: manifest as Manifest,
    file(name: string): string {
      return path.join(root, name);
    },
  };
}
