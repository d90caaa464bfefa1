import { EvictionQueue } from '../eviction-queue.js';
import type { StoredDecision, StoredReport } from './snapshot.js';

export interface WindowLimits {
  maxDecisions: number;
  maxReports: number;
  reportAgeMs: number;
}

/** A decision's and a tool's id as one key; the length keeps ("a", "bc") and ("ab", "c") apart. */
export function reportKey(decisionId: string, toolId: string): string {
  return `${decisionId.length}:${decisionId}${toolId}`;
}

/**
 * The decisions that reports may still come for, and the reports that came. A decision knows which of its tools were
 * reported for as long as it is kept, so nothing can be applied twice; the keys of reports outlive it, so that a late
 * repetition is a duplicate and not an unknown id.
 */
export class DecisionWindow {
  readonly decisions: Map<string, StoredDecision>;
  readonly reports: Map<string, StoredReport>;
  readonly #limits: WindowLimits;
  /** The keys of the two maps, in the maps' order. */
  readonly #decisionOrder: EvictionQueue<string>;
  readonly #reportOrder: EvictionQueue<string>;
  /** The decision added last. */
  latest: string | undefined;

  constructor(
    limits: WindowLimits,
    decisions = new Map<string, StoredDecision>(),
    reports = new Map<string, StoredReport>(),
  ) {
    this.#limits = limits;
    for (const id of decisions.keys()) this.latest = id;
    this.decisions = decisions;
    this.reports = reports;
    this.#decisionOrder = new EvictionQueue(decisions.keys());
    this.#reportOrder = new EvictionQueue(reports.keys());
    this.#trimDecisions();
  }

  add(decision: StoredDecision): void {
    if (!this.decisions.has(decision.id)) this.#decisionOrder.push(decision.id);
    this.decisions.set(decision.id, decision);
    this.latest = decision.id;
    this.#trimDecisions();
  }

  /** A kept decision and which of its tools were reported on; undefined when it is unknown or forgotten. */
  seen(
    id: string,
  ): { time: number; toolIds: readonly string[]; reported: readonly string[] } | undefined {
    const stored = this.decisions.get(id);
    if (stored === undefined) return undefined;
    const { time, toolIds, reported } = stored;
    return { time, toolIds, reported: [...(reported?.keys() ?? [])] };
  }

  hasReport(decisionId: string, toolId: string): boolean {
    return (
      this.decisions.get(decisionId)?.reported?.has(toolId) === true ||
      this.reports.has(reportKey(decisionId, toolId))
    );
  }

  addReport(decisionId: string, toolId: string, report: StoredReport): void {
    const decision = this.decisions.get(decisionId);
    if (decision !== undefined) {
      decision.reported ??= new Map();
      decision.reported.set(toolId, report.sequence);
    }
    const key = reportKey(decisionId, toolId);
    if (!this.reports.has(key)) this.#reportOrder.push(key);
    this.reports.set(key, report);
    const since = report.time - this.#limits.reportAgeMs;
    for (let next = this.#reportOrder.oldest; next !== undefined; next = this.#reportOrder.oldest) {
      const isOld = (this.reports.get(next)?.time ?? since) < since;
      if (this.reports.size <= this.#limits.maxReports && !isOld) break;
      this.reports.delete(next);
      this.#reportOrder.shift();
    }
  }

  #trimDecisions(): void {
    while (this.decisions.size > this.#limits.maxDecisions) {
      const id = this.#decisionOrder.shift();
      if (id === undefined) break;
      this.decisions.delete(id);
    }
  }
}
