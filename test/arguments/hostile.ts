// Calls a function with arguments that are wrong one at a time, and says what came back that is no FinchError.
import { types } from 'node:util';

import { FinchError, finchCodes } from '../../dist/esm/lib/index.js';

/** A public function, and arguments it takes. They are made anew for each call. */
export interface Target {
  readonly call: (...args: never[]) => unknown;
  readonly args: () => readonly unknown[];
  /** Good arguments fail too, with a FinchError: there is no such server. */
  readonly fails?: boolean;
}

/** A target with its name, as files of targets list them. */
export type Entry = readonly [
  name: string,
  call: unknown,
  args: Target['args'],
  fails?: Target['fails'],
];

export const hostile: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  -1.5,
  Number.NaN,
  10n,
  '',
  'nonsense',
  Symbol('s'),
  {},
  Object.create(null),
  [],
  [null],
  [{}],
  () => undefined,
];

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  if (Object.getPrototypeOf(value) === null) return 'an object without a prototype';
  return JSON.stringify(value);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    !types.isProxy(value)
  );
}

/** Copies of `value` in which one part, at any depth, is replaced; each with its path and the replacement. */
function* variants(value: unknown, path: string): Generator<[where: string, variant: unknown]> {
  for (const bad of hostile) yield [`${path} = ${show(bad)}`, bad];
  if (Array.isArray(value) && value.length > 0) {
    for (const [where, variant] of variants(value[0], `${path}[0]`)) {
      yield [where, [variant, ...value.slice(1)]];
    }
  } else if (isPlain(value)) {
    for (const key of Object.keys(value)) {
      for (const [where, variant] of variants(value[key], `${path}.${key}`)) {
        yield [where, { ...value, [key]: variant }];
      }
    }
  }
}

/** What a call did: nothing to say when it returned, or failed as it should. */
async function complaint(call: () => unknown): Promise<string | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    if (!(error instanceof FinchError)) return `threw ${String(error)}`;
    const isDocumented = finchCodes.includes(error.code) && error.code !== 'FINCH_INTERNAL';
    if (!isDocumented) return `has the code ${error.code}: ${error.message}`;
    if (error.message.length < 20) return `says only: ${error.message}`;
    return undefined;
  }
}

/** Everything that went wrong with a target, a line each; the good arguments must be taken. */
export async function complaints({ call, args, fails }: Target): Promise<string[]> {
  const run = call as (...args: unknown[]) => unknown;
  const found: string[] = [];
  try {
    await run(...args());
  } catch (error) {
    if (fails !== true) return [`refuses good arguments: ${String(error)}`];
  }
  const count = args().length;
  for (let i = 0; i < count; i++) {
    const short = await complaint(() => run(...args().slice(0, i)));
    if (short !== undefined) found.push(`with ${i} arguments ${short}`);
    for (const [where, variant] of variants(args()[i], `#${i}`)) {
      const said = await complaint(() => run(...args().with(i, variant)));
      if (said !== undefined) found.push(`${where} ${said}`);
    }
  }
  return found;
}
