import { expect } from 'vitest';
import { type FinchCode, FinchError } from '../../lib/errors.js';

/** Expects a FinchError of `code`, and gives it. */
export async function expectCode(
  work: Promise<unknown> | (() => unknown),
  code: FinchCode,
): Promise<FinchError> {
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
