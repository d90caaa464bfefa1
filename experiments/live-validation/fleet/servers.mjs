import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * A server of the experiment.
 *
 * @typedef {object} ServerPlan
 * @property {string} name
 * @property {'stdio' | 'http' | 'openapi'} kind MCP over standard streams, MCP over streamable HTTP, plain HTTP
 * @property {string[]} args of node
 * @property {Record<string, string>} env
 * @property {string} [partial] a regular expression for the arguments of the one kind of input a `partial` fault spoils
 */

const here = fileURLToPath(new URL('..', import.meta.url));
const packages = path.join(here, '../../node_modules/@modelcontextprotocol');

/** The one kind of input that each of these may get wrong. @type {Record<string, string>} */
const partials = {
  units: 'celsius|fahrenheit|kelvin',
  engineer: 'celsius|fahrenheit|kelvin',
  hashing: 'sha512',
  security: 'sha512',
  calculator: '/',
  clock: 'Asia/',
  'json-query': '\\[',
  markdown: '\\]\\(',
};

const overHttp = ['engineer', 'writer', 'data-desk', 'security', 'review'];
const overStdio = [
  ...['clock', 'units', 'calculator', 'text-statistics', 'markdown', 'json-query', 'csv', 'lists'],
  ...['hashing', 'encoding', 'urls', 'regex', 'diff', 'notes', 'journal', 'calendar', 'colours'],
  'numbers',
];
const openApi = ['almanac', 'maths', 'design'];

/**
 * All servers, in the order they are imported.
 *
 * @param {string} folder for their files; see `prepareFolder`
 * @returns {ServerPlan[]}
 */
export function planServers(folder) {
  const official = (
    /** @type {string} */ name,
    /** @type {string} */ of,
    /** @type {string[]} */ args,
    env = {},
  ) => ({
    name,
    kind: /** @type {const} */ ('stdio'),
    args: [path.join(packages, of, 'dist/index.js'), ...args],
    env,
  });
  const graph = (/** @type {string} */ name) => ({
    MEMORY_FILE_PATH: path.join(folder, `${name}.jsonl`),
  });
  const serve = path.join(here, 'servers');
  const own = (/** @type {ServerPlan['kind']} */ kind) => (/** @type {string} */ name) => ({
    name,
    kind,
    args:
      kind === 'openapi'
        ? [path.join(serve, 'serve-openapi.mjs'), name]
        : [path.join(serve, 'serve-mcp.mjs'), name, kind],
    env: { NOTES_FOLDER: path.join(folder, name) },
    ...(partials[name] === undefined ? {} : { partial: partials[name] }),
  });
  return [
    official('everything', 'server-everything', ['stdio']),
    official('files', 'server-filesystem', [path.join(folder, 'files')]),
    official('archive', 'server-filesystem', [path.join(folder, 'files')]),
    official('memory', 'server-memory', [], graph('memory')),
    official('library', 'server-memory', [], graph('library')),
    ...overStdio.map(own('stdio')),
    ...overHttp.map(own('http')),
    ...openApi.map(own('openapi')),
  ];
}
