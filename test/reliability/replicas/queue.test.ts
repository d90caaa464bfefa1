import { writeFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { feedbackLimits } from '../../../lib/reliability/feedback-options.js';
import type { OutcomeRecord } from '../../../lib/reliability/records.js';
import { decodeRecord } from '../../../lib/reliability/records.js';
import { readOrigin, writeOrigin } from '../../../lib/reliability/replicas/origin-file.js';
import { type QueueOptions, ReportQueue } from '../../../lib/reliability/replicas/report-queue.js';
import { context, dimension, expectCode, fakeOptions, scratch } from '../scratch.js';
import { closing } from './redis-server.js';

const meta = JSON.stringify({ dimension, catalogue: 'here' });

async function openQueue(
  folder: string,
  more: Partial<QueueOptions> = {},
): Promise<{ queue: ReportQueue; state: Buffer | undefined }> {
  const opened = await ReportQueue.open({
    folder,
    meta,
    sync: 'none',
    onCorruption: 'fail',
    limits: feedbackLimits(fakeOptions()),
    maxWaiting: 1000,
    retryMs: 0,
    compactBytes: 4000,
    retainMs: 0,
    now: () => 5,
    ...more,
  });
  closing({ close: () => opened.queue.abandon() });
  return opened;
}

function outcome(i: number): OutcomeRecord {
  return {
    type: 'outcome',
    decisionId: `d${i}`,
    toolId: 'mail',
    outcome: 'success',
    at: i,
    time: i,
    prior: 0.5,
    x: context(i),
  };
}

/** Reads all that waits, in batches, as delivery does. */
async function drain(queue: ReportQueue, most = 7): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const records = await queue.next(most, 1e6);
    for (const { payload } of records)
      ids.push((decodeRecord(payload) as OutcomeRecord).decisionId);
    const last = records.at(-1);
    if (last === undefined) return ids;
    expect(records.length).toBeLessThanOrEqual(most);
    expect(records[0]?.sequence).toBe(queue.delivered + 1);
    queue.confirm(last.sequence, last.sequence);
  }
}

it('gives each record once and in order, however it is written, read, compacted and opened again', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 30 }) }),
    fc.record({
      kind: fc.constantFrom('drain', 'some', 'save', 'reopen'),
      count: fc.integer({ min: 1, max: 9 }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const folder = scratch();
      let { queue } = await openQueue(folder);
      let made = 0;
      const read: string[] = [];
      for (const { kind, count } of steps) {
        if (kind === 'append') {
          const from = made;
          made += count;
          await Promise.all(
            Array.from({ length: count }, (_, i) => queue.append(outcome(from + i))),
          );
        } else if (kind === 'drain') read.push(...(await drain(queue, count)));
        else if (kind === 'some') {
          const records = await queue.next(count, 1e6);
          read.push(
            ...records.map(({ payload }) => (decodeRecord(payload) as OutcomeRecord).decisionId),
          );
          const last = records.at(-1);
          if (last !== undefined) queue.confirm(last.sequence, last.sequence);
        } else if (kind === 'save') {
          queue.coveredTo(queue.delivered);
          await queue.save([Buffer.from('state')]);
        } else {
          const { delivered } = queue;
          await queue.close([Buffer.from('state')]);
          const opened = await openQueue(folder);
          expect(opened.state?.toString()).toBe('state');
          ({ queue } = opened);
          expect(queue.stored).toBe(made);
          queue.rewind(delivered, delivered);
        }
        expect(queue.waiting).toBe(queue.stored - queue.delivered);
      }
      read.push(...(await drain(queue)));
      expect(read).toEqual(Array.from({ length: made }, (_, i) => `d${i}`));
      await queue.close([]);
    }),
    { numRuns: 40 },
  );
});

it('keeps what is not safe in Redis, and lets go of what is', async () => {
  const { queue } = await openQueue(scratch());
  const append = (from: number) =>
    Promise.all(Array.from({ length: 40 }, (_, i) => queue.append(outcome(from + i))));
  await append(0);
  await append(40);
  expect(queue.compactable).toBe(false);
  await drain(queue);
  // Delivered, but no snapshot in Redis has it.
  expect(queue.compactable).toBe(false);
  await queue.save([]);
  expect(queue.floor).toBe(0);
  queue.coveredTo(40);
  expect(queue.compactable).toBe(true);
  await queue.save([]);
  expect(queue.floor).toBeGreaterThan(0);
  expect(queue.floor).toBeLessThanOrEqual(40);
  // Redis went back: everything above the floor can be had again.
  const { floor } = queue;
  queue.rewind(floor, 0);
  expect(await drain(queue)).toEqual(Array.from({ length: 80 - floor }, (_, i) => `d${floor + i}`));
});

it('keeps delivered records for their time', async () => {
  const { queue } = await openQueue(scratch(), { retainMs: 1e6 });
  for (let i = 0; i < 100; i++) await queue.append(outcome(i));
  await drain(queue);
  queue.coveredTo(1000);
  expect(queue.compactable).toBe(false);
  await queue.save([]);
  expect(queue.floor).toBe(0);
});

it('marks so many deliveries, and stays right', async () => {
  const { queue } = await openQueue(scratch());
  for (let i = 1; i <= 20_000; i++) queue.confirm(i, i);
  queue.coveredTo(10_000);
  await queue.save([]);
  expect(queue.floor).toBeLessThanOrEqual(10_000);
  expect(queue.floor).toBeGreaterThan(9_000);
});

it('refuses more than may wait', async () => {
  const { queue } = await openQueue(scratch(), { maxWaiting: 3 });
  for (let i = 0; i < 3; i++) await queue.append(outcome(i));
  const error = await expectCode(queue.append(outcome(3)), 'FINCH_IO');
  expect(error.message).toContain('queue of reports is full');
  expect(queue.waiting).toBe(3);
  queue.confirm(2, 2);
  await queue.append(outcome(4));
});

it('names a folder once, and anew when it must', async () => {
  const folder = scratch();
  const first = await readOrigin(folder);
  expect(await readOrigin(folder)).toEqual(first);
  const second = await writeOrigin(folder, 17);
  expect(second.id).not.toBe(first.id);
  expect(await readOrigin(folder)).toEqual({ id: second.id, base: 17 });
  for (const text of ['', '{}', 'null', '{"id":"x","base":0}', `{"id":"${first.id}","base":-1}`]) {
    writeFileSync(path.join(folder, 'replica.json'), text);
    await expectCode(readOrigin(folder), 'FINCH_CORRUPT');
  }
});
