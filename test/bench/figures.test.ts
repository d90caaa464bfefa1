// The arithmetic behind the benchmarks' tables.
import { expect, test } from 'vitest';

import { recallOf } from '../../bench/catalogue.mjs';
import { floorOf } from '../../bench/limits.mjs';
import { speedAt } from '../../bench/parts/ann.mjs';
import { message } from '../../bench/peers/protobuf.mjs';
import { budgetTable } from '../../bench/report/budgets.mjs';
import { bytesText, digits, markdownTable, plainTable } from '../../bench/report/numbers.mjs';
import { ratio, roundRobin, summary } from '../../bench/rounds.mjs';

test('medians and spread', () => {
  expect(summary([3, 1, 2])).toEqual({ median: 2, p10: 1.2, p90: 2.8, n: 3 });
  expect(summary([4])).toEqual({ median: 4, p10: 4, p90: 4, n: 1 });
});

test('ratios pair what was measured in the same round', () => {
  const slow = { samples: [10, 40, 30], rounds: [0, 2, 4] };
  const fast = { samples: [1, 2, 100, 3], rounds: [0, 2, 3, 4] };
  expect(ratio(slow, fast)).toMatchObject({ median: 10, n: 3 });
  expect(ratio({ samples: [6], rounds: [0] }, { samples: [3], rounds: [1] }).median).toBe(2);
});

test('everyone has a turn, and the slow at least the least number', async () => {
  const order: string[] = [];
  const contestant = (name: string, ms: number) => ({
    name,
    timed: async (times: number) => {
      order.push(name);
      return (times * ms) / 1000;
    },
  });
  const found = await roundRobin([contestant('fast', 3), contestant('slow', 1000)], {
    budgetMs: 60,
    least: 3,
  });
  const { fast, slow } = Object.fromEntries(found);
  expect(slow.samples).toEqual([1000, 1000, 1000]);
  expect(fast.samples).toHaveLength(10);
  expect(summary(fast.samples).median).toBeCloseTo(3, 9);
  // Spread over the run, not all at its end.
  expect(slow.rounds[0]).toBeLessThan(5);
  expect(order.filter((name) => name === 'slow')).toHaveLength(5);
});

test('the floor is the longer of reading and computing', () => {
  const rates = new Map([
    ['read 4096000', 4.096e9],
    ['read 1024000', 1.024e9],
    ['peak f32', 1e9],
    ['peak i8', 1e12],
  ]);
  const shape = { count: 1000, dimension: 1024, threads: 1 };
  expect(floorOf(rates, 'f32', { ...shape, batch: 1 })).toEqual({ ms: 2.048, by: 'arithmetic' });
  rates.set('peak f32', 1e12);
  expect(floorOf(rates, 'f32', { ...shape, batch: 1 })).toEqual({ ms: 1, by: 'bandwidth' });
  expect(floorOf(rates, 'i8', { ...shape, batch: 1 })).toEqual({ ms: 1, by: 'bandwidth' });
});

test('speed at a recall lies between the points beside it', () => {
  const points = [
    { recall: 0.98, queriesPerSecond: 1000 },
    { recall: 1, queriesPerSecond: 500 },
  ];
  expect(speedAt(points, 0.99)).toBeCloseTo(750);
  expect(speedAt(points, 0.97)).toBe(1000);
  expect(speedAt(points.slice(0, 1), 0.99)).toBeNull();
});

test('recall counts each row once', () => {
  expect(recallOf([1, 1, 2, 9], 4, [[1, 2]])).toBe(1);
  expect(recallOf([1, 1, 5, 9], 4, [[1, 2]])).toBe(0.5);
});

test('a budget is reached when every case is', () => {
  const cell = (over: number, batch: number, usearch: number) => ({
    count: 1000,
    dimension: 64,
    batch,
    threads: 1,
    limits: {},
    comparisons: [],
    rows: [
      { name: 'toolfinch f32', overFloor: { median: over } },
      { name: 'usearch f32', oursIsFaster: { median: usearch } },
    ],
  });
  const lines = (cells: unknown[]) =>
    budgetTable({ exact: cells }, { python: false, parts: ['exact'] });
  const find = (cells: unknown[], what: string) =>
    lines(cells).find((line: { what: string }) => line.what.includes(what));
  expect(find([cell(1.1, 1, 2), cell(1.14, 1, 2)], '1 query: time')).toMatchObject({
    reached: true,
    worst: { value: 1.14 },
  });
  expect(find([cell(1.1, 1, 2), cell(1.3, 1, 2)], '1 query: time')).toMatchObject({
    reached: false,
    worst: { value: 1.3 },
  });
  expect(find([cell(1, 256, 14), cell(1, 256, 20)], 'usearch exactSearch')).toMatchObject({
    reached: true,
    worst: { value: 14 },
  });
  expect(find([cell(1, 256, 14)], 'torch bf16 mm')).toMatchObject({ reached: null });
  expect(find([], 'bandit score, a resident arm')).toMatchObject({
    reached: null,
    why: "the part 'reliability' was not run",
  });
});

test('numbers and tables as text', () => {
  expect([0.00123456, 1.5, 123.4, 98765].map((value) => digits(value))).toEqual([
    '0.00123',
    '1.50',
    '123',
    '98765',
  ]);
  expect(digits(Number.NaN)).toBe('-');
  expect(bytesText(180 * 2 ** 20)).toBe('180 MiB');
  expect(
    plainTable([
      ['a', 'b'],
      ['x', 10],
    ]),
  ).toBe('a   b\n-  --\nx  10');
  expect(markdownTable([['a'], ['x|y']])).toBe('| a |\n| --- |\n| x\\|y |');
});

test('protocol buffers: varints, strings and messages', () => {
  // The examples of the encoding's own documentation: 150 as field 1, "testing" as field 2, a message as field 3.
  expect(message([[1, 150]]).toString('hex')).toBe('089601');
  expect(message([[2, 'testing']]).toString('hex')).toBe('120774657374696e67');
  expect(message([[3, [[1, 150]]]]).toString('hex')).toBe('1a03089601');
});
