import { performance } from 'node:perf_hooks';
import { fillArguments } from './fill.mjs';

/** @typedef {import('../../../dist/esm/lib/index.js').Outcome} Outcome */

/**
 * One call of a tool.
 *
 * @typedef {object} Call
 * @property {string} tool
 * @property {Outcome} outcome as reported: `cancelled` when the tool worked but was the wrong one for the task, which is the
 *   agent's mistake
 * @property {number} ms
 */

/**
 * What the agent did for one task.
 *
 * @typedef {object} Step
 * @property {Call[]} calls none when nothing was chosen or nothing could be filled in
 * @property {boolean} solved
 */

/**
 * The tools of a decision that the task's slots fit, best first.
 *
 * @param {import('../../../dist/esm/lib/index.js').Decision} decision
 * @param {import('../tasks/generate.mjs').Task} task
 */
export function fillable({ tools }, task) {
  return tools.flatMap(({ id, tool }) => {
    const args = fillArguments(tool, task.slots);
    return args === undefined ? [] : [{ id, args }];
  });
}

/**
 * The agent's loop for one task: select, take the best tool that can be filled in, call it, check, report; and, where the
 * method retries, the next tool.
 *
 * @param {import('../tasks/generate.mjs').Task} task
 * @param {import('./methods.mjs').Method} method
 * @param {import('../fleet/fleet.mjs').Fleet} fleet
 * @param {number} timeoutMs
 * @returns {Promise<Step>}
 */
export async function step(task, method, fleet, timeoutMs) {
  const decision = await method.select(task.text);
  /** @type {Call[]} */
  const calls = [];
  for (const { id, args } of fillable(decision, task).slice(0, method.attempts)) {
    const start = performance.now();
    /** @type {Outcome} */
    let outcome;
    try {
      const answer = await fleet.call(id, args, timeoutMs);
      const right = task.check(answer);
      outcome = right ? 'success' : task.tools.includes(id) ? 'error' : 'cancelled';
    } catch {
      outcome = performance.now() - start >= timeoutMs ? 'timeout' : 'error';
    }
    calls.push({ tool: id, outcome, ms: performance.now() - start });
    await method.learn(decision, id, outcome);
    if (outcome === 'success') break;
  }
  return { calls, solved: calls.at(-1)?.outcome === 'success' };
}
