import { FeedbackStore, HealthChecks, Selector } from '../../../dist/esm/lib/index.js';
import { serverOf } from '../faults/draw.mjs';
import { ServerHealth } from './server-health.mjs';

/** @typedef {import('../../../dist/esm/lib/index.js').Decision} Decision */
/** @typedef {import('../../../dist/esm/lib/index.js').Outcome} Outcome */

/**
 * A way to choose tools and to learn from what came of it.
 *
 * @typedef {object} Method
 * @property {number} attempts tools that may be tried for one task
 * @property {(text: string) => Promise<Decision>} select
 * @property {(decision: Decision, toolId: string, outcome: Outcome) => Promise<void>} learn
 * @property {() => number} pings health checks made so far, outside the tasks' calls
 * @property {() => Promise<void>} close
 */

/**
 * @typedef {object} Setting
 * @property {import('../../../dist/esm/lib/index.js').ToolIndex} index
 * @property {() => number} now the experiment's clock, Unix milliseconds
 * @property {(server: string) => Promise<void>} ping rejects when the server does not answer
 */

/**
 * Every method by its name. The product's own clock is the experiment's; what else differs is in the name.
 *
 * @type {Record<string, (setting: Setting) => Method>}
 */
export const methods = {
  'no feedback': (setting) => withoutMemory(setting, 1),
  blacklist: (setting) => blacklist(setting, 1),
  'retry (k = 3)': (setting) => withoutMemory(setting, 3),
  'blacklist + retry': (setting) => blacklist(setting, 3),
  toolfinch: (setting) => toolfinch(setting),
  'toolfinch, 1 s a task': (setting) => toolfinch(tenTimesBusier(setting)),
  'toolfinch, half-life 10 min': (setting) => toolfinch(setting, { halfLifeMs: 600_000 }),
  'toolfinch + health checks': (setting) => toolfinch(setting, { checks: true }),
  'toolfinch + pings': (setting) => toolfinch(setting, { pings: true }),
  'toolfinch + retry': (setting) => toolfinch(setting, { attempts: 3 }),
  'toolfinch + pings + retry': (setting) => toolfinch(setting, { attempts: 3, pings: true }),
};

/**
 * The same tasks, ten times as close together.
 *
 * @param {Setting} setting
 * @returns {Setting}
 */
function tenTimesBusier({ now, ...others }) {
  const start = now();
  return { ...others, now: () => start + (now() - start) / 10 };
}

/** @param {Setting} setting @param {number} attempts @returns {Method} */
function withoutMemory({ index }, attempts) {
  const selector = new Selector({ index });
  return {
    attempts,
    select: (text) => selector.select(text),
    learn: async () => undefined,
    pings: () => 0,
    close: async () => undefined,
  };
}

/** One failure excludes a tool for good. @param {Setting} setting @param {number} attempts @returns {Method} */
function blacklist({ index }, attempts) {
  const selector = new Selector({ index });
  /** @type {Set<string>} */
  const failed = new Set();
  return {
    attempts,
    select: (text) => selector.select(text, { exclude: failed }),
    learn: async (_, toolId, outcome) => {
      if (outcome === 'error' || outcome === 'timeout') failed.add(toolId);
    },
    pings: () => 0,
    close: async () => undefined,
  };
}

/**
 * The product, with its defaults but for what is given.
 *
 * @param {Setting} setting
 * @param {object} [choice]
 * @param {number} [choice.attempts] default 1
 * @param {number} [choice.halfLifeMs] in which a failed tool's availability returns half-way; the product's default is 30 s
 * @param {boolean} [choice.checks] with `HealthChecks`, whose probe pings the tool's server; default false
 * @param {boolean} [choice.pings] with a health check of the host's own; default false
 * @returns {Method}
 */
function toolfinch(
  { index, now, ping },
  { attempts = 1, halfLifeMs, checks = false, pings = false } = {},
) {
  const { dimension, model } = index.encoder;
  const bandit = {
    dimension,
    ...(halfLifeMs === undefined ? {} : { availabilityHalfLife: halfLifeMs }),
  };
  const feedback = FeedbackStore.memory({ bandit, model, now });
  const selector = new Selector({ index, feedback });
  const health = new ServerHealth(ping, now);
  let probes = 0;
  // Rounds go by the experiment's clock: one before each task, and what is due then is probed.
  const round = new HealthChecks({
    feedback,
    toolIds: () => index.ids(),
    probe: async (toolId) => {
      probes += 1;
      await ping(serverOf(toolId));
      return true;
    },
  });
  return {
    attempts,
    select: async (text) => {
      if (checks) await round.run();
      const down = await health.down();
      const exclude = index.tools().filter(({ group = '' }) => down.has(group));
      return selector.select(text, { exclude: exclude.map(({ id }) => id) });
    },
    learn: async (decision, toolId, outcome) => {
      await selector.report(decision.id, toolId, outcome);
      if (pings && (outcome === 'error' || outcome === 'timeout')) {
        await health.check(serverOf(toolId));
      }
    },
    pings: () => health.pings + probes,
    close: () => feedback.close(),
  };
}
