// That the benchmark suite works and writes what it says. What it measures here means nothing and decides nothing.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { parseXml } from '../evaluate/parse-xml.js';
import { root } from '../native/addon.js';

interface Stats {
  median: number;
  p10: number;
  p90: number;
  n: number;
}
interface Row {
  name: string;
  ours: boolean;
  storage: string | null;
  ms: Stats;
  queriesTimed: number;
  recall: number;
  maxError: number | null;
}
interface Cell {
  count: number;
  batch: number;
  threads: number;
  floors: Record<string, { ms: number; by: string }>;
  limits: Record<string, number>;
  rows: Row[];
}
interface Report {
  mode: string;
  machine: Record<string, unknown>;
  results: {
    limits: { threads: number; reads: { perSecond: Stats }[]; peaks: Record<string, Stats> }[];
    exact: Cell[];
    growth: { curve: string; ms: Record<string, Stats> }[];
    ann: { curves: { name: string; points: { recall: number; queriesPerSecond: number }[] }[] }[];
    reliability: { insideNs: Record<string, Stats>; nodeUs: Record<string, Stats> };
    select: { us: Record<string, Stats> };
    crossingNs: Record<string, Stats>;
  };
  budgets: { what: string; target: string; reached: boolean | null; why?: string }[];
  skipped: { what: string; why: string }[];
}

const run = promisify(execFile);
const script = path.join(root, 'bench/run.mjs');
let folder: string;
let stdout: string;
let report: Report;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'finch-bench-'));
  const made = await run(process.execPath, [script, '--smoke', '--offline', '--out', folder], {
    maxBuffer: 1 << 24,
  });
  stdout = made.stdout;
  const [json] = readdirSync(folder).filter((file) => file.endsWith('.json'));
  report = JSON.parse(readFileSync(path.join(folder, json ?? ''), 'utf8')) as Report;
  // It may have to compile the core first.
}, 1_200_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function expectStats({ median, p10, p90, n }: Stats): void {
  expect(median).toBeGreaterThan(0);
  expect(p10).toBeLessThanOrEqual(median);
  expect(p90).toBeGreaterThanOrEqual(median);
  expect(n).toBeGreaterThan(0);
}

test('says what it ran on', () => {
  expect(report.mode).toBe('smoke');
  for (const key of ['cpu', 'cores', 'isa', 'node', 'date', 'commit', 'platform'])
    expect(report.machine[key]).toBeTruthy();
});

test('measures the machine', () => {
  expect(report.results.limits.length).toBeGreaterThan(0);
  for (const { reads, peaks } of report.results.limits) {
    for (const { perSecond } of reads) expectStats(perSecond);
    expect(Object.keys(peaks)).toContain('f32');
    for (const peak of Object.values(peaks)) expectStats(peak);
  }
});

test('searches exactly, and says how exactly', () => {
  const { exact } = report.results;
  expect(exact.length).toBeGreaterThanOrEqual(4);
  for (const { rows, floors, batch, threads } of exact) {
    expect(rows.some(({ name }) => name === 'toolfinch f32')).toBe(true);
    // Some peers have one thread.
    if (threads === 1) expect(rows.some(({ name }) => name === 'plain JavaScript')).toBe(true);
    for (const { ms } of Object.values(floors)) expect(ms).toBeGreaterThan(0);
    for (const { name, ms, recall, maxError, queriesTimed, storage } of rows) {
      expectStats(ms);
      expect(queriesTimed).toBeLessThanOrEqual(batch);
      // Peers that compute in float32 find what the float64 reference finds, so both are read rightly.
      const rough = /i8|bf16|f16/.test(name) && storage === null;
      expect(recall).toBeGreaterThan(rough ? 0.4 : 0.999);
      if (maxError !== null) expect(maxError).toBeLessThan(rough ? 0.05 : 1e-5);
    }
  }
});

test('draws curves of growth and of approximate search', () => {
  const curves = new Set(report.results.growth.map(({ curve }) => curve));
  expect([...curves].sort()).toEqual(['queries', 'vectors']);
  const ours = report.results.ann[0]?.curves.find(({ name }) => name === 'toolfinch');
  expect(ours?.points.length).toBe(7);
  for (const { recall, queriesPerSecond } of ours?.points ?? []) {
    expect(recall).toBeGreaterThan(0.8);
    expect(queriesPerSecond).toBeGreaterThan(0);
  }
});

test('times reliability, selection and calls', () => {
  const { reliability, select, crossingNs } = report.results;
  for (const group of [reliability.insideNs, reliability.nodeUs, select.us, crossingNs]) {
    expect(Object.keys(group).length).toBeGreaterThan(0);
    for (const stats of Object.values(group)) expectStats(stats);
  }
});

test('holds every budget against what was measured, or says why not', () => {
  expect(report.budgets.length).toBeGreaterThan(20);
  for (const { reached, why, what, target } of report.budgets) {
    expect(what && target).toBeTruthy();
    if (reached === null) expect(why).toBeTruthy();
    else expect(reached).toBeTypeOf('boolean');
  }
  for (const text of ['Budgets', 'Exact search', 'toolfinch f32', 'Read bandwidth'])
    expect(stdout).toContain(text);
});

test('draws pictures that are sound', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.svg'));
  for (const kind of ['roofline', 'speedup', 'growth-vectors', 'growth-queries', 'ann'])
    expect(files.some((file) => file.includes(kind))).toBe(true);
  for (const file of files) {
    const text = readFileSync(path.join(folder, file), 'utf8');
    expect(parseXml(text).name).toBe('svg');
    expect(text).not.toMatch(/NaN|Infinity|undefined/);
  }
});

test('prints the tables of a results file as Markdown', async () => {
  const [json] = readdirSync(folder).filter((file) => file.endsWith('.json'));
  const file = path.join(folder, json ?? '');
  const { stdout: markdown } = await run(process.execPath, [script, '--markdown', file]);
  expect(markdown).toContain('### Budgets');
  const rows = markdown.split('\n').filter((line) => line.startsWith('| '));
  expect(rows.length).toBeGreaterThan(40);
  expect(markdown).not.toMatch(/NaN|undefined|\[object/);
});

test.each([
  [['--only', 'nothing'], 'there is no such part'],
  [['--threads', 'two'], 'expected whole numbers'],
  [['--smoke', '--full'], 'exclude each other'],
])('refuses %j', async (args, message) => {
  await expect(run(process.execPath, [script, ...args])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(message) as string,
  });
});
