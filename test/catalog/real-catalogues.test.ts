import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  contentHash,
  estimateTokens,
  importTools,
  indexText,
  lexicalFields,
  metadataPriors,
} from '../../lib/catalog/index.js';
import { fixturePath } from './fixture.js';

/** The demonstration catalogue, always; the evaluation sets too where TOOLFINCH_DATA names their folder. */
const demo = fileURLToPath(new URL('../../demo/phone-assistant/tools.json', import.meta.url));
const data = process.env.TOOLFINCH_DATA;
const sets = [
  'livemcpbench_xl',
  'catalog_mcp_toucan',
  'catalog_mcp_registries',
  'toollens',
  'metatool',
  'sealtools',
  'bfcl',
  'toolbench_g1',
];
const files = [
  fixturePath('mcp-tools-list.json'),
  ...(existsSync(demo) ? [demo] : []),
  ...(data === undefined ? [] : sets.map((set) => join(data, set, 'tools.jsonl'))),
];

describe('real catalogues', () => {
  for (const file of files) {
    it(`are read whole: ${file.split('/').slice(-2).join('/')}`, () => {
      const text = readFileSync(file, 'utf8');
      const { tools, warnings } = importTools(text, { origin: file });
      expect(warnings).toEqual([]);
      const given: Record<string, unknown>[] = file.endsWith('.jsonl')
        ? text
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => JSON.parse(line))
        : JSON.parse(text).tools;
      expect(tools).toHaveLength(given.length);
      // One check per catalogue and property: thousands of assertions would take longer than the work.
      let at = 0;
      const wrong: string[] = [];
      const check = (holds: boolean, what: string, id: string): void => {
        if (!holds) wrong.push(`${what}: ${id}`);
      };
      const hashes = new Set<string>();
      tools.forEach((tool, i) => {
        const value = given[i] ?? {};
        // Byte for byte, in order, and nothing but separators between two tools.
        const found = text.indexOf(tool.definition, at);
        check(found >= at && (i === 0 || !/[^\s,]/.test(text.slice(at, found))), 'bytes', tool.id);
        at = found + tool.definition.length;
        check(tool.name === value.name, 'name', tool.id);
        check(tool.id === (value.id ?? value.name), 'id', tool.id);
        check(tool.description === (value.description ?? ''), 'description', tool.id);
        const index = indexText(tool);
        check(index !== '' && Array.from(index).length <= 1000, 'length', tool.id);
        check(!/[\n\t]| {2}/.test(index), 'white space', tool.id);
        hashes.add(contentHash(tool, index));
        check(lexicalFields(tool).name !== '', 'lexical', tool.id);
        check(estimateTokens(tool) > 8, 'tokens', tool.id);
      });
      expect(wrong).toEqual([]);
      expect(hashes.size).toBeGreaterThan(tools.length * 0.8);
      const priors = metadataPriors(tools, new Float32Array(tools.length).fill(0.5));
      expect(Math.min(...priors)).toBeGreaterThanOrEqual(0.25);
      expect(Math.max(...priors)).toBeLessThanOrEqual(1);
    });
  }
});
