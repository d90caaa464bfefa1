import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeRecord, type FeedbackRecord } from '../../../lib/reliability/records.js';
import { Diverged, ReplicatedState } from '../../../lib/reliability/replicas/replicated-state.js';
import { maxOrigins } from '../../../lib/reliability/replicas/scripts.js';
import type { StreamEntry } from '../../../lib/reliability/replicas/stream-entry.js';
import { FakeBandit } from '../fake-bandit.js';
import { bytesOf, context, dimension, expectCode } from '../scratch.js';

const limits = { maxReports: 1000, reportAgeMs: 1e9 };

function empty(more: Partial<typeof limits> = {}): ReplicatedState<FakeBandit> {
  const state = new ReplicatedState(new FakeBandit({ dimension }), dimension, {
    ...limits,
    ...more,
  });
  state.reset('epoch');
  return state;
}

interface Sent {
  origin?: string;
  sequence: number;
  time?: number;
  record: FeedbackRecord | Buffer;
}

/** What Redis makes of records; the chain is computed by the rule of docs/replicas.md. */
function entriesOf(sent: readonly Sent[], count = 0, chain = 'epoch'): StreamEntry[] {
  let last = chain;
  return sent.map(({ origin = 'o', sequence, time = 1000, record }, i) => {
    const bytes = Buffer.isBuffer(record) ? record : encodeRecord(record);
    const head = `${last}:${origin}:${sequence}:${time}:`;
    last = createHash('sha1')
      .update(Buffer.concat([Buffer.from(head), bytes]))
      .digest('hex');
    const [s, t] = [String(sequence), String(time)];
    return { count: count + i + 1, origin, sequence: s, time: t, record: bytes, chain: last };
  });
}

function outcome(decisionId: string, more: Partial<FeedbackRecord> = {}): FeedbackRecord {
  return {
    type: 'outcome',
    decisionId,
    toolId: 'mail',
    outcome: 'success',
    at: 500,
    time: 600,
    prior: 0.5,
    x: context(3),
    ...more,
  } as FeedbackRecord;
}

it('is the same however the stream is cut into batches, snapshots and restarts', () => {
  const tool = fc.constantFrom('mail', 'maps', 'music');
  const record = fc.oneof(
    fc
      .record({ decision: fc.integer({ min: 0, max: 30 }), tool })
      .map(({ decision, tool }) => outcome(`d${decision}`, { toolId: tool, x: context(decision) })),
    fc
      .uniqueArray(tool, { minLength: 1 })
      .map((toolIds) => ({ type: 'drop' as const, time: 1, toolIds })),
  );
  const sent = fc.array(fc.record({ origin: fc.constantFrom('a', 'b', 'c'), record }), {
    maxLength: 60,
  });
  const cuts = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.boolean()), { maxLength: 20 });
  fc.assert(
    fc.property(sent, cuts, (records, pieces) => {
      const entries = entriesOf(
        records.map((each, i) => ({ ...each, sequence: i + 1, time: 1000 + i * 40 })),
      );
      // A window that forgets, so that what it forgets must be the same too.
      const window = { maxReports: 10, reportAgeMs: 900 };
      const whole = empty(window);
      whole.apply(entries);
      let state = empty(window);
      let at = 0;
      for (const [size, reload] of [...pieces, [entries.length, false] as const]) {
        state.apply(entries.slice(at, at + size));
        at += size;
        if (!reload) continue;
        const bytes = Buffer.concat(state.encode());
        state = empty(window);
        state.load('epoch', bytes, 'here');
      }
      expect(state.checksum()).toBe(whole.checksum());
      expect(bytesOf(state.bandit)).toBe(bytesOf(whole.bandit));
      expect(state.count).toBe(entries.length);
    }),
  );
});

it('learns what applying each report once, in order, gives', () => {
  const state = empty();
  const records = [
    outcome('a'),
    outcome('b', { outcome: 'error' }),
    outcome('a'),
    outcome('c', { outcome: 'cancelled' }),
  ];
  state.apply(entriesOf(records.map((record, i) => ({ sequence: i + 1, record }))));
  const reference = new FakeBandit({ dimension });
  for (const y of [1, 0]) {
    reference.update(
      ['mail'],
      context(3),
      Float32Array.of(0.5),
      Float32Array.of(y),
      Float64Array.of(500),
    );
  }
  expect(bytesOf(state.bandit)).toBe(bytesOf(reference));
  expect(state).toMatchObject({ count: 4, duplicates: 1, refused: 0 });
  expect(state.hasReport('c', 'mail')).toBe(true);
  expect(state.hasReport('c', 'maps')).toBe(false);
});

it("takes no time past Redis's, and none past the report's", () => {
  const timeOf = (record: FeedbackRecord, time: number) => {
    const state = empty();
    state.apply(entriesOf([{ sequence: 1, time, record }]));
    return JSON.parse(bytesOf(state.bandit))[0][3];
  };
  expect(timeOf(outcome('a', { at: 5000, time: 6000 }), 4000)).toBe(4000);
  expect(timeOf(outcome('a', { at: 5000, time: 3000 }), 4000)).toBe(3000);
  expect(timeOf(outcome('a', { at: 2000, time: 3000 }), 4000)).toBe(2000);
});

