import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arraySlices, objectSlices, valueSlice } from '../../lib/catalog/json-slices.js';
import { refused } from './fixture.js';

const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);

/** JSON text with random white space and random escapes of a random value. */
function spell(value: unknown, noise: () => string, escaped: () => boolean): string {
  const string = (text: string): string =>
    Array.from(
      JSON.stringify(text)
        .slice(1, -1)
        .split(/(\\u[0-9a-f]{4}|\\.)/),
    )
      .map((part) =>
        part.startsWith('\\') || !escaped()
          ? part
          : part.replace(
              /[a-z/]/g,
              (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`,
            ),
      )
      .join('');
  const write = (item: unknown): string => {
    if (Array.isArray(item)) {
      return `[${noise()}${item.map((x) => write(x) + noise()).join(`,${noise()}`)}]`;
    }
    if (typeof item === 'object' && item !== null) {
      const members = Object.entries(item).map(
        ([key, x]) => `"${string(key)}"${noise()}:${noise()}${write(x)}${noise()}`,
      );
      return `{${noise()}${members.join(`,${noise()}`)}}`;
    }
    return typeof item === 'string' ? `"${string(item)}"` : JSON.stringify(item);
  };
  return noise() + write(value) + noise();
}

const spelled = fc
  .tuple(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(space), fc.infiniteStream(fc.boolean()))
  .map(([value, spaces, escapes]) => ({
    value,
    write: (x: unknown) =>
      spell(
        x,
        () => spaces.next().value as string,
        () => escapes.next().value as boolean,
      ),
  }));

describe('JSON slices', () => {
  it('gives slices of any array that parse to its elements and lie where they say', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 6 }),
        spelled,
        (values, s) => {
          const text = s.write(values);
          const slices = arraySlices(text, []);
          expect(slices.map((slice) => JSON.parse(slice.text))).toEqual(JSON.parse(text));
          for (const { text: raw, start, end } of slices) {
            expect(text.slice(start, end)).toBe(raw);
            expect(raw).toBe(raw.trim());
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('gives the members of any object, decoded keys and raw values', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        spelled,
        (object, s) => {
          const text = s.write(object);
          const parsed = JSON.parse(text) as Record<string, unknown>;
          const read = objectSlices(text, []).map((m) => [m.key, JSON.parse(m.text)]);
          expect(Object.fromEntries(read)).toEqual(parsed);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('finds what JSON.parse finds at every path of a value', () => {
    const paths = (value: unknown, at: (string | number)[]): (string | number)[][] => {
      if (typeof value !== 'object' || value === null) return [at];
      const steps = Array.isArray(value)
        ? value.map((x, i) => [i, x] as const)
        : Object.entries(value);
      return [at, ...steps.flatMap(([step, x]) => paths(x, [...at, step]))];
    };
    fc.assert(
      fc.property(spelled, (s) => {
        const text = s.write(s.value);
        const parsed: unknown = JSON.parse(text);
        for (const path of paths(parsed, [])) {
          let expected = parsed;
          for (const step of path) expected = (expected as Record<string | number, unknown>)[step];
          expect(JSON.parse(valueSlice(text, path)?.text ?? '')).toEqual(expected);
        }
        expect(valueSlice(text, ['no', 'such', 'path', 0])).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it('takes the last of two equal keys, as JSON.parse does', () => {
    expect(valueSlice('{"a":1,"\\u0061":[2, 3]}', ['a'])?.text).toBe('[2, 3]');
    expect(arraySlices('{"a":[0],"a":[1]}', ['a']).map((s) => s.text)).toEqual(['1']);
  });

  it('reads braces, quotes and backslashes inside strings as text', () => {
    const raw = ['"]"', '"\\""', '"\\\\"', '{"}":"{[\\\\\\""}', '"\\u005d"'];
    expect(arraySlices(`[ ${raw.join(' ,\n')} ]`, []).map((s) => s.text)).toEqual(raw);
  });

  it('takes any depth without a stack', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(arraySlices(`[${deep},1]`, []).map((s) => s.text.length)).toEqual([200_000, 1]);
  });

  it('refuses a path without an array or object, and never runs past a broken text', () => {
    refused(() => arraySlices('{"a":{}}', ['a']), 'FINCH_INVALID_ARGUMENT', '.a');
    refused(() => objectSlices('[]', []), 'FINCH_INVALID_ARGUMENT', 'root');
    for (const broken of ['[1', '["a', '[1 2]', '[{"a":1]', '[,]', '["\\"]', '[']) {
      refused(() => arraySlices(broken, []), 'FINCH_INVALID_ARGUMENT');
    }
    for (const broken of ['{a:1}', '{"a"1}', '{"a":1 "b":2}', '{"a":}', '{"\\x":1}']) {
      refused(() => objectSlices(broken, []), 'FINCH_INVALID_ARGUMENT', 'offset');
    }
  });
});
