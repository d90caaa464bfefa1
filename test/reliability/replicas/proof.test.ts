import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { describeRedis } from './redis-server.js';

const run = promisify(execFile);

// The long form: node scripts/replicas.mjs
describeRedis('four replica processes, killed, cut off and left without Redis', () => {
  it('lose no acknowledged report, apply none twice, and hold the same bits', async () => {
    const args = [path.resolve('scripts/replicas.mjs'), '--reports', '2000', '--faults', '6'];
    const { stdout } = await run(process.execPath, args);
    const proof = JSON.parse(stdout) as Record<string, unknown>;
    expect(proof).toMatchObject({
      acknowledged: 2000,
      applied: 2000,
      lost: 0,
      twice: 0,
      equal: true,
    });
  });
});
