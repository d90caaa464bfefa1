// What the tests of the addon share: the addon itself, its errors, vectors to feed it, child processes.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

import { findRuntime } from '../../dist/esm/lib/encode/runtime.js';
import { FinchError } from '../../dist/esm/lib/errors.js';
import {
  type Binding,
  binding,
  type EncoderHandle,
  type IndexHandle,
  type SnapshotHandle,
  type TokenizerHandle,
} from '../../dist/esm/lib/native.js';

export const addon: Binding = binding();
export const root = fileURLToPath(new URL('../../', import.meta.url));
/** How often the tests that look for races try. */
export const tries = Number(process.env.TOOLFINCH_TRIES ?? 20);

/** A function as untyped callers see it. */
export type Loose = Record<keyof Binding, (...args: unknown[]) => unknown>;
export const loose = addon as unknown as Loose;

/** What `call` throws or rejects with; it must be a FinchError that says something. */
export async function failure(call: () => unknown): Promise<FinchError> {
  let value: unknown;
  try {
    value = await call();
  } catch (error) {
    expect(error).toBeInstanceOf(FinchError);
    expect(Object.getPrototypeOf(error)).toBe(FinchError.prototype);
    const finch = error as FinchError;
    expect(finch.name).toBe('FinchError');
    expect(finch.message.length).toBeGreaterThan(10);
    return finch;
  }
  throw new Error(`expected a FinchError but got ${String(value)}`);
}

/** Deterministic numbers in [-1, 1). */
export function randomNumbers(count: number, seed: number): Float32Array {
  let state = seed >>> 0 || 1;
  return Float32Array.from({ length: count }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) / 2 ** 32) * 2 - 1;
  });
}

export function cosine64(a: Float32Array, b: Float32Array): number {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    const x = a[i] ?? 0;
    const y = b[i] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return dot / Math.sqrt(aa * bb);
}

export interface Filled {
  index: IndexHandle;
  snapshot: SnapshotHandle;
  ids: string[];
  vectors: Float32Array;
}

export function fill(count: number, dimension: number, seed = 7): Filled {
  const index = addon.indexCreate(dimension);
  const ids = Array.from({ length: count }, (_, i) => `tool ${i}`);
  const vectors = randomNumbers(count * dimension, seed);
  addon.indexUpsertSync(index, ids, vectors);
  return { index, snapshot: addon.indexSnapshot(index), ids, vectors };
}

export const model = {
  folder: path.join(root, 'models/toolfinch-retriever'),
  dimension: 384,
  output: 'sentence_embedding',
};

export function openTokenizer(): TokenizerHandle {
  return addon.tokenizerOpen({
    vocabPath: path.join(model.folder, 'vocab.txt'),
    lowercase: true,
    stripAccents: true,
    chineseCharacters: true,
  });
}

export function openEncoder(): Promise<EncoderHandle> {
  return addon.encoderOpen({
    runtimePath: findRuntime({ from: [root] }),
    modelPath: path.join(model.folder, 'model.onnx'),
    tokenizer: openTokenizer(),
    outputName: model.output,
    dimension: model.dimension,
    pooling: 'none',
  });
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs an ES module given as text, or `.js` files with arguments, in a Node of its own: under TOOLFINCH_TEST_LAUNCHER, an
 * emulator with its arguments, when there is one.
 */
export function runNode(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const launcher = process.env.TOOLFINCH_TEST_LAUNCHER?.split(' ') ?? [];
  const [program, ...given] = [...launcher, process.execPath, ...args] as [string, ...string[]];
  return new Promise((resolve) => {
    const child = execFile(
      program,
      given,
      {
        cwd: root,
        env: { ...process.env, ...env },
        encoding: 'utf8',
        // A hang is killed; a long form has as many times as long.
        timeout: 240_000 * Math.max(1, tries / 20),
        maxBuffer: 1 << 24,
      },
      (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
    );
  });
}

export function runModule(
  text: string,
  env: Record<string, string> = {},
  flags: string[] = [],
): Promise<Ended> {
  return runNode([...flags, '--input-type=module', '--eval', text], env);
}
