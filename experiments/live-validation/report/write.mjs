import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { writePicture } from '../../../dist/esm/lib/evaluate/index.js';
import { successCurve } from './curve.mjs';
import { tables } from './tables.mjs';

const page = fileURLToPath(new URL('../../../docs/live-validation.md', import.meta.url));
const chart = fileURLToPath(new URL('../../../docs/live-validation.svg', import.meta.url));
const [begin, end] = ['<!-- figures -->', '<!-- /figures -->'];

/**
 * Puts the tables into docs/live-validation.md, between its marks, and the curve beside it.
 *
 * @param {import('../experiment.mjs').Results} results
 */
export async function writeReport(results) {
  const text = await readFile(page, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the marks ${begin} … ${end}`);
  const figures = `${begin}\n\n${tables(results)}\n\n`;
  await writeFile(page, text.slice(0, from) + figures + text.slice(to));
  await writePicture(chart, successCurve(results));
}
