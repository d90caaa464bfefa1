import { writeFile } from 'node:fs/promises';
import { prepareEnvironment } from '../../lib/evaluate/failures/environment.js';
import { failureCurves } from '../../lib/evaluate/failures/failure-plot.js';
import { failureTable } from '../../lib/evaluate/failures/failure-table.js';
import {
  paperProtocol,
  type ScenarioName,
  scenarioNames,
} from '../../lib/evaluate/failures/scenario.js';
import {
  chooseSettings,
  type ScenarioResult,
  type SimulateOptions,
  simulateScenario,
} from '../../lib/evaluate/failures/simulate.js';
import {
  runSweep,
  type SweepName,
  sweepNames,
  sweepPlot,
  sweepTable,
} from '../../lib/evaluate/failures/sweep.js';
import { loadDataset, writePicture } from '../../lib/evaluate/index.js';
import { CachedEncoder, FinchError, ToolIndex } from '../../lib/index.js';
import { type Command, numberOption, parse, UsageError } from '../arguments.js';
import { encoderOptions, encoderUsage, openEncoder } from '../encoder-options.js';
import { checkOutput, checkPlot } from '../output-file.js';
import { ProgressLine } from '../progress.js';

const usage = `usage: toolfinch simulate failures --data FOLDER [--rate 0.2]

Makes tools fail under a stream of labelled queries and compares how methods of selection get along: RATED's protocol.
SR: share of steps whose selected tool is right and works; FSR: share whose selected tool does not work. FOLDER is a dataset
as for \`toolfinch evaluate\`; its split train (or a third of its queries) is for warm-up and settings alone.

  --data FOLDER              the dataset
  --rate SHARE               share of the tools that fail, above 0 up to 0.8 (default 0.2)
  --scenario NAMES           ${scenarioNames.join(', ')}, or all;
                             several with commas (default persistent)
  --seeds N                  seeds 1 to N (default 5)
  --steps N                  steps of the stream, 400 or more (default 10000); tools fail after a fifth of them
  --step-ms N                milliseconds between steps, for half-lives (default 1000)
  --sweep NAME               instead: one of ${sweepNames.join(', ')}
  --plot FILE                SR and FSR over steps of the first scenario, or the sweep, as .svg or .png
  --out FILE                 the JSON into a file as well
${encoderUsage}
  --json                     everything as JSON`;

