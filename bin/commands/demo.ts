import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  type Decision,
  FeedbackStore,
  importTools,
  Selector,
  type TaskState,
  ToolIndex,
} from '../../lib/index.js';
import { packageRoot } from '../../lib/native.js';
import { type Command, parse } from '../arguments.js';
import { encoderOptions, encoderUsage, openEncoder } from '../encoder-options.js';
import { ProgressLine } from '../progress.js';
import { drawDecision } from '../terminal-chart.js';

const usage = `usage: toolfinch demo

A guided tour on the built-in catalogue, a phone assistant's 249 tools: index, select, abstain, follow a task, learn from
failures, recover. Everything it shows is computed as it runs.

${encoderUsage}`;

const minute = 60_000;

export const demo: Command = {
  name: 'demo',
  summary: 'a guided tour on the built-in catalogue',
  usage,
  async run(args) {
    const { values } = parse(args, encoderOptions);
    const folder = path.join(packageRoot(), 'demo', 'phone-assistant');
    const colour = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
    const say = (text: string) => process.stdout.write(`${text}\n`);
    const show = (decision: Decision) => {
      const { tools, reason, candidates } = decision;
      say(
        drawDecision(
          reason === undefined ? decision : { ...decision, candidates: candidates.slice(0, 3) },
          colour,
        ),
      );
      say(
        reason === undefined
          ? `→ ${tools.map(({ id }) => id).join(', ')}\n`
          : `→ none (${reason})\n`,
      );
    };

    const { tools } = importTools(await readFile(path.join(folder, 'tools.json')), {
      origin: 'demo/phone-assistant/tools.json',
    });
    const encoder = await openEncoder(values);
    say(`1. Index. ${tools.length} MCP tools, embedded with ${encoder.model}.\n`);
    const progress = new ProgressLine('encoding', 'texts');
    const index = await ToolIndex.build(tools, {
      encoder,
      onProgress: ({ done, total }) => progress.update(done, total),
    });
    progress.end();
    const scratch = await mkdtemp(path.join(tmpdir(), 'toolfinch-demo-'));
    try {
      const file = path.join(scratch, 'phone.finch');
      await index.save(file);
      say(`   saved as one file, ${((await stat(file)).size / 1024).toFixed(0)} KiB\n`);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }

    let now = Date.now();
    const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
    const selector = new Selector({ index, feedback, now: () => now });
    const ask = async (query: string | TaskState) => {
      if (typeof query === 'string') say(`   "${query}"\n`);
      const decision = await selector.select(query);
      show(decision);
      return decision;
    };

    say(
      '2. Select. Green is chosen. The list is cut at the later of two marks (◂): the largest gap between scores (gap), and the\n   largest drop in the similarity of neighbours (sim). reliab: estimated success; avail: falls with failures.\n',
    );
    await ask('ring at ten to six tomorrow morning, I have a plane to catch');
    await ask('split the dinner bill with Kim and Lee');

    say(
      '3. Abstain. The best score is below what this model gives to anything relevant, so nothing is shown.\n',
    );
    await ask('who wrote The Magic Mountain?');

    say(
      '4. Follow a task. The same instruction finds other tools once the first steps are done.\n',
    );
    const state = JSON.parse(await readFile(path.join(folder, 'state.json'), 'utf8')) as TaskState;
    say(`   "${state.instruction}"\n   nothing done yet:\n`);
    await ask({ instruction: state.instruction });
    say(`   after ${state.actions?.length ?? 0} actions, now: ${state.observation}\n`);
    await ask(state);

    say('5. Learn. The best tool for a query starts to fail; each failure is reported.\n');
    const query = 'what will the weather be like at the weekend?';
    const first = await ask(query);
    const failing = first.candidates[0]?.id ?? '';
    for (let i = 0; i < 3; i += 1) {
      now += minute / 6;
      const { id } = i === 0 ? first : await selector.select(query);
      await selector.report(id, failing, 'error');
    }
    say(`   after three errors of ${failing}:\n`);
    await ask(query);
    now += 60 * minute;
    say(`   an hour later ${failing} is tried again; it works, and is back:\n`);
    const retried = await selector.select(query);
    await selector.report(retried.id, failing, 'success');
    await ask(query);

    await feedback.close();
    index.close();
    await encoder.close();
    say('Next: toolfinch index --help, toolfinch select --help, and the README.');
  },
};
