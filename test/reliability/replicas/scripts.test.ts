// The scripts, run one by one.
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { catalogueKeys } from '../../../lib/reliability/replicas/keys.js';
import { RedisLink, text, texts } from '../../../lib/reliability/replicas/redis-link.js';
import { downloadSnapshot, uploadDraft } from '../../../lib/reliability/replicas/redis-snapshot.js';
import { Diverged } from '../../../lib/reliability/replicas/replicated-state.js';
import * as scripts from '../../../lib/reliability/replicas/scripts.js';
import { streamEntries } from '../../../lib/reliability/replicas/stream-entry.js';
import { expectCode } from '../scratch.js';
import { closing, describeRedis, TestRedis } from './redis-server.js';
import { until } from './replica.js';

const keys = catalogueKeys('toolfinch', 't', 'c');

async function begin() {
  const redis = await TestRedis.start();
  const { signal } = new AbortController();
  const link = await RedisLink.connect({ url: redis.url }, 5000, undefined, signal);
  closing({ close: async () => link.destroy() });
  const found = () =>
    link.script(
      scripts.found,
      [keys.state, keys.stream, keys.origins, keys.snapshot],
      ['epoch', '1', '{}'],
    );
  expect(await found()).toBe(1);
  expect(await found()).toBe(0);
  const deliver = async (
    sequences: number[],
    { origin = 'o', session = 's', take = '1', after = 0, epoch = 'epoch' } = {},
  ) => {
    const records = sequences.flatMap((n) => [String(n), Buffer.from(`record ${n}`)]);
    const args = [epoch, origin, session, take, String(after), ...records];
    const all = [keys.state, keys.stream, keys.origins, keys.session(origin)];
    return texts(await link.script(scripts.deliver, all, args));
  };
  const entries = async () => {
    const args = ['XREAD', 'COUNT', '10000', 'STREAMS', keys.stream, '0-0'];
    return streamEntries(await link.command(args));
  };
  const commit = async (count: number, chain: string, keep = 0, epoch = 'epoch') => {
    const token = await uploadDraft(link, keys, [Buffer.alloc(600_000, count)]);
    const all = [keys.state, keys.stream, keys.snapshot, keys.draft(token)];
    const args = [epoch, String(count), chain, token, String(keep)];
    return text(await link.script(scripts.commitSnapshot, all, args));
  };
  return { redis, link, deliver, entries, commit };
}

