import type { Spread } from './failure-metrics.js';
import type { MethodResult, ScenarioResult } from './simulate.js';

/** A scenario's results as a Markdown table: percent, mean ± sd over the seeds. */
export function failureTable(result: ScenarioResult): string {
  const { scenario } = result;
  const columns: [string, (method: MethodResult) => string][] = [
    ['method', ({ name, setting }) => (setting === '' ? name : `${name} (${setting})`)],
    ['SR before', ({ before }) => percent(before)],
    ['SR after', ({ after }) => percent(after)],
    ['FSR', ({ failedSelections }) => percent(failedSelections)],
    ['calls a step', ({ calls }) => calls.mean.toFixed(2)],
    ['AS', ({ adaptation }) => steps(adaptation)],
    ['AS, whole windows', ({ wholeAdaptation }) => steps(wholeAdaptation)],
    [scenario === 'recovery' ? 'SR once back' : 'SR later', ({ late }) => percent(late)],
  ];
  if (scenario === 'recovery') {
    columns.push([
      'steps to catch up',
      ({ catchUp }) => (catchUp === null ? 'never' : String(catchUp)),
    ]);
  } else {
    columns.push(['FSR later', ({ lateFailedSelections }) => percent(lateFailedSelections)]);
  }
  if (scenario === 'new-tools') {
    columns.push([
      'SR on new tools',
      ({ onNewTools }) => percent(onNewTools ?? { mean: 0, sd: 0 }),
    ]);
  }
  const rows = result.methods.map((method) => columns.map(([, cell]) => cell(method)));
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(columns.map(([name]) => name)),
    line(columns.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows.map(line),
  ].join('\n');
}

function percent({ mean, sd }: Spread): string {
  return `${(100 * mean).toFixed(1)} ± ${(100 * sd).toFixed(1)}`;
}

/** The median of the seeds that reached it, and how many did not. */
function steps(values: readonly (number | null)[]): string {
  const reached = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (reached.length === 0) return 'failed';
  const middle = reached[(reached.length - 1) >> 1];
  const failed = values.length - reached.length;
  return failed === 0 ? String(middle) : `${middle}, ${failed} of ${values.length} failed`;
}
