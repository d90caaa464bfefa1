import { object, string } from '../schema.mjs';

export const about = 'Regular expressions.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'find_matches',
    description: 'Find all matches of a regular expression in a text.',
    inputSchema: object({
      text: string('Where to look'),
      pattern: string('The regular expression'),
    }),
    run: ({ text, pattern }) => text.match(new RegExp(pattern, 'g'))?.join('\n') ?? 'no match',
  },
  {
    name: 'replace_matches',
    description: 'Replace every match of a regular expression in a text with another text.',
    inputSchema: object({
      text: string('Where to look'),
      pattern: string('The regular expression'),
      replacement: string('What to put in place of each match'),
    }),
    run: ({ text, pattern, replacement }) => text.replace(new RegExp(pattern, 'g'), replacement),
  },
];
