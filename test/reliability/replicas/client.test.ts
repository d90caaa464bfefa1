import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { ReplicatedFeedback } from '../../../lib/reliability/replicas/replicated-feedback.js';
import { expectCode, scratch } from '../scratch.js';
import { replicaOptions } from './replica.js';

vi.mock('redis', () => {
  throw new Error('not installed');
});

it('says what to install where the client is missing, before anything is made', async () => {
  const folder = path.join(scratch(), 'replica');
  const options = replicaOptions({ redis: { url: 'redis://127.0.0.1:9' } });
  const error = await expectCode(ReplicatedFeedback.open(folder, options), 'FINCH_DEVICE');
  expect(error.message).toContain('npm install redis');
  expect(existsSync(folder)).toBe(false);
});
