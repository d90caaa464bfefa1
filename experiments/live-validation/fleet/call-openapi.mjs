/**
 * Calls an operation that was imported from an OpenAPI document: its arguments go to the places that the document names.
 *
 * @param {import('../../../dist/esm/lib/index.js').Tool} tool
 * @param {Readonly<Record<string, unknown>>} args
 * @param {{ base: string, token: string, timeoutMs: number }} server
 * @returns {Promise<string>} the answer's text
 */
export async function callOpenApi(tool, args, { base, token, timeoutMs }) {
  const [method = 'GET', template = '/'] = (tool.endpoint ?? '').split(' ');
  const rest = { ...args };
  const at = template.replace(/\{(.*?)\}/g, (_, name) => {
    const value = encodeURIComponent(String(rest[name]));
    delete rest[name];
    return value;
  });
  const url = new URL(base + at);
  /** @type {{ parameters?: { name: string, in: string }[] }} */
  const operation = JSON.parse(tool.definition);
  for (const { name, in: place } of operation.parameters ?? []) {
    if (place !== 'query' || rest[name] === undefined) continue;
    url.searchParams.set(name, String(rest[name]));
    delete rest[name];
  }
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
    },
    ...(method === 'GET' ? {} : { body: JSON.stringify(rest) }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`HTTP ${response.status}: ${text.slice(0, 200)}`);
  return text;
}
