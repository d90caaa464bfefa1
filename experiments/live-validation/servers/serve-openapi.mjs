// One HTTP service as a process: `node serve-openapi.mjs NAME`. It serves its OpenAPI document at /openapi.json and the
// operations that stand in it.
import { createServer } from 'node:http';
import { listen } from './listen.mjs';

/**
 * @typedef {object} Operation
 * @property {'get' | 'post'} method
 * @property {string} path with `{name}` for a path parameter
 * @property {string} operationId
 * @property {string} summary
 * @property {string} [description]
 * @property {Record<string, object>} parameters schema of each: in the path where its braces are, else in the query
 *   (get) or in a JSON body (post); all are required
 * @property {(args: Record<string, any>) => object} run
 */

const [name = ''] = process.argv.slice(2);
/** @type {{ title: string, operations: Operation[] }} */
const { title, operations } = await import(new URL(`openapi/${name}.mjs`, import.meta.url).href);

/** @param {Operation} operation */
function describe({ method, path, operationId, summary, description, parameters }) {
  const entries = Object.entries(parameters);
  const inPath = (/** @type {string} */ key) => path.includes(`{${key}}`);
  const body = method === 'post' ? entries.filter(([key]) => !inPath(key)) : [];
  const rest = entries.filter((entry) => !body.includes(entry));
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    parameters: rest.map(([key, schema]) => ({
      name: key,
      in: inPath(key) ? 'path' : 'query',
      required: true,
      schema,
    })),
    ...(body.length === 0
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: Object.fromEntries(body),
                  required: body.map(([key]) => key),
                },
              },
            },
          },
        }),
    responses: { 200: { description: 'The answer' } },
  };
}

const document = {
  openapi: '3.1.0',
  info: { title, version: '1.0.0' },
  paths: Object.fromEntries(
    operations.map((operation) => [operation.path, { [operation.method]: describe(operation) }]),
  ),
};

/**
 * @param {Operation} operation
 * @param {URL} url
 */
function pathArguments({ path }, url) {
  const wanted = path.split('/');
  const given = url.pathname.split('/').map(decodeURIComponent);
  if (wanted.length !== given.length) return undefined;
  /** @type {Record<string, string>} */
  const found = {};
  for (const [i, part] of wanted.entries()) {
    const value = given[i] ?? '';
    const [, key] = /^\{(.*)\}$/.exec(part) ?? [];
    if (key !== undefined) found[key] = value;
    else if (part !== value) return undefined;
  }
  return found;
}

/**
 * @param {string} method
 * @param {URL} url
 * @param {string} body
 * @returns {[status: number, answer: object]}
 */
function answer(method, url, body) {
  if (url.pathname === '/openapi.json') return [200, document];
  for (const operation of operations) {
    const inPath = pathArguments(operation, url);
    if (inPath === undefined || operation.method !== method.toLowerCase()) continue;
    const posted = body === '' ? {} : JSON.parse(body);
    const args = { ...Object.fromEntries(url.searchParams), ...posted, ...inPath };
    const missing = Object.keys(operation.parameters).filter((key) => args[key] === undefined);
    if (missing.length > 0) return [400, { error: `missing ${missing.join(', ')}` }];
    return [200, operation.run(args)];
  }
  return [404, { error: 'no such operation' }];
}

const server = createServer(async (request, response) => {
  /** @type {[number, object]} */
  let reply;
  try {
    let body = '';
    for await (const chunk of request) body += chunk;
    reply = answer(request.method ?? 'GET', new URL(request.url ?? '/', 'http://localhost'), body);
  } catch (error) {
    reply = [422, { error: error instanceof Error ? error.message : String(error) }];
  }
  response.writeHead(reply[0], { 'content-type': 'application/json' });
  response.end(JSON.stringify(reply[1]));
});
await listen(server);
