import { cpSync } from 'node:fs';
import { expect, it } from 'vitest';
import { expectCode, scratch } from '../scratch.js';
import { describeRedis, TestRedis } from './redis-server.js';
import { decide, openReplica, settle, until, updates, work } from './replica.js';

describeRedis('a folder', () => {
  it('that was copied is not delivered from twice', async () => {
    const redis = await TestRedis.start();
    const [one, two] = [scratch(), scratch()];
    const first = await openReplica(redis.url, {}, one);
    await work(first, 'a', 5);
    await settle(first);
    cpSync(one, two, { recursive: true, filter: (name) => !name.endsWith('.lock') });
    const copy = await openReplica(redis.url, {}, two);
    await work(copy, 'copy', 5);
    await settle(copy);
    await work(first, 'b', 5);
    await until(() => first.health().durable === false, 'the first is told');
    expect(first.health().reason).toContain('copy of the folder');
    decide(first, 'x');
    const report = { decisionId: 'x', toolId: 'mail', outcome: 'success' } as const;
    await expectCode(first.report(report), 'FINCH_IO');
    expect(updates(copy)).toBe(10);
  });

  it('that is older than what was delivered from it goes on under a new name', async () => {
    const redis = await TestRedis.start();
    const [folder, backup] = [scratch(), scratch()];
    const first = await openReplica(redis.url, {}, folder);
    await work(first, 'a', 5);
    await settle(first);
    await first.close();
    cpSync(folder, backup, { recursive: true });
    const second = await openReplica(redis.url, {}, folder);
    await work(second, 'b', 5);
    await settle(second);
    await second.close();
    const old = await openReplica(redis.url, {}, backup);
    await work(old, 'c', 3);
    await settle(old);
    expect(updates(old)).toBe(13);
    expect(old.health().events.map(({ kind }) => kind)).toEqual(['origin']);
    expect(old.health().origin).not.toBe(first.health().origin);
    await old.close();
    const again = await openReplica(redis.url, {}, backup);
    await work(again, 'd', 3);
    await settle(again);
    expect(updates(again)).toBe(16);
    expect(again.health().events).toEqual([]);
  });

  it('of one process is refused, and so are other options than the others have', async () => {
    const redis = await TestRedis.start();
    await openReplica(redis.url, { model: 'm' });
    await openReplica(redis.url);
    const wrong = [
      { model: 'other' },
      { maxReports: 7 },
      { bandit: { dimension: 4, gamma: 0.5 } },
      { bandit: { dimension: 4, availabilityHalfLife: 7 } },
    ];
    for (const more of wrong) {
      await expectCode(openReplica(redis.url, more), 'FINCH_INVALID_ARGUMENT');
    }
    await expectCode(openReplica(redis.url, { bandit: { dimension: 8 } }), 'FINCH_DIMENSION');
    // How bravely it is explored is each replica's own business.
    await openReplica(redis.url, { bandit: { dimension: 4, alpha: 0.1 } });
    const folder = scratch();
    const kept = await openReplica(redis.url, {}, folder);
    await expectCode(openReplica(redis.url, {}, folder), 'FINCH_IO');
    await kept.close();
    await expectCode(
      openReplica(redis.url, { catalogue: 'other' }, folder),
      'FINCH_INVALID_ARGUMENT',
    );
  });

  it('lets go of records that Redis keeps safe', async () => {
    const redis = await TestRedis.start();
    const folder = scratch();
    const options = { snapshotEvery: 50, compactBytes: 20_000, retainMs: 0 };
    const a = await openReplica(redis.url, options, folder);
    for (let round = 0; round < 12; round++) {
      await work(a, `round-${round}`, 100);
      await settle(a);
    }
    // A record has some 100 bytes.
    await until(() => a.health().logBytes < 60_000, 'old segments go');
    expect(updates(a)).toBe(1200);
    await a.close();
    const again = await openReplica(redis.url, options, folder);
    expect(updates(again)).toBe(1200);
    await work(again, 'more', 10);
    await settle(again);
    expect(updates(again)).toBe(1210);
    expect(again.health().events).toEqual([]);
  });
});
