import { type ParseArgsConfig, parseArgs } from 'node:util';
import { FinchError } from '../lib/index.js';

/** A command line that cannot be understood: exit code 2, with the command's usage below it. */
export class UsageError extends Error {}

export type OptionTypes = NonNullable<ParseArgsConfig['options']>;

interface Config<Options extends OptionTypes> {
  args: string[];
  options: Options;
  allowPositionals: true;
  strict: true;
}

/** A command: `toolfinch NAME …`. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly run: (args: string[]) => Promise<void>;
}

export function parse<const Options extends OptionTypes>(
  args: string[],
  options: Options,
): ReturnType<typeof parseArgs<Config<Options>>> {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** A number option. @throws FinchError FINCH_INVALID_ARGUMENT */
export function numberOption(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (value.trim() === '' || Number.isNaN(number)) {
    throw new FinchError('FINCH_INVALID_ARGUMENT', `--${name} is '${value}'; expected a number.`);
  }
  return number;
}

/** Options that are set: an absent flag must not override a default. */
export function given<T extends Record<string, unknown>>(
  options: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
