import { expect, it } from 'vitest';
import { FakeBandit } from '../fake-bandit.js';
import { scratch } from '../scratch.js';
import { describeRedis, TestRedis, Wire } from './redis-server.js';
import { expectEqual, openReplica, settle, until, updates, work } from './replica.js';

describeRedis('a Redis that lost data', () => {
  it('gets its history back from a replica when it was emptied', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url);
    const b = await openReplica(redis.url);
    await work(a, 'a', 30);
    await work(b, 'b', 30);
    await settle(a, b);
    const before = a.checksum();
    redis.cli('FLUSHALL');
    const noticed = () => a.health().events.length + b.health().events.length > 0;
    await until(noticed, 'it is noticed');
    await settle(a, b);
    expect(a.checksum()).toEqual(before);
    await work(a, 'after', 10);
    expect(await expectEqual(a, b)).toBe(70);
    expect(updates(b)).toBe(70);
    const kinds = [...a.health().events, ...b.health().events].map(({ kind }) => kind);
    expect(kinds).toContain('restored');
    expect(kinds).not.toContain('lost');
    const late = await openReplica(redis.url);
    await expectEqual(a, b, late);
  });

  it("is refused by name when its keys are another program's", async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url);
    const { keys } = a.health();
    await a.close();
    redis.cli('DEL', `${keys}:state`);
    redis.cli('HSET', `${keys}:state`, 'junk', 'v');
    const b = await openReplica(redis.url, { openWaitMs: 200 });
    await until(() => b.health().lastError !== undefined, 'it is told');
    expect(b.health().lastError?.message).toMatch(/:state is there but no replica wrote it/);
    redis.cli('DEL', `${keys}:state`);
    await until(() => b.health().connected, 'b is connected');
    await work(b, 'b', 3);
    await settle(b);
    expect(updates(b)).toBe(3);
  });

  it('takes reports though decisions cannot be shared', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url);
    await settle(a);
    redis.cli('SET', `${a.health().keys}:decisions`, 'text');
    await work(a, 'a', 30);
    await settle(a);
    expect(updates(a)).toBe(30);
    await until(() => a.health().sharingError !== undefined, 'it is told');
    expect(a.health().connected).toBe(true);
  });

  it('gets it back too when a newcomer has begun another one in it', async () => {
    const redis = await TestRedis.start();
    const wire = await Wire.to(redis.port);
    const a = await openReplica(wire.url);
    await work(a, 'a', 30);
    await settle(a);
    wire.mode = 'refuse';
    wire.cut();
    redis.cli('FLUSHALL');
    const late = await openReplica(redis.url);
    await work(late, 'late', 50);
    await settle(late);
    expect(updates(late)).toBe(50);
    wire.mode = 'pass';
    await until(() => a.health().connected, 'a is back');
    await until(() => late.health().events.length > 1, 'the newcomer notices');
    expect(await expectEqual(a, late)).toBe(80);
    expect(updates(a)).toBe(80);
    expect(a.health().events.map(({ kind }) => kind)).toEqual(['restored']);
    expect(late.health().events.map(({ kind }) => kind)).toEqual(['reloaded', 'redelivered']);
  });

  it('is filled up again when it came back with less than it had acknowledged', async () => {
    const redis = await TestRedis.start(['--save', '']);
    const a = await openReplica(redis.url);
    const b = await openReplica(redis.url);
    await work(a, 'saved', 20);
    await settle(a, b);
    redis.cli('SAVE');
    await work(a, 'unsaved', 15);
    await work(b, 'unsaved-too', 15);
    await settle(a, b);
    expect(a.health().applied).toBe(50);
    await redis.kill();
    await redis.start();
    await until(() => a.health().connected && b.health().connected, 'both are back');
    await work(b, 'after', 5);
    expect(await expectEqual(a, b)).toBe(55);
    expect(updates(a)).toBe(55);
    const kinds = [...a.health().events, ...b.health().events].map(({ kind }) => kind);
    expect(kinds).toContain('restored');
    expect(kinds).not.toContain('lost');
  });

  it('gets reports again from where they were made when no replica is ahead of it', async () => {
    const redis = await TestRedis.start();
    const folder = scratch();
    const a = await openReplica(redis.url, {}, folder);
    await work(a, 'saved', 20);
    await settle(a);
    redis.cli('SAVE');
    await work(a, 'unsaved', 15);
    await settle(a);
    // Redis goes back, another replica goes on in it, and has a snapshot there before this one is back.
    await a.close();
    await redis.kill();
    await redis.start();
    const b = await openReplica(redis.url, { snapshotEvery: 10, keepRecords: 5 });
    await work(b, 'after', 40);
    await settle(b);
    await until(() => b.health().snapshot > 0, 'a snapshot');
    expect(updates(b)).toBe(60);
    const again = await openReplica(redis.url, {}, folder);
    expect(await expectEqual(again, b)).toBe(75);
    expect(updates(b)).toBe(75);
    expect(
      again
        .health()
        .events.map(({ kind }) => kind)
        .sort(),
    ).toEqual(['redelivered', 'reloaded']);
  });

  it('shows a record that does not follow on what was applied', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url);
    await work(a, 'a', 10);
    await settle(a);
    const key = 'toolfinch:{acme:tools}';
    // As if another history of the same length had been restored.
    redis.cli('HSET', `${key}:state`, 'chain', '0'.repeat(40));
    await until(
      () => a.health().lastError !== undefined || a.health().events.length > 0,
      'noticed',
    );
    redis.cli('FLUSHALL');
    await until(() => a.health().connected, 'mended');
    expect(await expectEqual(a, await openReplica(redis.url))).toBe(10);
  });

  it('gives it again to a replica whose bandit failed in the middle of a batch', async () => {
    const redis = await TestRedis.start();
    let fails = false;
    class Failing extends FakeBandit {
      override update(...args: Parameters<FakeBandit['update']>): void {
        super.update(...args);
        if (fails) throw new Error('no memory');
      }
    }
    const a = await openReplica(redis.url, { snapshotEvery: 10, keepRecords: 0 });
    const b = await openReplica(redis.url, { createBandit: (options) => new Failing(options) });
    await work(a, 'a', 25);
    await settle(a, b);
    fails = true;
    await work(a, 'more', 8);
    await until(() => b.health().lastError?.message === 'no memory', 'it fails');
    fails = false;
    expect(await expectEqual(a, b)).toBe(33);
    expect(a.health().events).toEqual([]);
  });
});
