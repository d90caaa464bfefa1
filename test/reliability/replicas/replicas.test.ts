// Replicas against redis-server processes of the test's own.
import { expect, it } from 'vitest';
import { ReplicatedFeedback } from '../../../lib/reliability/replicas/replicated-feedback.js';
import { freePort } from '../../../scripts/free-port.mjs';
import { expectCode, scratch } from '../scratch.js';
import { describeRedis, redisVersion, TestRedis, Wire } from './redis-server.js';
import {
  decide,
  expectEqual,
  openReplica,
  replicaOptions,
  settle,
  until,
  updates,
  work,
} from './replica.js';

const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'always'];

it('has a redis-server to test against', () => {
  if (redisVersion !== undefined) return;
  const message =
    'THERE IS NO redis-server ON THE PATH: what replicas do with Redis is not tested here (apt-get install redis-server)';
  if (process.env.CI !== undefined) throw new Error(message);
  console.warn(message);
});

describeRedis('replicas', () => {
  it('apply the same records, and each report once, wherever it was made', async () => {
    const redis = await TestRedis.start();
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => openReplica(redis.url)));
    if (a === undefined || b === undefined || c === undefined) throw new Error();
    await Promise.all([work(a, 'a', 40), work(b, 'b', 30), work(c, 'c', 20)]);
    expect(await expectEqual(a, b, c)).toBe(90);
    expect(updates(a)).toBe(90);
    // Decided at a, reported at b and, again, at all three.
    decide(a, 'travels', 5);
    await until(() => a.health().unshared === 0, 'the decision is shared');
    const told = { decisionId: 'travels', toolId: 'maps', outcome: 'error' } as const;
    const results = await Promise.all([b, c, a].map((replica) => replica.report(told)));
    expect(results.map(({ status }) => status)).toEqual(['queued', 'queued', 'queued']);
    expect(await expectEqual(a, b, c)).toBe(93);
    expect(updates(a)).toBe(91);
    expect(a.health()).toMatchObject({ duplicates: 2, refused: 0, lag: 0, waiting: 0, events: [] });
    for (const replica of [a, b, c]) {
      expect((await replica.report(told)).status).toBe('duplicate');
    }
    // Cancelled says nothing of the tool.
    decide(b, 'cancelled');
    const cancelled = { decisionId: 'cancelled', toolId: 'mail', outcome: 'cancelled' } as const;
    expect((await b.report(cancelled)).status).toBe('recorded');
    await c.drop(['mail']);
    await expectEqual(a, b, c);
    expect(a.bandit.updatesOf('mail')).toBe(0);
    expect(a.bandit.updatesOf('maps')).toBeGreaterThan(0);
  });

  it('have shared a decision once Redis has confirmed it', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url, { commandTimeoutMs: 60_000 });
    await settle(a);
    redis.pause();
    const decisionId = decide(a, 'on its way');
    await a.report({ decisionId, toolId: 'mail', outcome: 'success' });
    expect(a.health().unshared).toBe(1);
    redis.resume();
    await until(() => a.health().unshared === 0, 'it is confirmed');
  });

  it('share what health checks found, each of them once', async () => {
    const redis = await TestRedis.start();
    const [a, b] = await Promise.all([1, 2].map(() => openReplica(redis.url)));
    if (a === undefined || b === undefined) throw new Error();
    await work(a, 'a', 9);
    const folder = scratch();
    const c = await openReplica(redis.url, {}, folder);
    for (const replica of [a, b, c, c]) {
      expect(await replica.reportHealth('mail', 'success')).toEqual({ durable: true });
    }
    await c.reportHealth('mail', 'cancelled');
    await b.reportHealth('unheard of', 'error');
    expect(await expectEqual(a, b, c)).toBe(15);
    expect(updates(a)).toBe(9 + 4);
    expect(a.bandit.updatesOf('unheard of')).toBe(1);
    expect(a.health()).toMatchObject({ duplicates: 0, refused: 0, lag: 0 });
    await c.close();
    const again = await openReplica(redis.url, {}, folder);
    await expectEqual(a, again);
    await expectCode(a.reportHealth('', 'success'), 'FINCH_INVALID_ARGUMENT');
    await expectCode(a.reportHealth('mail', 'fine' as never), 'FINCH_INVALID_ARGUMENT');
    await a.close();
    await expectCode(a.reportHealth('mail', 'success'), 'FINCH_CLOSED');
  });

  it('keep tenants and catalogues apart', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url, { tenant: 'a' });
    const b = await openReplica(redis.url, { tenant: 'b' });
    const c = await openReplica(redis.url, { tenant: 'a', catalogue: 'a}:{b*' });
    await work(a, 'd', 5);
    await work(c, 'd', 7);
    await settle(a, b, c);
    expect([a, b, c].map(updates)).toEqual([5, 0, 7]);
    const keys = redis.cli('--raw', 'KEYS', '*').split('\n');
    const bases = new Set(keys.map((key) => key.slice(0, key.indexOf('}') + 1)));
    expect([...bases].sort()).toEqual([
      'toolfinch:{a:a%7D%3A%7Bb%2A}',
      'toolfinch:{a:tools}',
      'toolfinch:{b:tools}',
    ]);
  });

  it('write snapshots, trim the stream behind them and never past them, and start from them', async () => {
    const redis = await TestRedis.start();
    const options = { snapshotEvery: 100, keepRecords: 20 };
    const a = await openReplica(redis.url, options);
    const b = await openReplica(redis.url, options);
    for (let round = 0; round < 5; round++) {
      await work(a, `a${round}`, 60);
      await settle(a, b);
      await until(() => a.health().applied - a.health().snapshot < 100, 'a snapshot');
    }
    // One of them may still be finding out that the other wrote it.
    await until(() => redis.cli('KEYS', '*lock*') === '', 'nobody writes one');
    const stream = 'toolfinch:{acme:tools}:stream';
    const snapshot = Number(redis.cli('HGET', 'toolfinch:{acme:tools}:state', 'snapshot'));
    const first = Number.parseInt(redis.cli('--raw', 'XRANGE', stream, '-', '+', 'COUNT', '1'), 10);
    expect(snapshot).toBeGreaterThanOrEqual(200);
    expect(first).toBe(snapshot - 19);
    expect(Number(redis.cli('XLEN', stream))).toBe(300 - snapshot + 20);
    expect(redis.cli('KEYS', '*draft*')).toBe('');
    const late = await openReplica(redis.url, options);
    expect(await expectEqual(a, b, late)).toBe(300);
    expect(late.health().events).toEqual([]);
  });

  it('notice that what they had not read was trimmed, and load the snapshot', async () => {
    const redis = await TestRedis.start();
    const wire = await Wire.to(redis.port);
    const options = { snapshotEvery: 50, keepRecords: 0 };
    const a = await openReplica(redis.url, options);
    const b = await openReplica(wire.url, options);
    await work(a, 'before', 10);
    await settle(a, b);
    wire.mode = 'refuse';
    wire.cut();
    await work(a, 'meanwhile', 120);
    await settle(a);
    await until(() => a.health().snapshot >= 60, 'a snapshot');
    expect(b.health()).toMatchObject({ connected: false, applied: 10 });
    wire.mode = 'pass';
    await until(() => b.health().connected, 'b is back');
    expect(await expectEqual(a, b)).toBe(130);
    expect(b.health().events.map(({ kind }) => kind)).toEqual(['reloaded']);
  });

  it('queue reports while Redis is away, serve on, and deliver each once after', async () => {
    const redis = await TestRedis.start(appendOnly);
    const folder = scratch();
    const a = await openReplica(redis.url, {}, folder);
    const b = await openReplica(redis.url);
    await work(a, 'before', 10);
    await settle(a, b);
    await redis.kill();
    await until(() => !a.health().connected && !b.health().connected, 'both notice');
    await work(a, 'away', 50);
    await work(b, 'away-too', 50);
    expect(a.health()).toMatchObject({ connected: false, waiting: 50, applied: 10, durable: true });
    await until(
      () => a.health().lastError?.message.includes('ECONNREFUSED') === true,
      'the reason',
    );
    expect(updates(a)).toBe(10);
    await a.close();
    // Opened while Redis is away: it serves with what was learnt, and still has what waits.
    const again = await openReplica(redis.url, { openWaitMs: 100 }, folder);
    expect(updates(again)).toBe(10);
    expect(again.health()).toMatchObject({ connected: false, applied: 10, waiting: 50 });
    const repeated = { decisionId: 'away-3', toolId: 'mail', outcome: 'success' } as const;
    expect((await again.report(repeated)).status).toBe('duplicate');
    const unknown = { ...repeated, decisionId: 'away-too-3' };
    await expectCode(again.report(unknown), 'FINCH_IO');
    await redis.start();
    expect(await expectEqual(again, b)).toBe(110);
    expect(updates(b)).toBe(110);
    expect(again.health().events).toEqual([]);
    expect(again.health().lastError).toBeUndefined();
  });

  it('refuse reports when the queue is full, and take them again after', async () => {
    const port = await freePort();
    const a = await openReplica(`redis://127.0.0.1:${port}`, { maxWaiting: 20, openWaitMs: 0 });
    await work(a, 'w', 20);
    decide(a, 'more');
    const more = { decisionId: 'more', toolId: 'mail', outcome: 'success' } as const;
    const error = await expectCode(a.report(more), 'FINCH_IO');
    expect(error.message).toContain('maxWaiting is 20');
    await expectCode(a.drop(['mail']), 'FINCH_IO');
    expect(a.health()).toMatchObject({ waiting: 20, maxWaiting: 20 });
    await TestRedis.start([], port);
    await settle(a);
    expect((await a.report(more)).status).toBe('queued');
    await settle(a);
    expect(updates(a)).toBe(21);
  });

  it('deliver once though replies are lost', async () => {
    const redis = await TestRedis.start();
    const wire = await Wire.to(redis.port);
    const a = await openReplica(wire.url);
    const b = await openReplica(redis.url);
    for (let round = 0; round < 10; round++) {
      const { lost } = wire;
      const working = work(a, `r${round}`, 20);
      wire.mode = 'lose-replies';
      await working;
      await until(() => wire.lost > lost, 'a reply is lost');
      wire.mode = 'pass';
    }
    expect(await expectEqual(a, b)).toBe(200);
    expect(updates(b)).toBe(200);
    expect(a.health().duplicates).toBe(0);
  });

  it('give up on a Redis that does not answer, and come back when it does', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url, { commandTimeoutMs: 300 });
    const b = await openReplica(redis.url, { commandTimeoutMs: 300 });
    await work(a, 'before', 5);
    await settle(a, b);
    redis.pause();
    await work(a, 'paused', 30);
    await until(() => !a.health().connected && !b.health().connected, 'both give up');
    expect(a.health().lastError?.message).toContain('no answer');
    redis.resume();
    expect(await expectEqual(a, b)).toBe(35);
    expect(updates(a)).toBe(35);
  });

  it('close though Redis does not answer', async () => {
    const redis = await TestRedis.start();
    const a = await openReplica(redis.url);
    redis.pause();
    await work(a, 'paused', 5);
    const flushing = expectCode(a.flush(), 'FINCH_CLOSED');
    const catching = expectCode(a.catchUp(), 'FINCH_CLOSED');
    const last = a.report({ decisionId: decide(a, 'last'), toolId: 'mail', outcome: 'success' });
    await a.close();
    expect((await last).durable).toBe(true);
    await Promise.all([flushing, catching]);
    expect(a.health()).toMatchObject({ connected: false, durable: false, waiting: 6 });
    await expectCode(() => decide(a, 'x'), 'FINCH_CLOSED');
    await expectCode(a.drop(['mail']), 'FINCH_CLOSED');
    await a.close();
  });

  it('obey signals', async () => {
    const port = await freePort();
    const url = `redis://127.0.0.1:${port}`;
    const opening = AbortSignal.timeout(100);
    const folder = scratch();
    await expectCode(
      ReplicatedFeedback.open(folder, replicaOptions({ redis: { url } }), { signal: opening }),
      'FINCH_ABORTED',
    );
    const a = await openReplica(url, { openWaitMs: 0 }, folder);
    await work(a, 'w', 1);
    await expectCode(a.flush({ signal: AbortSignal.timeout(50) }), 'FINCH_ABORTED');
    await expectCode(a.catchUp({ signal: AbortSignal.timeout(50) }), 'FINCH_ABORTED');
    await expectCode(a.flush({ signal: AbortSignal.abort() }), 'FINCH_ABORTED');
  });
});
