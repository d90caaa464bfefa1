import { scorePlot, writePicture } from '../../lib/evaluate/index.js';
import {
  type CutRule,
  type Decision,
  FinchError,
  type Query,
  type SelectOptions,
  Selector,
  type TaskState,
  ToolIndex,
} from '../../lib/index.js';
import { type Command, given, numberOption, parse, UsageError } from '../arguments.js';
import { encoderOptions, encoderUsage, openEncoder } from '../encoder-options.js';
import { feedbackFolder, withFeedback } from '../feedback-folder.js';
import { checkPlot } from '../output-file.js';
import { printable } from '../printable.js';
import { readText } from '../sources.js';
import { drawDecision } from '../terminal-chart.js';

const usage = `usage: toolfinch select QUERY [--index FILE]
       toolfinch select --state STATE.json [--index FILE]

Prints the tools for a query, the score each stage gave, and where the list was cut.

  --index FILE               the index (default: tools.finch)
  --state FILE               {"instruction", "actions", "observation"} instead of a query
  --feedback FOLDER          where decisions and outcomes are kept (default: FILE.feedback); --no-feedback: nowhere
  --method NAME              hybrid (default), dense or lexical
  --shortlist N              candidates before the cut (default 10)
  --k N                      a fixed cut after N instead of the dynamic one
  --max-tools N              at most N tools
  --max-tokens N             at most N prompt tokens of definitions
  --floor X                  choose nothing when the best score is below X
  --allow ID,…  --exclude ID,…  --pin ID,…  --group NAME,…
${encoderUsage}
  --plot FILE                the scores and the cut as a picture, .svg or .png
  --json                     the decision record`;

export const select: Command = {
  name: 'select',
  summary: 'pick the tools for a query or a task state, and draw the cut',
  usage,
  async run(args) {
    const { values, positionals } = parse(args, {
      index: { type: 'string', default: 'tools.finch' },
      state: { type: 'string' },
      feedback: { type: 'string' },
      'no-feedback': { type: 'boolean', default: false },
      method: { type: 'string' },
      shortlist: { type: 'string' },
      k: { type: 'string' },
      'max-tools': { type: 'string' },
      'max-tokens': { type: 'string' },
      floor: { type: 'string' },
      allow: { type: 'string' },
      exclude: { type: 'string' },
      pin: { type: 'string' },
      group: { type: 'string' },
      plot: { type: 'string' },
      json: { type: 'boolean', default: false },
      ...encoderOptions,
    });
    const query = await readQuery(positionals, values.state);
    const k = numberOption('k', values.k);
    const options = given({
      method: values.method as SelectOptions['method'],
      shortlist: numberOption('shortlist', values.shortlist),
      maxTools: numberOption('max-tools', values['max-tools']),
      maxTokens: numberOption('max-tokens', values['max-tokens']),
      relevanceFloor: numberOption('floor', values.floor),
      cut: k === undefined ? undefined : ({ rule: 'fixed', k } satisfies CutRule),
      allow: list(values.allow),
      exclude: list(values.exclude),
      pin: list(values.pin),
      groups: list(values.group),
    }) satisfies SelectOptions;

    await checkPlot(values.plot);
    const encoder = await openEncoder(values);
    const toolIndex = await ToolIndex.open(values.index, { encoder });
    const plain = () => new Selector({ index: toolIndex }).select(query, options);
    const decision = values['no-feedback']
      ? await plain()
      : await withFeedback(feedbackFolder(values.index, values.feedback), encoder, (feedback) =>
          new Selector({ index: toolIndex, feedback }).select(query, options),
        ).catch((error: unknown) => {
          // Another process serves from this folder: choosing is still possible, learning is its business.
          if (!(error instanceof FinchError) || error.code !== 'FINCH_IO') throw error;
          process.stderr.write(`warning: selecting without feedback: ${error.message}\n`);
          return plain();
        });
    toolIndex.close();
    await encoder.close();
    if (values.plot !== undefined) await drawPicture(values.plot, decision);
    process.stdout.write(
      values.json ? `${JSON.stringify(decision, null, 2)}\n` : describe(decision),
    );
  },
};

const reasons: Record<NonNullable<Decision['reason']>, string> = {
  'empty-index': 'the index has no tools',
  'nothing-allowed': '--allow, --exclude and --group leave no tool',
  'no-match': 'no tool shares a word with the query',
  'below-floor': 'no tool is relevant enough (see --floor)',
  unanswerable: 'the candidates look like those of a query that no tool answers',
  'below-threshold': 'no tool reaches the score of the cut',
  unhealthy: 'every relevant tool is failing at present',
  'over-budget': 'no tool fits --max-tokens',
};

/** What `select` prints: the chart, then the chosen tools. */
export function describe(decision: Decision): string {
  const { tools, reason, counts, milliseconds, pinnedMissing } = decision;
  const timing = Object.entries(milliseconds)
    .map(([stage, ms]) => `${stage} ${ms.toFixed(1)} ms`)
    .join(', ');
  const chosen = tools.map(({ id, tool, tokens, pinned }) => {
    const text = tool.description.replace(/\s+/g, ' ');
    const about = text.length > 88 ? `${text.slice(0, 87)}…` : text;
    return printable(`  ${id}${pinned ? ' (pinned)' : ''} · ${tokens} tokens\n    ${about}\n`);
  });
  return [
    drawDecision(decision, process.stdout.isTTY === true && process.env.NO_COLOR === undefined),
    '\n',
    reason === undefined
      ? `${tools.length} of ${counts.eligible} tools:\n${chosen.join('')}`
      : `no tool: ${reasons[reason]}\n`,
    pinnedMissing === undefined
      ? ''
      : `pinned, but not there or not allowed: ${pinnedMissing.join(', ')}\n`,
    `\ndecision ${decision.id} (${timing})\n`,
  ].join('');
}

/** The candidates that the cut looked at, with their scores, gaps and the cut. */
async function drawPicture(file: string, { query, candidates, cut }: Decision): Promise<void> {
  if (cut === undefined) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      '--plot: there was no candidate, so there is nothing to draw.',
    );
  }
  const svg = scorePlot({
    title: query,
    subtitle: `${cut.rule} cut after ${cut.k} of ${cut.n} candidates`,
    tools: candidates.slice(0, cut.n).map(({ id, score }) => ({ name: id, score })),
    cut,
    similarities: cut.similarities,
  });
  await writePicture(file, svg);
}

async function readQuery(positionals: string[], statePath: string | undefined): Promise<Query> {
  if (statePath === undefined) {
    if (positionals.length !== 1) {
      throw new UsageError(
        positionals.length === 0
          ? 'no query is given'
          : 'more than one query is given; put it in quotes',
      );
    }
    return positionals[0] as string;
  }
  if (positionals.length > 0) throw new UsageError('give a query or --state, not both');
  const text = await readText(statePath);
  try {
    return JSON.parse(text) as TaskState;
  } catch (error) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${statePath} is not JSON (${(error as Error).message}); expected {"instruction": …, "actions": […], "observation": …}.`,
    );
  }
}

function list(value: string | undefined): string[] | undefined {
  return value
    ?.split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
}
