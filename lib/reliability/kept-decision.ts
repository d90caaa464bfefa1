import { randomUUID } from 'node:crypto';
import { FinchError } from '../errors.js';
import {
  checkContext,
  checkFields,
  checkId,
  checkIds,
  checkPriors,
  checkTime,
} from './check-feedback.js';
import type { DecisionWindow } from './decision-window.js';
import type { Decision } from './feedback-store.js';
import type { DecisionRecord } from './records.js';

/**
 * A caller's decision, checked and copied.
 *
 * @throws FinchError as `FeedbackStore.decide`.
 */
export function decisionRecord(
  decision: Decision,
  { dimension, window, now }: { dimension: number; window: DecisionWindow; now: () => number },
): DecisionRecord {
  checkFields(decision, 'decision', '{ x, toolIds, priors }');
  const { id = randomUUID(), x, toolIds, priors, time = now() } = decision;
  checkId(id, 'id');
  checkContext(x, dimension);
  checkIds(toolIds, 'toolIds');
  checkPriors(priors, toolIds.length);
  checkTime(time, 'time');
  if (window.decisions.has(id)) {
    throw new FinchError(
      'FINCH_DUPLICATE_ID',
      `there is a decision ${JSON.stringify(id)} already; leave id out to get a new one`,
    );
  }
  return {
    type: 'decision',
    id,
    time,
    x: x.slice(),
    toolIds: [...toolIds],
    priors: priors.slice(),
  };
}

/** What an outcome of one of its tools is learnt with. @throws FinchError FINCH_UNKNOWN_ID when it is none of its tools. */
export function toolContext(
  decision: DecisionRecord,
  toolId: string,
): { x: Float32Array; prior: number } {
  const place = decision.toolIds.indexOf(toolId);
  if (place < 0) {
    throw new FinchError(
      'FINCH_UNKNOWN_ID',
      `decision ${JSON.stringify(decision.id)} has no tool ${JSON.stringify(toolId)}; it has ` +
        (decision.toolIds
          .slice(0, 5)
          .map((id) => JSON.stringify(id))
          .join(', ') || 'none'),
    );
  }
  return { x: decision.x, prior: decision.priors[place] as number };
}
