import { object, string } from '../schema.mjs';

export const about = 'Encodings of texts and addresses.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'base64_encode',
    description: 'Encode a text as Base64.',
    inputSchema: object({ text: string('The text to encode') }),
    run: ({ text }) => Buffer.from(text, 'utf8').toString('base64'),
  },
  {
    name: 'base64_decode',
    description: 'Decode Base64 to the text it stands for.',
    inputSchema: object({ encoded: string('Base64') }),
    run: ({ encoded }) => Buffer.from(encoded, 'base64').toString('utf8'),
  },
  {
    name: 'split_url',
    description: 'Split a web address into its parts: protocol, host, port, path and query.',
    inputSchema: object({ url: string('The web address') }),
    run: ({ url }) => {
      const { protocol, hostname, port, pathname, search } = new URL(url);
      return { protocol, hostname, port, pathname, search };
    },
  },
];
