import { fields, optional, refuse } from '../../check.js';
import { FinchError } from '../../errors.js';
import type { Bandit, BanditState } from '../bandit.js';
import {
  type FeedbackLimits,
  type FeedbackOptions,
  feedbackLimits,
  feedbackMeta,
} from '../feedback-options.js';
import { type CatalogueKeys, catalogueKeys } from './keys.js';
import type { RedisOptions } from './redis-link.js';

export interface ReplicaOptions<B extends BanditState = Bandit> extends FeedbackOptions<B> {
  /** How Redis (6.2 or later) is reached: options of the official client, TLS, password and ACL user among them. */
  redis: RedisOptions;
  /** Whose catalogue it is; part of every key, so that an ACL rule can keep tenants apart. */
  tenant: string;
  /** Replicas of the same tenant and catalogue share what they learn. */
  catalogue: string;
  /** What all keys begin with; default `toolfinch`. */
  prefix?: string | undefined;
  /** Reports that may wait for Redis before `report` refuses more; default 100,000. They wait on the disk. */
  maxWaiting?: number | undefined;
  /** Records in the stream after which a snapshot is put into Redis and the stream trimmed behind it; default 10,000. */
  snapshotEvery?: number | undefined;
  /** Records left in the stream behind a snapshot, for replicas that are a little late; default 1,000. */
  keepRecords?: number | undefined;
  /** Decisions kept in Redis, so that another replica can take their reports; default 10,000, 0 for none. */
  sharedDecisions?: number | undefined;
  /** For how long, in milliseconds; default 1 hour. */
  decisionTtlMs?: number | undefined;
  /** For how long delivered reports stay in the folder, in case Redis loses them; default 60,000 ms. */
  retainMs?: number | undefined;
  /** Milliseconds for an answer from Redis before the connection is given up; default 5,000. */
  commandTimeoutMs?: number | undefined;
  /** Milliseconds that `open` waits to have caught up; then it goes on without; default 10,000. */
  openWaitMs?: number | undefined;
  /** Milliseconds that `close` waits for reports to be delivered; what is left is delivered after the next `open`; default 5,000. */
  closeWaitMs?: number | undefined;
}

export interface ReplicaLimits {
  maxWaiting: number;
  snapshotEvery: number;
  keepRecords: number;
  sharedDecisions: number;
  decisionTtlMs: number;
  retainMs: number;
  commandTimeoutMs: number;
  openWaitMs: number;
  closeWaitMs: number;
}

const defaults: ReplicaLimits = {
  maxWaiting: 100_000,
  snapshotEvery: 10_000,
  keepRecords: 1_000,
  sharedDecisions: 10_000,
  decisionTtlMs: 3_600_000,
  retainMs: 60_000,
  commandTimeoutMs: 5_000,
  openWaitMs: 10_000,
  closeWaitMs: 5_000,
};

const mayBeZero: ReadonlySet<keyof ReplicaLimits> = new Set([
  'keepRecords',
  'sharedDecisions',
  'retainMs',
  'openWaitMs',
  'closeWaitMs',
]);
// Timers take no more.
const most = 2 ** 31 - 1;

/** All there are: a misspelt one would silently leave the default. */
const known: Readonly<Record<keyof ReplicaOptions, true>> = {
  bandit: true,
  model: true,
  sync: true,
  maxDecisions: true,
  maxReports: true,
  reportAgeMs: true,
  compactBytes: true,
  retryMs: true,
  onCorruption: true,
  createBandit: true,
  now: true,
  redis: true,
  tenant: true,
  catalogue: true,
  prefix: true,
  maxWaiting: true,
  snapshotEvery: true,
  keepRecords: true,
  sharedDecisions: true,
  decisionTtlMs: true,
  retainMs: true,
  commandTimeoutMs: true,
  openWaitMs: true,
  closeWaitMs: true,
};

const redisRule = fields({ socket: optional(fields({})) });

export interface CheckedReplicaOptions {
  keys: CatalogueKeys;
  feedback: FeedbackLimits;
  limits: ReplicaLimits;
  /** What a replica's state depends on; the same in all of them. */
  meta: string;
  /** That, and whose it is: what a folder depends on. */
  folderMeta: string;
  redis: RedisOptions;
}

/** @throws FinchError FINCH_INVALID_ARGUMENT */
export function checkReplicaOptions<B extends BanditState>(
  options: ReplicaOptions<B>,
): CheckedReplicaOptions {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `options.${name} is no option of a replica; there are ${Object.keys(known).join(', ')}`,
    );
  }
  const feedback = feedbackLimits(options);
  redisRule(options.redis, 'options.redis');
  const { tenant, catalogue, prefix = 'toolfinch' } = options;
  const keys = catalogueKeys(prefix, tenant, catalogue);
  const limits = { ...defaults };
  for (const name of Object.keys(defaults) as Array<keyof ReplicaLimits>) {
    const value: unknown = options[name] ?? defaults[name];
    const least = mayBeZero.has(name) ? 0 : 1;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
      refuse(value, `options.${name}`, `a whole number from ${least} to ${most}`);
    }
    limits[name] = value;
  }
  const meta = replicaMeta(options, feedback);
  const folderMeta = JSON.stringify({ ...JSON.parse(meta), catalogue: keys.base });
  return { keys, feedback, limits, meta, folderMeta, redis: { ...options.redis } };
}

function replicaMeta<B extends BanditState>(
  options: ReplicaOptions<B>,
  { maxReports, reportAgeMs }: FeedbackLimits,
): string {
  for (const [name, value] of Object.entries(options.bandit) as Array<[string, unknown]>) {
    if (value !== undefined && typeof value !== 'number' && typeof value !== 'string') {
      refuse(value, `options.bandit.${name}`, 'a number, or the name of a form');
    }
  }
  const { alpha: _, ...stored } = options.bandit;
  // How availability is learnt shapes the state as well; exploration (alpha) only says how it is read.
  const others = Object.entries(stored)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const own = JSON.parse(feedbackMeta(options.bandit, options.model)) as object;
  return JSON.stringify({ ...Object.fromEntries(others), ...own, maxReports, reportAgeMs });
}

/** Refuses to share with replicas whose options would make other bits. @throws FinchError */
export function checkReplicaMeta(stored: string, expected: string, where: string): void {
  if (stored === expected) return;
  const is = JSON.parse(expected) as Record<string, unknown>;
  let was: Record<string, unknown>;
  try {
    was = JSON.parse(stored) as Record<string, unknown>;
  } catch (cause) {
    throw new FinchError('FINCH_CORRUPT', `${where} holds a meta that is not JSON`, { cause });
  }
  for (const name of new Set([...Object.keys(is), ...Object.keys(was)])) {
    const [here, there] = [is[name] ?? null, was[name] ?? null];
    // A side that names no model takes whatever the other has.
    if (here === there || (name === 'model' && (here === null || there === null))) continue;
    throw new FinchError(
      name === 'dimension' ? 'FINCH_DIMENSION' : 'FINCH_INVALID_ARGUMENT',
      `the replicas that share ${where} have ${name} ${JSON.stringify(there)}, and this one has ` +
        `${JSON.stringify(here)}; give all of them the same, or this one another catalogue`,
    );
  }
}
