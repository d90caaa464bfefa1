import { toHtml } from '../abilities/markdown.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Markdown documents.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'markdown_to_html',
    description: 'Convert a Markdown document to HTML.',
    inputSchema: object({ markdown: string('The Markdown text') }),
    run: ({ markdown }) => toHtml(markdown),
  },
  {
    name: 'table_of_contents',
    description: 'List the headings of a Markdown document as an outline.',
    inputSchema: object({ markdown: string('The Markdown text') }),
    run: ({ markdown }) =>
      markdown
        .split('\n')
        .filter((/** @type {string} */ line) => /^#{1,6} /.test(line))
        .map((/** @type {string} */ line) => line.replace(/^#+ /, ''))
        .join('\n'),
  },
];
