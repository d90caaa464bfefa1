// The agent's stand-in for a model that fills in arguments: by the parameters' names, and nothing else.

const texts = ['text', 'message', 'document', 'source', 'markdown', 'content', 'body', 'data'];

/** Names a parameter may have that takes a slot of this role, the likeliest first. @type {Record<string, string[]>} */
const parameterNames = {
  text: texts,
  markdown: ['markdown', 'source', ...texts],
  json: ['json', 'data', ...texts],
  csv: ['csv', 'table', 'data', ...texts],
  base64: ['encoded', 'base64', ...texts],
  url: ['url', ...texts],
  title: ['title', 'name'],
  body: ['body', 'content', ...texts],
  value: ['value', 'quantity', 'number'],
  from: ['from_unit', 'source_unit'],
  to: ['to_unit', 'target_unit'],
  number: ['number', 'value'],
  a: ['a'],
  b: ['b'],
  expression: ['expression', 'formula', ...texts],
  hex: ['hex', 'colour'],
  foreground: ['foreground'],
  background: ['background'],
  date: ['date', 'start'],
  time: ['time'],
  zone: ['zone'],
  from_zone: ['from_zone'],
  to_zone: ['to_zone'],
  days: ['days'],
  start: ['start', 'from_date'],
  end: ['end', 'to_date'],
  items: ['items', 'values'],
  order: ['order'],
  column: ['column'],
  path: ['path'],
  algorithm: ['algorithm'],
  key: ['key'],
  pattern: ['pattern', 'regex'],
  replacement: ['replacement'],
  before: ['before', 'old_text'],
  after: ['after', 'new_text'],
  query: ['query', ...texts],
};

/**
 * Arguments for a tool from what the user gave; undefined when they do not fit: every required parameter must get a slot
 * of its type, and every slot a parameter.
 *
 * @param {import('../../../dist/esm/lib/index.js').Tool} tool
 * @param {Readonly<Record<string, unknown>>} slots
 * @returns {Record<string, unknown> | undefined}
 */
export function fillArguments(tool, slots) {
  const properties = /** @type {Record<string, Record<string, unknown>>} */ (
    tool.parameters?.properties ?? {}
  );
  /** @type {Record<string, unknown>} */
  const args = {};
  for (const [role, value] of Object.entries(slots)) {
    const name = (parameterNames[role] ?? [role]).find(
      (each) => args[each] === undefined && takes(properties[each], value),
    );
    if (name === undefined) return undefined;
    args[name] = value;
  }
  const required = /** @type {string[]} */ (tool.parameters?.required ?? []);
  return required.every((name) => args[name] !== undefined) ? args : undefined;
}

/**
 * @param {Record<string, unknown> | undefined} schema
 * @param {unknown} value
 */
function takes(schema, value) {
  if (schema === undefined) return false;
  if (Array.isArray(schema.enum)) return schema.enum.includes(value);
  switch (schema.type) {
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    default:
      return typeof value === schema.type;
  }
}
