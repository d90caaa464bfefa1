import { cpSync, rmSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { FeedbackStore } from '../../lib/reliability/feedback-store.js';
import { lockName } from '../../lib/reliability/folder-lock.js';
import { outcomes, rewardOf } from '../../lib/reliability/reward.js';
import { FakeBandit } from './fake-bandit.js';
import { bytesOf, context, dimension, expectCode, openFake, priors, scratch } from './scratch.js';

type Operation =
  | { kind: 'decide'; tools: number }
  | { kind: 'report'; decision: number; tool: number; outcome: number; at: number; times: number }
  | { kind: 'drop'; tool: number }
  | { kind: 'compact' }
  | { kind: 'reopen' }
  | { kind: 'crash' };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('decide'), tools: fc.nat(4) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('report'),
      decision: fc.nat(30),
      tool: fc.nat(5),
      outcome: fc.nat(3),
      at: fc.nat(1000),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop'), tool: fc.nat(4) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('compact') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reopen') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('crash') }) },
) as fc.Arbitrary<Operation>;

/** What the store promises, said plainly: every accepted report once, in order, each with its decision's context. */
class Model {
  readonly bandit = new FakeBandit({ dimension });
  readonly decisions: Array<{ id: string; tools: string[]; reported: Set<string> }> = [];

  report(decision: number, toolId: string, outcome: number, at: number): void {
    const { tools, reported } = this.decisions[decision] as Model['decisions'][number];
    reported.add(toolId);
    const y = rewardOf(outcomes[outcome] ?? 'cancelled');
    if (y === undefined) return;
    const prior = priors(tools.length).subarray(tools.indexOf(toolId)).slice(0, 1);
    const x = context(decision);
    this.bandit.update([toolId], x, prior, Float32Array.of(y), Float64Array.of(at));
  }
}

it('holds what a plain model holds, through restarts, crashes and compactions', async () => {
  const root = scratch();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 80, size: 'max' }), async (operations) => {
      let folder = path.join(root, `run-${run++}`);
      let store: FeedbackStore<FakeBandit> = await openFake(folder);
      const model = new Model();
      for (const step of operations) {
        switch (step.kind) {
          case 'decide': {
            const tools = Array.from({ length: step.tools }, (_, i) => `tool-${i}`);
            const seed = model.decisions.length;
            const id = store.decide({
              x: context(seed),
              toolIds: tools,
              priors: priors(step.tools),
            });
            model.decisions.push({ id, tools, reported: new Set() });
            break;
          }
          case 'report': {
            const toolId = `tool-${step.tool}`;
            const decision = model.decisions[step.decision];
            const report = {
              decisionId: decision?.id ?? 'nobody',
              toolId,
              outcome: outcomes[step.outcome] ?? 'success',
              at: step.at,
            };
            if (decision === undefined || !decision.tools.includes(toolId)) {
              await expectCode(store.report(report), 'FINCH_UNKNOWN_ID');
              break;
            }
            const fresh = !decision.reported.has(toolId);
            const results = await Promise.all(
              Array.from({ length: step.times }, () => store.report(report)),
            );
            const statuses = results.map(({ status }) => status);
            const accepted = step.outcome === 3 ? 'recorded' : 'applied';
            const expected = Array.from({ length: step.times }, (_, i) =>
              fresh && i === 0 ? accepted : 'duplicate',
            );
            expect(statuses.sort()).toEqual(expected.sort());
            if (fresh) model.report(step.decision, toolId, step.outcome, step.at);
            break;
          }
          case 'drop':
            await store.drop([`tool-${step.tool}`]);
            model.bandit.drop([`tool-${step.tool}`]);
            break;
          case 'compact':
            await store.compact();
            break;
          case 'reopen':
            await store.close();
            store = await openFake(folder);
            break;
          case 'crash': {
            // What a kill leaves behind: the files as they are. Decisions are written without being waited for.
            await store.flush();
            const copy = path.join(root, `run-${run++}`);
            cpSync(folder, copy, { recursive: true, filter: (name) => !name.endsWith(lockName) });
            await store.close();
            rmSync(folder, { recursive: true });
            folder = copy;
            store = await openFake(folder);
            break;
          }
        }
        expect(bytesOf(store.bandit)).toBe(bytesOf(model.bandit));
      }
      await store.close();
      const last = await openFake(folder);
      expect(bytesOf(last.bandit)).toBe(bytesOf(model.bandit));
      await last.close();
      rmSync(folder, { recursive: true });
    }),
    { numRuns: 30 },
  );
});
