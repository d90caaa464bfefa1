import { faultKinds } from '../faults/fault.mjs';
import { backShare, measureRun, runningTasks, solvedShare } from './measure.mjs';

/** @typedef {import('../experiment.mjs').Results} Results */

/** @param {readonly number[]} values */
function mean(values) {
  return values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
}

/** @param {readonly number[]} values */
function deviation(values) {
  const m = mean(values);
  return Math.sqrt(
    values.reduce((sum, value) => sum + (value - m) ** 2, 0) / Math.max(1, values.length - 1),
  );
}

/** @param {readonly number[]} shares */
function percent(shares) {
  const scaled = shares.map((share) => 100 * share);
  return `${mean(scaled).toFixed(1)} ± ${deviation(scaled).toFixed(1)}`;
}

/** @param {readonly number[]} values @param {number} [digits] */
function average(values, digits = 1) {
  return mean(values).toFixed(digits);
}

/** @param {readonly (number | undefined)[]} counts */
function each(counts) {
  return counts.map((count) => (count === undefined ? 'never' : String(count))).join(', ');
}

/** @param {readonly number[]} values */
function median(values) {
  const up = [...values].sort((a, b) => a - b);
  return up.length === 0 ? undefined : up[Math.floor((up.length - 1) / 2)];
}

/** @param {readonly string[]} head @param {readonly (readonly string[])[]} rows */
function table(head, rows) {
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join(
    '\n',
  );
}

/**
 * All tables, as Markdown.
 *
 * @param {Results} results
 */
export function tables(results) {
  const { settings, plans, runs } = results;
  const byMethod = settings.methods.map((method) => ({
    method,
    measures: runs.filter((run) => run.method === method).map((run) => measureRun(run, results)),
  }));
  const [someRun] = settings.methods;
  const answerable = runs
    .filter(({ method }) => method === someRun)
    .map(({ records }) => {
      const during = records.filter(({ phase }) => phase === 'during');
      return during.filter((record) => record.answerable).length / Math.max(1, during.length);
    });
  return [
    `${results.servers} servers, ${results.tools} tools, ${results.kinds} kinds of tasks asked for in ${results.templates} ways; ` +
      `${settings.tasks.before} tasks before, ${settings.tasks.during} during and ${settings.tasks.after} after the faults, ` +
      `seeds ${settings.seeds.join(', ')}; time limit ${settings.timeoutMs} ms; ${settings.taskSeconds} s of the experiment's clock a task.`,
    'Tasks solved, % (mean ± sd over seeds). During the faults a working tool exists for ' +
      `${percent(answerable)} % of the tasks; "of these" counts those alone. "First ${runningTasks}": right after the faults.`,
    table(
      ['method', 'before', 'during', 'of these', `first ${runningTasks} after`, 'after', 'all'],
      byMethod.map(({ method, measures }) => [
        method,
        percent(measures.map((m) => m.before)),
        percent(measures.map((m) => m.during)),
        percent(measures.map((m) => m.duringAnswerable)),
        percent(measures.map((m) => m.afterFirst)),
        percent(measures.map((m) => m.after)),
        percent(measures.map((m) => m.all)),
      ]),
    ),
    'Failed calls (mean over seeds), their share of the calls during the faults, the seconds a task spends in calls then, and health checks outside the tasks.',
    table(
      ['method', 'before', 'during', 'after', 'share during, %', 's a task', 'pings'],
      byMethod.map(({ method, measures }) => [
        method,
        average(measures.map((m) => m.failedBefore)),
        average(measures.map((m) => m.failedDuring)),
        average(measures.map((m) => m.failedAfter)),
        percent(measures.map((m) => m.failedShare)),
        average(
          measures.map((m) => m.waitDuring),
          3,
        ),
        average(measures.map((m) => m.pings)),
      ]),
    ),
    `Tasks until the success rate of ${runningTasks} tasks in a row is at ${100 * backShare} % of what it was before, for each seed: ` +
      'after the faults began (tasks with a working tool), and after they ended (all tasks). Then: tools that failed, are the ' +
      'first choice for a task afterwards, and are in use again; and the median of tasks until that from when they are first wanted.',
    table(
      ['method', 'until adapted', 'until recovered', 'tools in use again', 'median tasks'],
      byMethod.map(({ method, measures }) => [
        method,
        each(measures.map((m) => m.adapted)),
        each(measures.map((m) => m.recovered)),
        `${measures.reduce((sum, m) => sum + m.toolsBack, 0)} of ${measures.reduce((sum, m) => sum + m.failedTools, 0)}`,
        median(measures.flatMap((m) => m.tasksBack))?.toString() ?? '–',
      ]),
    ),
    'Tasks solved during the faults, %, by the fault of the server that is chosen without feedback.',
    table(
      ['method', ...faultKinds, 'no fault'],
      settings.methods.map((method) => [
        method,
        ...[...faultKinds, undefined].map((kind) => {
          const hit = runs
            .filter((run) => run.method === method)
            .flatMap((run) => {
              const faults = plans.find(({ seed }) => seed === run.seed)?.faults ?? [];
              return run.records.filter(
                ({ phase, first }) =>
                  phase === 'during' &&
                  faults.find(({ server }) => first?.startsWith(`${server}/`))?.fault.kind === kind,
              );
            });
          return `${(100 * solvedShare(hit)).toFixed(1)} (${hit.length})`;
        }),
      ]),
    ),
    'The faults drawn.',
    table(
      ['seed', 'servers'],
      plans.map(({ seed, faults }) => [
        String(seed),
        faults.map(({ server, fault }) => `${server}: ${fault.kind}`).join(', '),
      ]),
    ),
  ].join('\n\n');
}
