import { expect } from 'vitest';
import type { ReplicaOptions } from '../../../lib/reliability/replicas/replica-options.js';
import { ReplicatedFeedback } from '../../../lib/reliability/replicas/replicated-feedback.js';
import { FakeBandit } from '../fake-bandit.js';
import { bytesOf, context, dimension, priors, scratch } from '../scratch.js';
import { closing } from './redis-server.js';

export type Replica = ReplicatedFeedback<FakeBandit>;
export type Options = ReplicaOptions<FakeBandit>;

export function replicaOptions(more: Partial<Options>): Options {
  return {
    bandit: { dimension },
    createBandit: (options) => new FakeBandit(options),
    sync: 'none',
    tenant: 'acme',
    catalogue: 'tools',
    redis: {},
    // Generous: a busy machine is no Redis that does not answer.
    commandTimeoutMs: 10_000,
    openWaitMs: 60_000,
    closeWaitMs: 500,
    ...more,
  };
}

/** A replica that is closed after the test. */
export async function openReplica(
  redis: string | Options['redis'],
  more: Partial<Options> = {},
  folder = scratch(),
): Promise<Replica> {
  const where = typeof redis === 'string' ? { url: redis } : redis;
  return closing(await ReplicatedFeedback.open(folder, replicaOptions({ redis: where, ...more })));
}

export const tools = ['mail', 'maps', 'music'];

export function decide(replica: Replica, id: string, seed = id.length): string {
  return replica.decide({ id, x: context(seed), toolIds: tools, priors: priors(tools.length) });
}

/** Decides and reports `count` times. */
export async function work(replica: Replica, name: string, count: number): Promise<void> {
  const reports = Array.from({ length: count }, (_, i) => {
    const decisionId = decide(replica, `${name}-${i}`, i);
    const toolId = tools[i % tools.length] as string;
    return replica.report({ decisionId, toolId, outcome: i % 3 === 1 ? 'error' : 'success' });
  });
  await Promise.all(reports);
}

/** Waits until all replicas have everything of one another. */
export async function settle(...replicas: Replica[]): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  for (const replica of replicas) await replica.flush({ signal });
  for (const replica of replicas) await replica.catchUp({ signal });
}

/** Settles the replicas and expects the same bits in all; gives how many records they applied. */
export async function expectEqual(...replicas: Replica[]): Promise<number> {
  await settle(...replicas);
  const [first, ...others] = replicas as [Replica, ...Replica[]];
  for (const other of others) {
    expect(other.checksum()).toEqual(first.checksum());
    expect(bytesOf(other.bandit)).toBe(bytesOf(first.bandit));
  }
  return first.checksum().applied;
}

export async function until(
  condition: () => boolean,
  what: string,
  seen: () => unknown = () => '',
): Promise<void> {
  for (let i = 0; !condition(); i++) {
    if (i > 3000) throw new Error(`not in 60 s: ${what} ${seen()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function updates(replica: Replica): number {
  return tools.reduce((sum, tool) => sum + replica.bandit.updatesOf(tool), 0);
}
