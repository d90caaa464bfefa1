import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { freePort } from '../../../scripts/free-port.mjs';
import { scratch } from '../scratch.js';
import { describeRedis, TestRedis } from './redis-server.js';
import { openReplica, updates } from './replica.js';

const run = promisify(execFile);

/** Reports until the disk refuses (a limit on file size stands in for a full one), and says what it was told. */
const script = `
import { ReplicatedFeedback } from ${JSON.stringify(path.resolve('dist/esm/lib/index.js'))};
import { FakeBandit } from './fake-bandit.mjs';
const [, , folder, port] = process.argv;
const replica = await ReplicatedFeedback.open(folder, {
  bandit: { dimension: 4 }, createBandit: (options) => new FakeBandit(options), retryMs: 0, openWaitMs: 0,
  tenant: 'acme', catalogue: 'tools', redis: { url: 'redis://127.0.0.1:' + port },
});
const said = { acknowledged: 0, failed: [], health: [] };
for (let i = 0; i < 1000 && said.failed.length < 3; i++) {
  const decisionId = 'd' + i;
  replica.decide({ id: decisionId, x: Float32Array.of(1, 2, 3, 4), toolIds: ['mail'], priors: Float32Array.of(0.5) });
  try {
    const { durable } = await replica.report({ decisionId, toolId: 'mail', outcome: 'success' });
    if (durable) said.acknowledged++;
  } catch (error) {
    said.failed.push(error.code);
    said.health.push(replica.health().durable, replica.health().reason);
  }
}
await replica.close();
console.log(JSON.stringify(said));
`;

describeRedis('a disk that fills up', () => {
  it('fails the reports that meet it, and keeps those it acknowledged', async () => {
    const beside = scratch();
    const { outputText } = ts.transpileModule(
      readFileSync('test/reliability/fake-bandit.ts', 'utf8'),
      { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } },
    );
    writeFileSync(path.join(beside, 'fake-bandit.mjs'), outputText);
    writeFileSync(path.join(beside, 'child.mjs'), script);
    const folder = scratch();
    const port = await freePort();
    const command = 'ulimit -f 64; exec "$0" "$@"';
    const args = [process.execPath, path.join(beside, 'child.mjs'), folder, String(port)];
    const { stdout } = await run('sh', ['-c', command, ...args]);
    const said = JSON.parse(stdout) as {
      acknowledged: number;
      failed: string[];
      health: unknown[];
    };
    expect(said.failed).toEqual(['FINCH_IO', 'FINCH_IO', 'FINCH_IO']);
    expect(said.acknowledged).toBeGreaterThan(20);
    expect(said.health[0]).toBe(false);
    expect(said.health[1]).toContain('ulimit -f');
    await TestRedis.start([], port);
    const again = await openReplica(`redis://127.0.0.1:${port}`, {}, folder);
    await again.flush();
    await again.catchUp();
    expect(updates(again)).toBe(said.acknowledged);
    expect(again.health()).toMatchObject({
      durable: true,
      waiting: 0,
      delivered: said.acknowledged,
    });
  });
});
