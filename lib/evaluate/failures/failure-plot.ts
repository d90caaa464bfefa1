import { linePlot } from '../line-plot.js';
import { curveBlock, type ScenarioResult } from './simulate.js';

/** What most readers compare; the oracle is the bound. */
const shown = [
  'no feedback',
  'blacklist',
  'global MAB',
  'RATED as written',
  'ours (default)',
  'oracle',
];

/** SR and FSR over steps, one line a method: means of the seeds over blocks of steps. */
export function failureCurves(result: ScenarioResult, dataset: string, methods = shown): string {
  const { protocol, scenario, rate, seeds } = result;
  const some = result.methods.filter(({ name }) => methods.includes(name));
  const marks = [
    { x: protocol.onset, name: scenario === 'new-tools' ? 'tools appear' : 'tools fail' },
    ...(scenario === 'recovery' ? [{ x: protocol.windowEnd, name: 'tools return' }] : []),
  ];
  const panel = (heading: string, yName: string, of: 'success' | 'failed') => ({
    heading,
    xName: 'step',
    yName,
    marks,
    series: some.map(({ name, curve }) => ({
      name,
      x: curve[of].map((_, block) => (block + 1) * curveBlock),
      y: curve[of].map((value) => 100 * value),
      markers: false,
    })),
  });
  return linePlot({
    title: `${dataset}: ${scenario}, ${(100 * rate).toFixed(0)} % of the tools`,
    subtitle: `${seeds.length} seeds, means over ${curveBlock} steps`,
    panels: [
      panel('Success rate', 'SR (%)', 'success'),
      panel('Failed selections', 'FSR (%)', 'failed'),
    ],
  });
}