it('skips what an origin has already in, drops too', () => {
  const state = empty();
  const drop = { type: 'drop' as const, time: 1, toolIds: ['mail'] };
  state.apply(
    entriesOf([
      { sequence: 1, record: drop },
      { sequence: 2, record: outcome('a') },
      { sequence: 1, record: drop },
      { sequence: 2, record: outcome('b') },
    ]),
  );
  expect(state.bandit.updatesOf('mail')).toBe(1);
  expect(state.duplicates).toBe(2);
  expect(state.origins.get('o')).toEqual({ sequence: 2, count: 4 });
});

it('changes nothing when the stream does not go on from it', () => {
  const state = empty();
  const entries = entriesOf([1, 2, 3].map((i) => ({ sequence: i, record: outcome(`d${i}`) })));
  state.apply(entries.slice(0, 1));
  const before = state.checksum();
  const [, second, third] = entries as [StreamEntry, StreamEntry, StreamEntry];
  const tampered = { ...third, record: encodeRecord(outcome('other')) };
  const cases = [[third], [second, second], [second, tampered], [{ ...second, origin: 'x' }]];
  cases.push([{ ...second, time: '999' }], [{ ...second, sequence: '7' }], entries.slice(0, 1));
  for (const wrong of cases) {
    expect(() => state.apply(wrong)).toThrow(Diverged);
    expect(state.checksum()).toBe(before);
  }
  state.apply([second, third]);
  expect(state.count).toBe(3);
});

it('refuses malformed records alike everywhere, and stops at those of a later release', async () => {
  const state = empty();
  const wrong: Array<FeedbackRecord | Buffer> = [
    outcome('a', { x: new Float32Array(dimension + 1).fill(1) }),
    outcome('a', { x: new Float32Array(dimension) }),
    outcome('a', { x: new Float32Array(dimension).fill(Number.NaN) }),
    outcome('a', { prior: 2 }),
    outcome('a', { at: Number.NaN }),
    outcome(''),
    outcome('a', { toolId: '' }),
    { type: 'drop', time: 1, toolIds: [''] },
    { type: 'decision', id: 'a', time: 1, x: context(1), toolIds: [], priors: new Float32Array(0) },
    Buffer.alloc(0),
    Buffer.from([2, 1, 2]),
    encodeRecord(outcome('a')).subarray(0, -1),
    Buffer.concat([encodeRecord(outcome('a')), Buffer.alloc(1)]),
  ];
  state.apply(entriesOf(wrong.map((record, i) => ({ sequence: i + 1, record }))));
  expect(state).toMatchObject({ refused: wrong.length, count: wrong.length });
  expect(bytesOf(state.bandit)).toBe('[]');
  expect(state.hasReport('a', 'mail')).toBe(false);
  const later = encodeRecord(outcome('a'));
  later[0] = 9;
  const { count, chain } = state;
  const before = state.checksum();
  const entry = { sequence: wrong.length + 1, record: later };
  await expectCode(() => state.apply(entriesOf([entry], count, chain)), 'FINCH_VERSION');
  expect(state.checksum()).toBe(before);
});

it('remembers so many origins, and forgets the one that is silent longest', () => {
  const state = empty();
  const sent = Array.from({ length: maxOrigins + 1 }, (_, i) => ({
    origin: `o${i === 1 ? 0 : i}`,
    sequence: i + 1,
    record: outcome(`d${i}`),
  }));
  sent.push({ origin: 'late', sequence: 1, record: outcome('late') });
  state.apply(entriesOf(sent));
  expect(state.origins.size).toBe(maxOrigins);
  expect(state.origins.has('o0')).toBe(false);
  expect(state.origins.has('o2')).toBe(true);
  expect(state.origins.has('late')).toBe(true);
});

it('refuses damaged bytes and keeps what it had', async () => {
  const state = empty();
  state.apply(entriesOf([{ sequence: 1, record: outcome('a') }]));
  const bytes = Buffer.concat(state.encode());
  const before = state.checksum();
  for (let i = 0; i < bytes.length; i++) {
    const damaged = Buffer.from(bytes);
    damaged[i] = (damaged[i] as number) ^ 0x40;
    await expectCode(() => state.load('epoch', damaged, 'here'), 'FINCH_CORRUPT');
    await expectCode(() => state.load('epoch', bytes.subarray(0, i), 'here'), 'FINCH_CORRUPT');
  }
  expect(state.checksum()).toBe(before);
  const other = empty();
  other.load('another', bytes, 'here');
  expect(other.checksum()).toBe(before);
  expect(other.epoch).toBe('another');
  other.reset('new');
  expect(other.checksum()).not.toBe(before);
  expect(bytesOf(other.bandit)).toBe('[]');
});
