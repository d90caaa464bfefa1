// JSON Schema of the tools' arguments, written short.

/** @param {string} description */
export const string = (description) => ({ type: 'string', description });

/** @param {string} description */
export const number = (description) => ({ type: 'number', description });

/** @param {string} description */
export const integer = (description) => ({ type: 'integer', description });

/**
 * @param {string[]} values
 * @param {string} description
 */
export const oneOf = (values, description) => ({ type: 'string', enum: values, description });

/**
 * @param {object} items
 * @param {string} description
 */
export const list = (items, description) => ({ type: 'array', items, description });

/**
 * An object whose properties are all required.
 *
 * @param {Record<string, unknown>} properties
 * @returns {{ type: 'object', properties: Record<string, unknown>, required: string[] }}
 */
export const object = (properties) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});
