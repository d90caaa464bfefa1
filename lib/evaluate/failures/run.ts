import { type CandidateList, firstVisible, type SimulatedQuery } from './environment.js';
import type { SelectionMethod } from './method.js';
import type { Scenario } from './scenario.js';

/** What a run did, by step − 1. */
export interface RunRecord {
  /** The tool whose call ended the step; −1 when there was no candidate. */
  readonly selected: Int32Array;
  /** The selected tool is right, and its call worked. */
  readonly success: Uint8Array;
  /** The first call of the step failed: the tool was selected while it was unavailable. */
  readonly failed: Uint8Array;
  /** Calls of the step. */
  readonly calls: Uint8Array;
}

const firstTime = 1_700_000_000_000;

/** Runs one method through a scenario. */
export function runScenario(method: SelectionMethod, scenario: Scenario): RunRecord {
  const { protocol, stream, warmup } = scenario;
  const { steps, topK, stepMs } = protocol;
  const record: RunRecord = {
    selected: new Int32Array(steps).fill(-1),
    success: new Uint8Array(steps),
    failed: new Uint8Array(steps),
    calls: new Uint8Array(steps),
  };
  const source = method.source ?? 'hybrid';
  const lists = new Map<SimulatedQuery, CandidateList>();
  let hidden: ReadonlySet<number> | undefined;
  const candidatesOf = (query: SimulatedQuery): CandidateList => {
    let list = lists.get(query);
    if (list === undefined) {
      const all = query.candidates[source];
      if (all === undefined) throw new Error(`${query.id} has no candidates of ${source}`);
      list = firstVisible(all, topK, hidden ?? new Set());
      lists.set(query, list);
    }
    return list;
  };
  for (const [i, { query, tool }] of warmup.entries()) {
    method.learn?.(query, tool, true, firstTime + (i - warmup.length) * stepMs);
  }
  for (let step = 1; step <= steps; step++) {
    const query = stream[step - 1] as SimulatedQuery;
    const now = firstTime + step * stepMs;
    if (scenario.hidden(step) !== hidden) {
      hidden = scenario.hidden(step);
      lists.clear();
    }
    const works = (tool: number) => scenario.works(tool, step);
    const ranked = method.rank(query, candidatesOf(query), now, works);
    const attempts = Math.min(method.attempts ?? 1, ranked.length);
    let worked = false;
    for (let attempt = 0; attempt < attempts && !worked; attempt++) {
      const tool = ranked[attempt] as number;
      worked = works(tool);
      method.learn?.(query, tool, scenario.reported(tool, step), now);
      record.selected[step - 1] = tool;
      record.calls[step - 1] = attempt + 1;
      if (attempt === 0 && !worked) record.failed[step - 1] = 1;
      if (worked && query.gold.has(tool)) record.success[step - 1] = 1;
    }
    method.afterStep?.(now, works);
  }
  return record;
}
