import { Selector, ToolIndex } from '../../dist/esm/lib/index.js';
import { methods } from './agent/methods.mjs';
import { fillable, step } from './agent/step.mjs';
import { drawFaults, serverOf } from './faults/draw.mjs';
import { spoils } from './faults/fault.mjs';
import { generateTasks, taskKinds } from './tasks/generate.mjs';

/** @typedef {import('./faults/draw.mjs').PlannedFault} PlannedFault */
/** @typedef {import('./tasks/generate.mjs').Task} Task */

/**
 * @typedef {object} Settings
 * @property {number[]} seeds
 * @property {{ before: number, during: number, after: number }} tasks in each phase
 * @property {number} timeoutMs that the agent waits for a tool
 * @property {number} taskSeconds by which the experiment's clock goes on with each task
 * @property {string[]} methods
 */

/**
 * One task of one method.
 *
 * @typedef {object} Record
 * @property {string} kind
 * @property {'before' | 'during' | 'after'} phase
 * @property {boolean} answerable whether a tool that does it works at this time
 * @property {string | undefined} first the tool that is chosen without feedback
 * @property {import('./agent/step.mjs').Call[]} calls
 * @property {boolean} solved
 */

/** @typedef {{ seed: number, method: string, seconds: number, pings: number, records: Record[] }} Run */
/** @typedef {{ seed: number, faults: PlannedFault[] }} Plan */
/** @typedef {{ settings: Settings, servers: number, tools: number, kinds: number, templates: number, answered: number, plans: Plan[], runs: Run[], pids?: number[] }} Results */

/**
 * Runs every method on the same tasks and faults, seed by seed.
 *
 * @param {import('./fleet/fleet.mjs').Fleet} fleet started
 * @param {import('../../dist/esm/lib/index.js').Encoder} encoder
 * @param {Settings} settings
 * @param {(line: string) => void} tell
 * @returns {Promise<Results>}
 */
export async function runExperiment(fleet, encoder, settings, tell) {
  const kinds = taskKinds(fleet.folder);
  const index = await ToolIndex.build(fleet.tools, { encoder });
  /** @type {Plan[]} */
  const plans = [];
  /** @type {Run[]} */
  const runs = [];
  let answered = 0;
  try {
    for (const seed of settings.seeds) {
      const { before, during, after } = settings.tasks;
      const tasks = generateTasks(seed, before + during + after, fleet.folder);
      const first = await firstChoices(index, tasks);
      const faults = drawFaults(seed, {
        plans: fleet.plans,
        kinds,
        tasks,
        first,
        delayMs: 3 * settings.timeoutMs,
      });
      plans.push({ seed, faults });
      tell(
        `seed ${seed}: ${faults.map(({ server, fault }) => `${server} ${fault.kind}`).join(', ')}`,
      );
      for (const method of settings.methods) {
        answered = await countAnswering(fleet);
        const start = performance.now();
        const { records, pings } = await runMethod({
          fleet,
          index,
          settings,
          tasks,
          first,
          faults,
          method,
        });
        const seconds = (performance.now() - start) / 1000;
        runs.push({ seed, method, seconds, pings, records });
        const solved = records.filter((record) => record.solved).length;
        tell(`  ${method}: ${solved} of ${records.length} solved, ${seconds.toFixed(1)} s`);
      }
    }
  } finally {
    index.close();
  }
  return {
    settings,
    servers: fleet.plans.length,
    tools: fleet.tools.length,
    kinds: kinds.length,
    templates: kinds.reduce((sum, { templates }) => sum + templates.length, 0),
    answered,
    plans,
    runs,
  };
}

/**
 * The tool that each task is given to without feedback.
 *
 * @param {ToolIndex} index
 * @param {readonly Task[]} tasks
 */
async function firstChoices(index, tasks) {
  const selector = new Selector({ index });
  const out = [];
  for (const task of tasks) out.push(fillable(await selector.select(task.text), task)[0]?.id);
  return out;
}

/** How many servers answer; all must, before a run. @param {import('./fleet/fleet.mjs').Fleet} fleet */
async function countAnswering(fleet) {
  await Promise.all(fleet.plans.map(({ name }) => fleet.ping(name, 60_000)));
  return fleet.plans.length;
}

/**
 * @param {object} given
 * @param {import('./fleet/fleet.mjs').Fleet} given.fleet
 * @param {ToolIndex} given.index
 * @param {Settings} given.settings
 * @param {readonly Task[]} given.tasks
 * @param {readonly (string | undefined)[]} given.first
 * @param {readonly PlannedFault[]} given.faults
 * @param {string} given.method
 */
async function runMethod({ fleet, index, settings, tasks, first, faults, method: name }) {
  const { before, during } = settings.tasks;
  let now = Date.UTC(2026, 0, 1);
  const make = methods[name];
  if (make === undefined) throw new Error(`there is no method ${name}`);
  const method = make({
    index,
    now: () => now,
    ping: (server) => fleet.ping(server, settings.timeoutMs / 2),
  });
  /** @type {Record[]} */
  const records = [];
  try {
    for (const [i, task] of tasks.entries()) {
      now += settings.taskSeconds * 1000;
      if (i === before) await setAll(fleet, faults, true);
      if (i === before + during) await setAll(fleet, faults, false);
      const phase = i < before ? 'before' : i < before + during ? 'during' : 'after';
      const failing = phase === 'during' ? faults : [];
      records.push({
        kind: task.kind,
        phase,
        answerable: task.tools.some((tool) => !fails(failing, tool, task)),
        first: first[i],
        ...(await step(task, method, fleet, settings.timeoutMs)),
      });
    }
  } finally {
    await setAll(fleet, faults, false);
    await method.close();
  }
  return { records, pings: method.pings() };
}

/**
 * @param {import('./fleet/fleet.mjs').Fleet} fleet
 * @param {readonly PlannedFault[]} faults
 * @param {boolean} on
 */
async function setAll(fleet, faults, on) {
  await Promise.all(faults.map(({ server, fault }) => fleet.setFault(server, on ? fault : null)));
}

/**
 * Whether a call of the tool for the task fails while the faults last.
 *
 * @param {readonly PlannedFault[]} faults
 * @param {string} tool
 * @param {Task} task
 */
export function fails(faults, tool, task) {
  const planned = faults.find(({ server }) => server === serverOf(tool));
  if (planned === undefined) return false;
  return planned.fault.kind !== 'partial' || spoils(planned.fault, task.slots);
}