export const simulate: Command = {
  name: 'simulate',
  summary: 'tools that fail: methods compared on labelled queries',
  usage,
  async run(args) {
    const { values, positionals } = parse(args, {
      data: { type: 'string' },
      rate: { type: 'string' },
      scenario: { type: 'string' },
      seeds: { type: 'string' },
      steps: { type: 'string' },
      'step-ms': { type: 'string' },
      sweep: { type: 'string' },
      plot: { type: 'string' },
      out: { type: 'string' },
      json: { type: 'boolean', default: false },
      ...encoderOptions,
    });
    if (positionals.length !== 1 || positionals[0] !== 'failures') {
      throw new UsageError("name what to simulate: 'failures'");
    }
    if (values.data === undefined) throw new UsageError('give the dataset with --data FOLDER');
    const rate = inRange('rate', numberOption('rate', values.rate) ?? 0.2, 0.001, 0.8);
    const seeds = whole('seeds', numberOption('seeds', values.seeds) ?? 5, 1, 1000);
    const steps = whole(
      'steps',
      numberOption('steps', values.steps) ?? paperProtocol.steps,
      400,
      10_000_000,
    );
    const stepMs = inRange(
      'step-ms',
      numberOption('step-ms', values['step-ms']) ?? paperProtocol.stepMs,
      0.001,
      1e9,
    );
    const scenarios = namedScenarios(values.scenario ?? 'persistent');
    const sweep = namedSweep(values.sweep);
    await checkPlot(values.plot);
    if (values.out !== undefined) await checkOutput('--out', values.out);

    const dataset = await loadDataset(values.data);
    const encoder = new CachedEncoder(await openEncoder(values));
    const indexing = new ProgressLine(`indexing ${dataset.tools.length} tools`, 'texts');
    const index = await ToolIndex.build(dataset.tools, {
      encoder,
      onProgress: ({ done, total }) => indexing.update(done, total),
    });
    indexing.end();
    const retrieving = new ProgressLine('retrieving', 'queries');
    const environment = await prepareEnvironment(dataset, index, {
      onProgress: ({ done, total }) => retrieving.update(done, total),
    });
    retrieving.end();
    const options: SimulateOptions = {
      rate,
      seeds: Array.from({ length: seeds }, (_, i) => i + 1),
      protocol: scaled(steps, stepMs),
    };
    const head = {
      dataset: dataset.name,
      model: encoder.model,
      tools: dataset.tools.length,
      queries: environment.test.length,
      validationQueries: environment.validation.length,
    };
    try {
      if (sweep !== undefined) {
        const progress = new ProgressLine(sweep, 'steps');
        const result = await runSweep(environment, sweep, {
          ...options,
          onProgress: ({ done, total }) => progress.update(done, total),
        });
        progress.end();
        if (values.plot !== undefined)
          await writePicture(values.plot, sweepPlot(result, dataset.name));
        await print(
          { ...head, sweep: result },
          `${title(head, rate)}\n\n${sweepTable(result)}\n`,
          values,
        );
        return;
      }
      const choosing = new ProgressLine('choosing settings', 'steps');
      const chosen = await chooseSettings(environment, {
        ...options,
        onProgress: ({ done, total }) => choosing.update(done, total),
      });
      choosing.end();
      const results: ScenarioResult[] = [];
      for (const scenario of scenarios) {
        const progress = new ProgressLine(scenario, 'steps');
        results.push(
          await simulateScenario(environment, scenario, chosen, {
            ...options,
            onProgress: ({ done, total }) => progress.update(done, total),
          }),
        );
        progress.end();
      }
      const [first] = results;
      if (values.plot !== undefined && first !== undefined) {
        await writePicture(values.plot, failureCurves(first, dataset.name));
      }
      const tables = results.map(
        (result) => `${result.scenario}: ${result.failingTools} tools\n\n${failureTable(result)}\n`,
      );
      const note =
        environment.test[0]?.candidates.rerank === undefined
          ? '\nNo cross-encoder was compared: no reranker was given.\n'
          : '';
      await print(
        { ...head, results },
        `${title(head, rate)}\n\n${tables.join('\n')}${note}`,
        values,
      );
    } finally {
      environment.snapshot.close();
      index.close();
      await encoder.close();
    }
  },
};

function title(
  head: {
    dataset: string;
    tools: number;
    queries: number;
    validationQueries: number;
    model: string;
  },
  rate: number,
): string {
  return `${head.dataset}: ${head.tools} tools, ${head.queries} test and ${head.validationQueries} validation queries, ${(100 * rate).toFixed(0)} % fail; ${head.model}`;
}

async function print(
  report: object,
  text: string,
  { json, out }: { json: boolean; out?: string | undefined },
): Promise<void> {
  const whole = `${JSON.stringify(report, null, 2)}\n`;
  if (out !== undefined) await writeFile(out, whole);
  process.stdout.write(json ? whole : text);
}

/** The protocol with its marks at the same shares of a shorter or longer stream. */
function scaled(steps: number, stepMs: number) {
  const part = (step: number) => Math.round((step * steps) / paperProtocol.steps);
  return {
    steps,
    stepMs,
    onset: part(paperProtocol.onset),
    windowEnd: part(paperProtocol.windowEnd),
    warmup: part(paperProtocol.warmup),
    trailing: Math.max(1, part(paperProtocol.trailing)),
  };
}

function namedScenarios(text: string): ScenarioName[] {
  if (text === 'all') return [...scenarioNames];
  return text.split(',').map((given) => {
    const name = scenarioNames.find((each) => each === given.trim());
    if (name !== undefined) return name;
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `--scenario has '${given}'; expected ${scenarioNames.join(', ')}, or all`,
    );
  });
}

function namedSweep(given: string | undefined): SweepName | undefined {
  if (given === undefined) return undefined;
  const name = sweepNames.find((each) => each === given);
  if (name !== undefined) return name;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `--sweep is '${given}'; expected ${sweepNames.join(', ')}`,
  );
}

function inRange(name: string, value: number, least: number, most: number): number {
  if (value >= least && value <= most) return value;
  throw new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `--${name} is ${value}; expected ${least} to ${most}.`,
  );
}

function whole(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value)) return inRange(name, value, least, most);
  throw new FinchError('FINCH_INVALID_ARGUMENT', `--${name} is ${value}; expected a whole number.`);
}
