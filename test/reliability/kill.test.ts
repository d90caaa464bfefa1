import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { compileStore } from './child.js';

const run = promisify(execFile);

async function killLoop(...args: string[]): Promise<{ acknowledged: number; applied: number }> {
  const script = path.resolve('scripts/kill-loop.mjs');
  const { stdout } = await run(process.execPath, [script, '--kills', '10', ...args]);
  return JSON.parse(stdout) as { acknowledged: number; applied: number };
}

// The long form: node scripts/kill-loop.mjs --kills 200
it('a kill at any moment loses no acknowledged report and applies none twice (addon)', async () => {
  const { acknowledged, applied } = await killLoop();
  expect(acknowledged).toBeGreaterThan(0);
  expect(applied).toBeGreaterThanOrEqual(acknowledged);
});

it('neither with a bandit in plain JavaScript', async () => {
  const sources = mkdtempSync(path.join(tmpdir(), 'finch-kill-sources-'));
  try {
    compileStore(sources);
    const bandit = path.join(sources, 'test/reliability/fake-bandit.js');
    const { acknowledged, applied } = await killLoop('--dist', sources, '--bandit', bandit);
    expect(acknowledged).toBeGreaterThan(0);
    expect(applied).toBeGreaterThanOrEqual(acknowledged);
  } finally {
    rmSync(sources, { recursive: true, force: true });
  }
});
