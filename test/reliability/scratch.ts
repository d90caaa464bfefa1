import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect } from 'vitest';
import { type FinchCode, FinchError } from '../../lib/errors.js';
import type { FeedbackOptions } from '../../lib/reliability/feedback-options.js';
import { FeedbackStore } from '../../lib/reliability/feedback-store.js';
import { FakeBandit } from './fake-bandit.js';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder of the test's own, removed after it. */
export function scratch(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'finch-feedback-'));
  folders.push(folder);
  return folder;
}

export const dimension = 4;

export function fakeOptions(
  more: Partial<FeedbackOptions<FakeBandit>> = {},
): FeedbackOptions<FakeBandit> {
  return {
    bandit: { dimension },
    createBandit: (options) => new FakeBandit(options),
    sync: 'none',
    ...more,
  };
}

export function openFake(
  folder: string,
  more: Partial<FeedbackOptions<FakeBandit>> = {},
): Promise<FeedbackStore<FakeBandit>> {
  return FeedbackStore.open(folder, fakeOptions(more));
}

/** A context that differs from decision to decision. */
export function context(seed: number): Float32Array {
  return Float32Array.from({ length: dimension }, (_, i) => Math.sin(seed * 7 + i * 3) || 1);
}

export function priors(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => ((i * 37) % 100) / 100);
}

export function bytesOf(bandit: FakeBandit): string {
  return Buffer.from(bandit.serialize()).toString();
}

export async function expectCode(work: Promise<unknown> | (() => unknown), code: FinchCode) {
  let error: unknown;
  try {
    await (typeof work === 'function' ? work() : work);
  } catch (thrown) {
    error = thrown;
  }
  expect(error, `expected ${code}`).toBeInstanceOf(FinchError);
  expect((error as FinchError).code, (error as FinchError).message).toBe(code);
  return error as FinchError;
}
