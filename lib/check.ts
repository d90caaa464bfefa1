import { excerpt, kindOf } from './describe-value.js';
import { FinchError } from './errors.js';

/** Refuses a value that is not what it should be; `name` is how the message calls it, such as `options.k`. */
export type Rule = (value: unknown, name: string) => void;

/** @throws FinchError FINCH_INVALID_ARGUMENT */
export function refuse(value: unknown, name: string, expected: string): never {
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${name} is ${kindOf(value)}; expected ${expected}`,
  );
}

export function rule(fits: (value: unknown) => boolean, expected: string): Rule {
  return (value, name) => {
    if (!fits(value)) refuse(value, name, expected);
  };
}

export const aString = rule((value) => typeof value === 'string', 'a string');
export const aNumber = rule((value) => typeof value === 'number', 'a number');
export const aFunction = rule((value) => typeof value === 'function', 'a function');
export const anObject = rule(isObject, 'an object');
/** By what is used of it: signals of other realms and of polyfills are signals too. */
export const aSignal = rule(
  (value) =>
    isObject(value) &&
    typeof (value as { aborted?: unknown }).aborted === 'boolean' &&
    typeof (value as { addEventListener?: unknown }).addEventListener === 'function',
  'an AbortSignal',
);

export function optional(inner: Rule): Rule {
  return (value, name) => {
    if (value !== undefined) inner(value, name);
  };
}

/** A whole number within limits, both included. */
export function aWholeNumber(least: number, most: number): Rule {
  return rule(
    (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
    `a whole number from ${least} to ${most}`,
  );
}

export function aList(of: Rule): Rule {
  return (value, name) => {
    if (!Array.isArray(value)) refuse(value, name, 'an array');
    // By index: holes are looked at too.
    for (let i = 0; i < value.length; i++) of(value[i], `${name}[${i}]`);
  };
}

/** An object whose fields, each, are as its rule says; others are not looked at. */
export function fields(rules: Readonly<Record<string, Rule>>): Rule {
  const all = Object.entries(rules);
  return (value, name) => {
    anObject(value, name);
    for (const [key, inner] of all)
      inner((value as Record<string, unknown>)[key], `${name}.${key}`);
  };
}

/** {@link fields}, and no others: a misspelt one is named, instead of having no effect. */
export function onlyFields(rules: Readonly<Record<string, Rule>>): Rule {
  const inner = fields(rules);
  const known = Object.keys(rules);
  return (value, name) => {
    inner(value, name);
    for (const key of Object.keys(value as object)) {
      if (Object.hasOwn(rules, key)) continue;
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${name} has a field ${excerpt(key)}, which is none of its own; expected only ${known.join(', ')}`,
      );
    }
  };
}

/** An object all of whose fields are as one rule says. */
export function aTable(of: Rule): Rule {
  return (value, name) => {
    anObject(value, name);
    for (const [key, held] of Object.entries(value as object)) of(held, `${name}.${key}`);
  };
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
