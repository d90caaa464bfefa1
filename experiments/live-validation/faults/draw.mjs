import { Random } from '../random.mjs';
import { spoils } from './fault.mjs';

/**
 * A fault and the server it hits.
 *
 * @typedef {object} PlannedFault
 * @property {string} server
 * @property {import('./fault.mjs').Fault} fault
 */

/** What goes wrong at once, the one that asks most of a server first. */
const kinds = /** @type {const} */ ([
  'partial',
  'crash',
  'hang',
  'errors',
  'token',
  'slow',
  'crash',
  'errors',
]);

/** Share of the tasks that a fault must touch to be seen. */
const leastShare = 0.01;

/**
 * Draws which servers fail and how, among those that at least 1 % of the tasks go to. A kind of task that several servers can do keeps
 * a working one; what only one server can do may be lost. A fault
 * that finds no such server is left out.
 *
 * @param {number} seed
 * @param {object} from
 * @param {readonly import('../fleet/servers.mjs').ServerPlan[]} from.plans
 * @param {readonly import('../tasks/kind.mjs').TaskKind[]} from.kinds
 * @param {readonly import('../tasks/generate.mjs').Task[]} from.tasks
 * @param {readonly (string | undefined)[]} from.first the tool that each task goes to without feedback
 * @param {number} from.delayMs of the slow one
 * @returns {PlannedFault[]}
 */
export function drawFaults(seed, { plans, kinds: taskKinds, tasks, first, delayMs }) {
  const random = new Random(seed);
  /** @type {Map<string, import('./fault.mjs').Fault>} */
  const drawn = new Map();
  const spares = (/** @type {string} */ server) =>
    taskKinds.every(({ tools }) => {
      const servers = new Set(tools.map(serverOf));
      return servers.size === 1 || [...servers].some((each) => each !== server && !drawn.has(each));
    });
  const touched = (
    /** @type {import('../fleet/servers.mjs').ServerPlan} */ { name, partial: pattern },
    /** @type {boolean} */ partly,
  ) =>
    tasks.filter(
      ({ slots }, i) =>
        first[i]?.startsWith(`${name}/`) &&
        (!partly || (pattern !== undefined && spoils({ kind: 'partial', pattern }, slots))),
    ).length;
  for (const kind of kinds) {
    const open = plans.filter(
      (plan) =>
        !drawn.has(plan.name) &&
        spares(plan.name) &&
        touched(plan, kind === 'partial') >= leastShare * tasks.length,
    );
    // In few tasks, none may be asked for what it could get wrong.
    if (open.length === 0) continue;
    const { name, partial } = random.pick(open);
    drawn.set(name, {
      kind,
      ...(kind === 'slow' ? { delayMs } : {}),
      ...(kind === 'partial' && partial !== undefined ? { pattern: partial } : {}),
    });
  }
  return Array.from(drawn, ([server, fault]) => ({ server, fault }));
}

/** The server of a tool's id. @param {string} toolId */
export function serverOf(toolId) {
  return toolId.slice(0, toolId.indexOf('/'));
}
