/** A short, safe form of a text from outside for use in a message: one line, at most `max` characters, quoted. */
export function excerpt(text: string, max = 60): string {
  const line = text.slice(0, max * 4).replace(/[\s\p{Cc}\p{Surrogate}]+/gu, ' ');
  return line.length > max || text.length > max * 4
    ? `'${Array.from(line).slice(0, max).join('')}…'`
    : `'${line}'`;
}

/** What a value is, in the words of JSON, for a message. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  switch (typeof value) {
    case 'string':
      return `the string ${excerpt(value)}`;
    case 'number':
    case 'boolean':
      return `the ${typeof value} ${String(value)}`;
    case 'object': {
      const keys = Object.keys(value);
      if (keys.length === 0) return 'an empty object';
      const shown = keys.slice(0, 6).map((key) => excerpt(key, 24));
      return `an object with ${shown.join(', ')}${keys.length > 6 ? `, … (${keys.length} keys)` : ''}`;
    }
    default:
      return `a ${typeof value}`;
  }
}

/** A value as JSON where it has any and it is short, else what it is; never throws. */
export function shown(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? kindOf(value);
    return text.length <= 200 ? text : kindOf(value);
  } catch {
    // Cycles and bigints have no JSON.
    return kindOf(value);
  }
}
