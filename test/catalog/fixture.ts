import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';
import { type FinchCode, FinchError } from '../../lib/errors.js';

// Processes are started and properties tried many times: a busy machine gets the time it needs.
vi.setConfig({ testTimeout: 120_000 });

const folder = new URL('../fixtures/catalog/', import.meta.url);

export function fixturePath(name: string): string {
  return fileURLToPath(new URL(name, folder));
}

export function fixture(name: string): string {
  return readFileSync(fixturePath(name), 'utf8');
}

/** The error a function throws, which must be a FinchError of that code whose message has all the parts. */
export function refused(run: () => unknown, code: FinchCode, ...parts: string[]): FinchError {
  let thrown: unknown;
  try {
    run();
  } catch (error) {
    thrown = error;
  }
  return judged(thrown, code, parts);
}

/** As {@link refused}, for a promise. */
export async function rejected(
  promise: Promise<unknown>,
  code: FinchCode,
  ...parts: string[]
): Promise<FinchError> {
  const thrown: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  return judged(thrown, code, parts);
}

function judged(thrown: unknown, code: FinchCode, parts: string[]): FinchError {
  if (!(thrown instanceof FinchError)) throw thrown ?? new Error(`nothing thrown, wanted ${code}`);
  expect(`${thrown.code}: ${thrown.message}`).toContain(code);
  for (const part of parts) expect(thrown.message).toContain(part);
  return thrown;
}
