/**
 * The value at a path such as `items[2].name`.
 *
 * @param {string} json
 * @param {string} path
 * @returns {unknown}
 */
export function valueAt(json, path) {
  let value = JSON.parse(json);
  for (const key of path.match(/[^.[\]]+/g) ?? []) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) {
      throw new Error(`nothing at ${path}: no ${key}`);
    }
    value = value[key];
  }
  return value;
}
