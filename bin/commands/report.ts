import { FinchError, type Outcome, outcomes, ToolIndex } from '../../lib/index.js';
import { type Command, parse, UsageError } from '../arguments.js';
import { feedbackFolder, withFeedback } from '../feedback-folder.js';

const usage = `usage: toolfinch report DECISION TOOL OUTCOME [--index FILE]

Records how a chosen tool did; the next select learns from it. DECISION is the id that select printed, or 'last'.
OUTCOME is success, error, timeout or cancelled (by the user: not the tool's fault). Returns once it is on disk; a second
report of the same decision and tool changes nothing.

  --index FILE               the index (default: tools.finch)
  --feedback FOLDER          the feedback folder (default: FILE.feedback)
  --json                     the result as JSON`;

export const report: Command = {
  name: 'report',
  summary: 'record how a chosen tool did',
  usage,
  async run(args) {
    const { values, positionals } = parse(args, {
      index: { type: 'string', default: 'tools.finch' },
      feedback: { type: 'string' },
      json: { type: 'boolean', default: false },
    });
    const [decision, toolId, outcome] = positionals;
    if (
      decision === undefined ||
      toolId === undefined ||
      outcome === undefined ||
      positionals.length > 3
    ) {
      throw new UsageError('expected a decision, a tool and an outcome');
    }
    if (!outcomes.includes(outcome as Outcome)) {
      throw new UsageError(`the outcome is '${outcome}'; expected ${outcomes.join(', ')}`);
    }
    const folder = feedbackFolder(values.index, values.feedback);
    const result = await withFeedback(folder, await ToolIndex.inspect(values.index), (store) => {
      const decisionId = decision === 'last' ? store.latestDecision() : decision;
      if (decisionId === undefined) {
        throw new FinchError(
          'FINCH_UNKNOWN_ID',
          `${folder} holds no decision yet; run select first.`,
        );
      }
      return store.report({ decisionId, toolId, outcome: outcome as Outcome });
    });
    process.stdout.write(
      values.json ? `${JSON.stringify(result)}\n` : `${toolId}: ${outcome}, ${result.status}\n`,
    );
  },
};
