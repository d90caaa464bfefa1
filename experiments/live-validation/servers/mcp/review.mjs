import { changedLines } from '../abilities/lines.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Help for reviewers of documents and code.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'compare_versions',
    description:
      'Compare two versions of a document and list the lines that were added or removed.',
    inputSchema: object({
      old_text: string('The earlier version'),
      new_text: string('The later version'),
    }),
    run: ({ old_text, new_text }) => ({ changes: changedLines(old_text, new_text) }),
  },
  {
    name: 'search_with_regex',
    description: 'Search a document with a regular expression and return everything that matches.',
    inputSchema: object({
      document: string('The document'),
      regex: string('The regular expression'),
    }),
    run: ({ document, regex }) => ({ matches: document.match(new RegExp(regex, 'g')) ?? [] }),
  },
];
