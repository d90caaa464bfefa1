import { sorted } from '../abilities/tables.mjs';
import { list, object, oneOf } from '../schema.mjs';

export const about = 'Lists of words.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'sort_list',
    description: 'Sort the items of a list alphabetically, ascending or descending.',
    inputSchema: object({
      items: list({ type: 'string' }, 'What to sort'),
      order: oneOf(['ascending', 'descending'], 'Direction of sorting'),
    }),
    run: ({ items, order }) => sorted(items, order).join('\n'),
  },
  {
    name: 'remove_duplicates',
    description: 'Remove repeated items from a list, keeping the first of each.',
    inputSchema: object({ items: list({ type: 'string' }, 'The list') }),
    run: ({ items }) => [...new Set(items)].join('\n'),
  },
];
