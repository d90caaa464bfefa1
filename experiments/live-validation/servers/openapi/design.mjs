import { contrast, rgbOf } from '../abilities/colours.mjs';
import { toHtml } from '../abilities/markdown.mjs';
import { string } from '../schema.mjs';

export const title = 'Design service';

/** @type {import('../serve-openapi.mjs').Operation[]} */
export const operations = [
  {
    method: 'get',
    path: '/colours',
    operationId: 'getRgb',
    summary: 'RGB values (red, green, blue) of a hex colour code',
    parameters: { hex: string('#rrggbb') },
    run: (args) => ({ rgb: rgbOf(args.hex) }),
  },
  {
    method: 'get',
    path: '/contrast',
    operationId: 'getContrast',
    summary: 'Contrast between the colour of a text and its background',
    parameters: { foreground: string('#rrggbb'), background: string('#rrggbb') },
    run: (args) => ({ ratio: contrast(args.foreground, args.background) }),
  },
  {
    method: 'post',
    path: '/pages',
    operationId: 'renderPage',
    summary: 'Make HTML of a Markdown text',
    parameters: { markdown: string('The text') },
    run: (args) => ({ html: toHtml(args.markdown) }),
  },
];