describeRedis('the script', () => {
  it('deliver appends each record once, whatever is sent again', async () => {
    const { deliver, entries } = await begin();
    expect(await deliver([1, 2, 3])).toEqual(['ok', '3', '3']);
    expect(await deliver([1, 2, 3])).toEqual(['ok', '3', '3']);
    expect(await deliver([2, 3, 4], { after: 1 })).toEqual(['ok', '4', '4']);
    expect(await deliver([9], { after: 4 })).toEqual(['ok', '9', '5']);
    expect(await deliver([7], { after: 4 })).toEqual(['ok', '9', '5']);
    expect(await deliver([1], { origin: 'other' })).toEqual(['ok', '1', '6']);
    expect(await deliver([12], { after: 11 })).toEqual(['behind', '9']);
    expect(await deliver([10], { epoch: 'another' })).toEqual(['epoch']);
    const all = await entries();
    expect(all.map(({ count }) => count)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(all.map(({ sequence }) => sequence)).toEqual(['1', '2', '3', '4', '9', '1']);
  });

  it('deliver serves the opening that took over last', async () => {
    const { deliver } = await begin();
    await deliver([1]);
    expect(await deliver([2], { session: 'second', take: '0' })).toEqual(['taken']);
    expect(await deliver([2], { session: 'second' })).toEqual(['ok', '2', '2']);
    expect(await deliver([3], { take: '0' })).toEqual(['taken']);
    expect(await deliver([3], { session: 'second', take: '0' })).toEqual(['ok', '3', '3']);
  });

  it('deliver remembers so many origins, and forgets the one silent longest', async () => {
    const { redis, deliver } = await begin();
    for (let i = 0; i < scripts.maxOrigins; i++) await deliver([1], { origin: `o${i}` });
    await deliver([2], { origin: 'o0', after: 1 });
    await deliver([1], { origin: 'late' });
    expect(Number(redis.cli('HLEN', keys.origins))).toBe(scripts.maxOrigins);
    expect(redis.cli('HEXISTS', keys.origins, 'o0')).toBe('1');
    expect(redis.cli('HEXISTS', keys.origins, 'o1')).toBe('0');
  });

  it('commitSnapshot refuses what is older or of another history, and trims no further than it covers', async () => {
    const { redis, link, deliver, entries, commit } = await begin();
    await deliver(Array.from({ length: 100 }, (_, i) => i + 1));
    const chains = (await entries()).map(({ chain }) => chain);
    const chainAt = (count: number) => chains[count - 1] as string;
    const first = async () => (await entries())[0]?.count;
    expect(await commit(50, chainAt(50), 10)).toBe('ok');
    expect(await first()).toBe(41);
    expect(await commit(50, chainAt(50))).toBe('older');
    expect(await commit(45, chainAt(45))).toBe('older');
    expect(await commit(60, chainAt(59))).toBe('other');
    expect(await commit(101, chainAt(100))).toBe('other');
    expect(await commit(60, chainAt(60), 0, 'another')).toBe('epoch');
    expect(await first()).toBe(41);
    const { bytes } = await downloadSnapshot(link, keys);
    expect(bytes.equals(Buffer.alloc(600_000, 50))).toBe(true);
    expect(await commit(70, chainAt(70), -5)).toBe('ok');
    expect(await first()).toBe(71);
    expect(redis.cli('HGET', keys.state, 'snapshot')).toBe('70');
    expect(redis.cli('TTL', keys.snapshot)).toBe('-1');
    expect(redis.cli('KEYS', '*draft*')).toBe('');
    // All of it: the stream goes on behind.
    expect(await commit(100, chainAt(100))).toBe('ok');
    expect(await entries()).toEqual([]);
    expect(await deliver([101], { after: 100 })).toEqual(['ok', '101', '101']);
    expect(await first()).toBe(101);
  });

  it('putBack replaces only what lost its history', async () => {
    const { redis, link, deliver, entries, commit } = await begin();
    await deliver([1, 2, 3]);
    const putBack = async (count: number, epoch: string, token: string) => {
      const draft = await uploadDraft(link, keys, [Buffer.from(`state at ${count}`)]);
      const all = [keys.state, keys.stream, keys.origins, keys.snapshot, keys.draft(draft)];
      const args = [epoch, token, randomUUID(), '1', '{}', String(count), 'chain', '5', draft];
      return text(await link.script(scripts.putBack, all, [...args, 'o', '7 7']));
    };
    const state = () => redis.cli('HMGET', keys.state, 'epoch', 'token', 'count').split('\n');
    // A history that was begun from nothing gives way.
    expect(await putBack(2, 'another', '')).toBe('changed');
    expect(await putBack(2, 'epoch', 'another')).toBe('changed');
    expect(await putBack(2, 'epoch', '')).toBe('ok');
    const [epoch, token, count] = state();
    expect(count).toBe('2');
    expect(await entries()).toEqual([]);
    expect(redis.cli('HGETALL', keys.origins)).toBe('o\n7 7');
    // One that has a snapshot only to a longer one of the same.
    expect(await putBack(2, epoch as string, token as string)).toBe('changed');
    expect(await putBack(9, epoch as string, '')).toBe('changed');
    expect(await deliver([8], { after: 7, epoch: epoch as string })).toEqual(['ok', '8', '3']);
    const chain = (await entries())[0]?.chain as string;
    expect(await commit(3, chain, 0, epoch)).toBe('ok');
    expect(await putBack(9, epoch as string, token as string)).toBe('changed');
    expect(await putBack(9, epoch as string, state()[1] as string)).toBe('ok');
    redis.cli('FLUSHALL');
    expect(await putBack(4, '', '')).toBe('ok');
    expect((await downloadSnapshot(link, keys)).bytes.toString()).toBe('state at 4');
    expect(redis.cli('KEYS', '*draft*')).toBe('');
  });

  it('share keeps the latest decisions, and for so long', async () => {
    const { redis, link } = await begin();
    const share = (ttl: number, most: number, ...ids: string[]) =>
      link.script(
        scripts.share,
        [keys.decisions, keys.decisionOrder],
        [String(ttl), String(most), ...ids.flatMap((id) => [id, `of ${id}`])],
      );
    const kept = () => redis.cli('HKEYS', keys.decisions).split('\n').sort();
    await share(60_000, 3, 'a', 'b c', 'd\ne');
    await share(60_000, 3, 'a', 'f');
    expect(redis.cli('HGET', keys.decisions, 'a')).toBe('');
    expect(kept()).toEqual(['b c', 'd', 'e', 'f']);
    expect(redis.cli('LLEN', keys.decisionOrder)).toBe('3');
    const ttls = () =>
      [keys.decisions, keys.decisionOrder].map((key) => Number(redis.cli('PTTL', key)));
    for (const ttl of ttls()) expect(ttl).toBeGreaterThan(0);
    for (const ttl of ttls()) expect(ttl).toBeLessThanOrEqual(60_000);
    // Those of a minute ago are too old.
    const now = Number(redis.cli('TIME').split('\n')[0]) * 1000;
    redis.cli('DEL', keys.decisionOrder);
    for (const [id, at] of [
      ['b c', now - 61_000],
      ['d\ne', now - 60_000],
      ['f', now - 10_000],
    ]) {
      redis.cli('RPUSH', keys.decisionOrder, `${at} ${id}`);
    }
    await share(60_000, 3, 'g');
    expect(kept()).toEqual(['f', 'g']);
    // With none for so long, all of it goes.
    await share(1, 3, 'h');
    await until(
      () => redis.cli('EXISTS', keys.decisions, keys.decisionOrder) === '0',
      'it is forgotten',
    );
  });

  it('is not there: a snapshot that is gone or replaced while it is read is told', async () => {
    const { link, deliver, entries, commit } = await begin();
    await expect(downloadSnapshot(link, keys)).rejects.toThrow(Diverged);
    await deliver([1, 2]);
    const [one, two] = await entries();
    expect(await commit(1, one?.chain as string)).toBe('ok');
    const reading = downloadSnapshot(link, keys);
    await Promise.resolve();
    const writing = commit(2, two?.chain as string);
    const [read, written] = await Promise.allSettled([reading, writing]);
    expect(written).toEqual({ status: 'fulfilled', value: 'ok' });
    if (read.status === 'fulfilled') {
      expect(read.value.bytes.equals(Buffer.alloc(600_000, 1))).toBe(true);
    } else expect(read.reason).toBeInstanceOf(Diverged);
  });

  it('that gets no answer ends the connection', async () => {
    const redis = await TestRedis.start();
    const { signal } = new AbortController();
    const link = await RedisLink.connect({ url: redis.url }, 200, undefined, signal);
    redis.pause();
    const ended = expectCode(link.ended(), 'FINCH_IO');
    const error = await expectCode(link.command(['HGET', 'a', 'b']), 'FINCH_IO');
    expect(error.message).toContain('HGET');
    await ended;
    expect(link.isDestroyed).toBe(true);
    await expect(link.command(['HGET', 'a', 'b'])).rejects.toThrow();
  });
});
