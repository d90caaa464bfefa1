import { toHtml } from '../abilities/markdown.mjs';
import { words } from '../abilities/words.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Help for people who write for the web.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'render_markdown',
    description: 'Render a text written in Markdown as an HTML fragment for a web page.',
    inputSchema: object({ source: string('Text in Markdown') }),
    run: ({ source }) => ({ html: toHtml(source) }),
  },
  {
    name: 'word_count',
    description: 'Number of words in a document, with the time it takes to read.',
    inputSchema: object({ document: string('The document’s text') }),
    run: ({ document }) => {
      const count = words(document).length;
      return { words: count, reading_seconds: Math.round((count / 230) * 60) };
    },
  },
  {
    name: 'make_slug',
    description: 'Turn a headline into a slug for the address of a page: lower case, with hyphens.',
    inputSchema: object({ title: string('The headline') }),
    run: ({ title }) => words(title).join('-'),
  },
];
