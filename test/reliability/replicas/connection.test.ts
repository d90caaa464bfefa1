import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { needClient } from '../../../lib/reliability/replicas/redis-link.js';
import { ReplicatedFeedback } from '../../../lib/reliability/replicas/replicated-feedback.js';
import * as scripts from '../../../lib/reliability/replicas/scripts.js';
import { freePort } from '../../../scripts/free-port.mjs';
import { expectCode, scratch } from '../scratch.js';
import { describeRedis, TestRedis } from './redis-server.js';
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

/** The ACL rule of docs/replicas.md. */
function documentedRule(): string[] {
  const guide = readFileSync('docs/replicas.md', 'utf8');
  const rule = /^ACL SETUSER finch ((?:.*\\\n)*.*)$/m.exec(guide)?.[1] ?? '';
  return rule.replaceAll('\\\n', ' ').split(/\s+/).filter(Boolean);
}

it('the documented ACL rule allows the commands that are used, and no others', () => {
  const used = new Set(['evalsha', 'eval']);
  const texts = Object.values(scripts).map((script) =>
    typeof script === 'object' ? script.text : '',
  );
  for (const match of texts.join('\n').matchAll(/redis\.call\('(\w+)'/g)) {
    used.add(String(match[1]).toLowerCase());
  }
  for (const name of ['replication', 'redis-snapshot', 'decision-sharing']) {
    const source = readFileSync(`lib/reliability/replicas/${name}.ts`, 'utf8');
    for (const match of source.matchAll(/\.command\(\s*\[\s*'(\w+)'/g)) {
      used.add(String(match[1]).toLowerCase());
    }
  }
  const allowed = documentedRule().filter((part) => part.startsWith('+'));
  expect(allowed.map((part) => part.slice(1)).sort()).toEqual([...used].sort());
});

it('the client is there', async () => {
  await needClient();
});

describeRedis('a connection', () => {
  it('is made with TLS, a client certificate and a password', async () => {
    const certificates = scratch();
    const openssl = (...args: string[]) =>
      execFileSync('openssl', args, { cwd: certificates, stdio: 'pipe' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=test');
    writeFileSync(path.join(certificates, 'names'), 'subjectAltName=IP:127.0.0.1\n');
    for (const who of ['server', 'client']) {
      openssl('req', ...key, '-keyout', `${who}.key`, '-out', `${who}.csr`, '-subj', `/CN=${who}`);
      const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
      openssl('x509', '-req', '-in', `${who}.csr`, ...signed, '-out', `${who}.crt`);
    }
    const file = (name: string) => path.join(certificates, name);
    const read = (name: string) => readFileSync(file(name));
    const port = await freePort();
    await TestRedis.start(
      [
        ...['--port', '0', '--tls-port', String(port), '--requirepass', 'secret'],
        ...['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')],
        ...['--tls-ca-cert-file', file('ca.crt')],
      ],
      port,
    );
    const [ca, cert] = [read('ca.crt'), read('client.crt')];
    const socket = { tls: true, host: '127.0.0.1', port, ca, cert, key: read('client.key') };
    const a = await openReplica({ socket, password: 'secret' });
    const url = `rediss://:secret@127.0.0.1:${port}`;
    const b = await openReplica({ url, socket: { ca, cert, key: read('client.key') } });
    await work(a, 'a', 10);
    expect(await expectEqual(a, b)).toBe(10);
    const wrong = [
      [{ url, socket: { cert, key: read('client.key') } }, /certificate/],
      [{ url, socket: { ca } }, /certificate|closed|reset|EPIPE/i],
      [
        { url: url.replace('secret', 'wrong'), socket: { ca, cert, key: read('client.key') } },
        /WRONGPASS/,
      ],
      [{ url: url.replace('rediss', 'redis') }, /no answer|closed|reset|EPIPE/i],
    ] as const;
    for (const [redis, reason] of wrong) {
      const replica = await openReplica(redis, { openWaitMs: 0, commandTimeoutMs: 1000 });
      const said = () => replica.health().lastError?.message ?? '';
      await until(() => reason.test(said()), String(reason), said);
      expect(replica.health().connected).toBe(false);
    }
  });

  it('is content with an ACL user that may use its own keys only', async () => {
    const redis = await TestRedis.start();
    const rule = documentedRule().map((part) => (part.startsWith('>') ? '>secret' : part));
    redis.cli('ACL', 'SETUSER', 'finch', ...rule);
    const user = { url: redis.url, username: 'finch', password: 'secret' };
    const options = { snapshotEvery: 20, keepRecords: 5 };
    const a = await openReplica(user, options);
    const b = await openReplica(user, options);
    await work(a, 'a', 50);
    await expectEqual(a, b);
    await until(() => a.health().snapshot > 0, 'a snapshot');
    await b.report({ decisionId: 'a-1', toolId: 'mail', outcome: 'error' });
    const late = await openReplica(user, options);
    expect(await expectEqual(a, b, late)).toBe(51);
    redis.cli('EVAL', "redis.call('DEL', unpack(redis.call('KEYS', '*')))", '0');
    await until(
      () => [a, b, late].some((each) => each.health().events.length > 0),
      'it is put back',
    );
    await expectEqual(a, b, late);
    expect(redis.cli('ACL', 'LOG')).toBe('');
    const other = await openReplica(user, { tenant: 'other', openWaitMs: 200 });
    await until(() => other.health().lastError !== undefined, 'an error');
    expect(other.health().lastError?.message).toMatch(/NOPERM|No permissions|permission/i);
    expect(other.health().connected).toBe(false);
  });

  it('goes where a cluster says that the keys are', async () => {
    const nodes: TestRedis[] = [];
    for (let i = 0; i < 2; i++) {
      const bus = String(await freePort());
      nodes.push(await TestRedis.start(['--cluster-enabled', 'yes', '--cluster-port', bus]));
    }
    const [one, two] = nodes as [TestRedis, TestRedis];
    one.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
    two.cli('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383');
    two.cli('CONFIG', 'SET', 'cluster-announce-bus-port', '0');
    const bus = two.cli('CONFIG', 'GET', 'cluster-port').split('\n')[1] as string;
    one.cli('CLUSTER', 'MEET', '127.0.0.1', String(two.port), bus);
    const isOk = (node: TestRedis) => node.cli('CLUSTER', 'INFO').includes('cluster_state:ok');
    await until(() => isOk(one) && isOk(two), 'the cluster is one');
    const a = await openReplica(one.url);
    const b = await openReplica(two.url);
    await work(a, 'a', 30);
    expect(await expectEqual(a, b)).toBe(30);
    expect(updates(b)).toBe(30);
    const keys = nodes.map((node) => node.cli('DBSIZE'));
    expect(keys.filter((count) => count === '0')).toHaveLength(1);
  });

  it('is refused with the reason when the options are none of the client', async () => {
    const options = { url: 'http://127.0.0.1' };
    await expectCode(openReplica(options), 'FINCH_INVALID_ARGUMENT');
  });

  it('waits out a Redis that has no room, and says so', async () => {
    const redis = await TestRedis.start(['--maxmemory-policy', 'noeviction']);
    const a = await openReplica(redis.url);
    await work(a, 'a', 10);
    await settle(a);
    redis.cli('CONFIG', 'SET', 'maxmemory', '1');
    await work(a, 'b', 10);
    await until(() => a.health().lastError?.message.includes('OOM') === true, 'the reason');
    expect(a.health().waiting).toBe(10);
    redis.cli('CONFIG', 'SET', 'maxmemory', '0');
    await settle(a);
    expect(updates(a)).toBe(20);
  });

  it('names a key that holds what no replica put there', async () => {
    const redis = await TestRedis.start();
    for (const [name, put] of [
      ['stream', ['SET', 'toolfinch:{acme:tools}:stream', 'mine']],
      ['origins', ['RPUSH', 'toolfinch:{acme:tools}:origins', 'mine']],
      ['state', ['SET', 'toolfinch:{acme:tools}:state', 'mine']],
    ] as const) {
      redis.cli('FLUSHALL');
      redis.cli(...put);
      const a = await openReplica(redis.url, { openWaitMs: 200 });
      decide(a, 'waits');
      await a.report({ decisionId: 'waits', toolId: 'maps', outcome: 'success' });
      const key = `toolfinch:{acme:tools}:${name} is a ${name === 'origins' ? 'list' : 'string'}`;
      await until(() => a.health().lastError?.message.includes(key) === true, key);
      redis.cli('DEL', `toolfinch:{acme:tools}:${name}`);
      await settle(a);
      expect(updates(a)).toBe(1);
    }
  });

  it('refuses options that are none of its', async () => {
    const misspelt = { ...replicaOptions({}), maxwaiting: 5 };
    const error = await expectCode(
      ReplicatedFeedback.open(scratch(), misspelt as never),
      'FINCH_INVALID_ARGUMENT',
    );
    expect(error.message).toMatch(/maxwaiting.*maxWaiting/);
  });
});
