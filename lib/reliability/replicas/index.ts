/** Feedback shared between processes through Redis. */
export type { RedisOptions } from './redis-link.js';
export type { ReplicaEvent, ReplicaHealth } from './replica-health.js';
export type { ReplicaOptions } from './replica-options.js';
export { ReplicatedFeedback } from './replicated-feedback.js';
