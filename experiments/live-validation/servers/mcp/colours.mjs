import { contrast, rgbOf } from '../abilities/colours.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Colours.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'hex_to_rgb',
    description: 'Convert a hexadecimal colour such as #ff8800 to its RGB values.',
    inputSchema: object({ hex: string('The colour, #rrggbb') }),
    run: ({ hex }) => `rgb(${rgbOf(hex).join(', ')})`,
  },
  {
    name: 'contrast_ratio',
    description: 'Contrast ratio of a text colour on a background colour, for accessibility.',
    inputSchema: object({
      foreground: string('Colour of the text, #rrggbb'),
      background: string('Colour behind it, #rrggbb'),
    }),
    run: ({ foreground, background }) => `${contrast(foreground, background)} : 1`,
  },
];
