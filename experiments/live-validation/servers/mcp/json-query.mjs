import { valueAt } from '../abilities/json-path.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Looking into JSON documents.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'query_json',
    description: 'Get the value at a path, such as items[2].name, out of a JSON document.',
    inputSchema: object({
      json: string('The JSON document'),
      path: string('Where the value is'),
    }),
    run: ({ json, path }) => JSON.stringify(valueAt(json, path)),
  },
  {
    name: 'list_json_keys',
    description: 'List the keys at the top of a JSON object.',
    inputSchema: object({ json: string('The JSON document') }),
    run: ({ json }) => Object.keys(JSON.parse(json)).join(', '),
  },
];
