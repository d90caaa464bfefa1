import { changedLines } from '../abilities/lines.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Differences between texts.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'diff_texts',
    description: 'Show which lines differ between two texts, as a diff with + and -.',
    inputSchema: object({ before: string('The old text'), after: string('The new text') }),
    run: ({ before, after }) => changedLines(before, after).join('\n') || 'no difference',
  },
];
