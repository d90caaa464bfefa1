import { object, string } from '../schema.mjs';

export const about = 'Web addresses.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'parse_url',
    description: 'Parse a URL: host name, port, path, and the parameters of its query.',
    inputSchema: object({ url: string('The URL to parse') }),
    run: ({ url }) => {
      const { host, hostname, pathname, searchParams } = new URL(url);
      return { host, hostname, path: pathname, parameters: Object.fromEntries(searchParams) };
    },
  },
  {
    name: 'percent_encode',
    description: 'Percent-encode a text so that it can stand in the query of a URL.',
    inputSchema: object({ text: string('The text') }),
    run: ({ text }) => encodeURIComponent(text),
  },
];
