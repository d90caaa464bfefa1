/**
 * The codes of {@link FinchError}: the same table as `finch_status` in `toolfinch.h`, in every language.
 */
export const finchCodes = [
  'FINCH_DIMENSION',
  'FINCH_NOT_FINITE',
  'FINCH_ZERO_VECTOR',
  'FINCH_DUPLICATE_ID',
  'FINCH_UNKNOWN_ID',
  'FINCH_INVALID_ARGUMENT',
  'FINCH_CLOSED',
  'FINCH_CORRUPT',
  'FINCH_VERSION',
  'FINCH_IO',
  'FINCH_NO_MEMORY',
  'FINCH_DEVICE',
  'FINCH_ABORTED',
  'FINCH_INTERNAL',
] as const;

/** A stable error code; compare with `error.code === 'FINCH_DIMENSION'`. */
export type FinchCode = (typeof finchCodes)[number];

const brand = Symbol.for('toolfinch.FinchError');

/**
 * The one error Toolfinch throws. `code` is stable; `message` says what was wrong, what was expected and how to mend
 * it. After a FinchError nothing has changed.
 *
 * `instanceof` holds across the ESM and the CommonJS copy of the package: both carry one brand.
 */
export class FinchError extends Error {
  readonly code: FinchCode;

  constructor(code: FinchCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'FinchError';
    this.code = code;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && brand in value;
  }

  get [brand](): true {
    return true;
  }
}
