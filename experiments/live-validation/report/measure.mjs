import { serverOf } from '../faults/draw.mjs';

/** @typedef {import('../experiment.mjs').Run} Run */
/** @typedef {import('../experiment.mjs').Record} Record */
/** @typedef {import('../experiment.mjs').Results} Results */

/** Tasks over which a running success rate is taken. */
export const runningTasks = 40;
/** The share of the success rate before the faults that counts as back. */
export const backShare = 0.95;

/** What is measured of one run. @typedef {ReturnType<typeof measureRun>} Measures */

/**
 * @param {Run} run
 * @param {Results} results
 */
export function measureRun(run, { plans }) {
  const { records } = run;
  const faulty = new Set(
    plans.find(({ seed }) => seed === run.seed)?.faults.map(({ server }) => server),
  );
  const phase = (/** @type {Record['phase']} */ name) =>
    records.filter((record) => record.phase === name);
  const [before, during, after] = [phase('before'), phase('during'), phase('after')];
  const rateBefore = solvedShare(before);
  const calls = during.flatMap((record) => record.calls);
  const returned = toolsBack(during, after, faulty);
  return {
    all: solvedShare(records),
    pings: run.pings,
    before: rateBefore,
    during: solvedShare(during),
    duringAnswerable: solvedShare(during.filter(({ answerable }) => answerable)),
    after: solvedShare(after),
    afterFirst: solvedShare(after.slice(0, runningTasks)),
    failedBefore: failures(before),
    failedDuring: failures(during),
    failedAfter: failures(after),
    failedShare: failures(during) / Math.max(1, calls.length),
    /** Seconds that calls took during the faults, per task. */
    waitDuring: calls.reduce((sum, { ms }) => sum + ms, 0) / 1000 / Math.max(1, during.length),
    adapted: tasksUntilBack(
      during.filter(({ answerable }) => answerable),
      rateBefore,
    ),
    recovered: tasksUntilBack(after, rateBefore),
    failedTools: returned.failed,
    toolsBack: returned.back,
    tasksBack: returned.tasks,
  };
}

/** @param {readonly Record[]} records */
export function solvedShare(records) {
  return records.filter(({ solved }) => solved).length / Math.max(1, records.length);
}

/** @param {import('../agent/step.mjs').Call} call */
function failed({ outcome }) {
  return outcome === 'error' || outcome === 'timeout';
}

/** @param {readonly Record[]} records */
function failures(records) {
  return records.flatMap(({ calls }) => calls).filter(failed).length;
}

/**
 * Tasks until the success rate of the tasks behind is back; undefined: never.
 *
 * @param {readonly Record[]} records
 * @param {number} before the success rate to get back to
 */
function tasksUntilBack(records, before) {
  for (let end = runningTasks; end <= records.length; end++) {
    if (solvedShare(records.slice(end - runningTasks, end)) >= backShare * before) {
      return end - runningTasks;
    }
  }
  return undefined;
}

/**
 * Of the tools that failed and that are wanted again afterwards: how many are in use again, and after how many tasks.
 *
 * @param {readonly Record[]} during
 * @param {readonly Record[]} after
 * @param {ReadonlySet<string>} faulty
 */
function toolsBack(during, after, faulty) {
  const lost = new Set(
    during.flatMap(({ calls }) =>
      calls
        .filter((call) => failed(call) && faulty.has(serverOf(call.tool)))
        .map(({ tool }) => tool),
    ),
  );
  const wanted = [...lost].filter((tool) => after.some(({ first }) => first === tool));
  /** @type {number[]} */
  const tasks = [];
  for (const tool of wanted) {
    const used = after.findIndex(({ calls }) =>
      calls.some((call) => call.tool === tool && call.outcome === 'success'),
    );
    const asked = after.findIndex(({ first }) => first === tool);
    if (used >= 0) tasks.push(Math.max(0, used - asked));
  }
  return { failed: wanted.length, back: tasks.length, tasks };
}
