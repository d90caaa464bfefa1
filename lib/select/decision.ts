import type { Tool } from '../catalog/tool.js';
import type { FinchCode } from '../errors.js';
import type { RerankScoreKind } from '../rerank/reranker.js';
import type { CutRuleName } from '../truncate/cut-rule.js';
import type { Cut } from '../truncate/dynamic-cut.js';

/** What feedback says of a tool, and how it entered the score. */
export interface ReliabilityRecord {
  /** The arm's estimate of success in this context. Without feedback: the prior. */
  readonly mean: number;
  /** The exploration bonus that was added; 0 when exploring is off. */
  readonly bonus: number;
  /**
   * In [0, 1]. 1: taken to work, or due for a trial after failures (`lastOutcome` is then 0); below 0.5: suspended, or taken
   * to fail for queries like this one (`contrast` below 0), until its trial is due.
   */
  readonly availability: number;
  /** The static prior, in [0, 1]. */
  readonly prior: number;
  /** Discounted number of reports behind the estimate. */
  readonly evidence: number;
  /** All reports ever. */
  readonly reports: number;
  /** The latest report: 1 worked, 0 failed; absent without one. */
  readonly lastOutcome?: number;
  /**
   * Of a tool that has failed and worked since: the query's cosine with the mean of the queries it worked for, less that with
   * the mean of those it failed for, in [-2, 2].
   */
  readonly contrast?: number;
}

/** Where a candidate's way ended. */
export type CandidateFate =
  | 'selected'
  /** Below the cut. */
  | 'cut'
  /** Above the cut, but maxTools or maxTokens left no room. */
  | 'budget'
  /** Its recent calls failed; it is left out until its next trial is due. */
  | 'unhealthy'
  /** Nothing was relevant enough, so nothing was chosen. */
  | 'abstained';

/** What the reranker did. */
export interface RerankRecord {
  /** Its `name@revision`. */
  readonly model: string;
  /** What `score` is below. */
  readonly scoreKind: RerankScoreKind;
  /** `done`: all were scored. `partial`: the budget was over before. `failed`: it failed, or did not
   * come back when the budget was over; the retrieval's order stands. */
  readonly outcome: 'done' | 'partial' | 'failed';
  /** How many tools it was given. */
  readonly sent: number;
  /** How many of them it scored. */
  readonly scored: number;
  /** All that it was given, in its order: scored ones best first, then the others as retrieved. */
  readonly order: ReadonlyArray<{
    readonly id: string;
    /** 0-based place the retrieval gave it. */
    readonly retrievalRank: number;
    /** As the model gave it; absent when it was not scored. */
    readonly score?: number;
    /** In [0, 1]; absent when it was not scored. */
    readonly probability?: number;
  }>;
  /** Why it failed. */
  readonly error?: { readonly code: FinchCode; readonly message: string };
}

/** A tool that was considered, with the score each stage gave it. */
export interface Candidate {
  readonly id: string;
  readonly fate: CandidateFate;
  /** The final score: semantic, reliability and prior fused. Candidates are in its order, unhealthy ones last. */
  readonly score: number;
  /** What was fused as semantic: the retrieval's score, or, after a reranker, its probability. */
  readonly semantic: number;
  /** 0-based place by it. */
  readonly semanticRank: number;
  /** The retrieval's score, when a reranker gave `semantic`. */
  readonly retrieval?: number;
  /** Cosine, when a dense stage ran. */
  readonly dense?: number;
  /** BM25, when a lexical stage ran. */
  readonly lexical?: number;
  /** The query calls it by name. */
  readonly named?: true;
  /** What the cut held against its threshold; absent for rules without one. */
  readonly cutValue?: number;
  readonly reliability: ReliabilityRecord;
  /** Estimated prompt tokens of its definition. */
  readonly tokens: number;
  /** Relevant, but its recent calls failed: availability below 0.5. */
  readonly unhealthy?: true;
}

export interface SelectedTool {
  readonly id: string;
  /** The tool as it was indexed; `tool.definition` is what its host wrote, byte for byte. */
  readonly tool: Tool;
  /** The final score; absent for a pinned tool that was no candidate. */
  readonly score?: number;
  readonly tokens: number;
  readonly pinned?: true;
}

/** Why nothing was chosen. */
export type NoneReason =
  /** The index has no tools. */
  | 'empty-index'
  /** `allow`, `exclude` and `groups` leave none. */
  | 'nothing-allowed'
  /** No candidate shares anything with the query (lexical retrieval). */
  | 'no-match'
  /** The best candidate is below the relevance floor. */
  | 'below-floor'
  /** The candidates look no better than those of queries that no tool answers (`abstain`). */
  | 'unanswerable'
  /** No candidate reaches the score of a threshold cut. */
  | 'below-threshold'
  /** Tools above the relevance floor are all failing at present. */
  | 'unhealthy'
  /** No tool fits maxTokens. */
  | 'over-budget';

/** The decision record: what was chosen, and why everything else was not. */
export interface Decision {
  /** Hand it to `report` with the outcome. */
  readonly id: string;
  /** The text that was encoded. */
  readonly query: string;
  /** What to show the model. */
  readonly tools: readonly SelectedTool[];
  /** Set exactly when `tools` is empty. */
  readonly reason?: NoneReason;
  /** Every candidate of the shortlist, in the order of the final score. */
  readonly candidates: readonly Candidate[];
  /** Where the list was cut; absent when there was nothing to cut. */
  readonly cut?: Cut & {
    readonly rule: CutRuleName;
    /** What a candidate's `cutValue` had to reach; absent for rules without a threshold. */
    readonly threshold?: number;
    /** What the calibrated cut aims for. */
    readonly target?: number;
    /** Cosines of neighbouring candidates, one fewer than `n`: unhealthy ones stand behind the others, unseen by the cut. */
    readonly similarities: readonly number[];
  };
  /** What `abstain` compared; absent without it, or without candidates. */
  readonly abstention?: {
    /** See `answerability`; of candidates that are not failing. */
    readonly answerability: number;
    /** Below it, nothing is chosen. */
    readonly threshold: number;
  };
  /** Stages that ran, in order. */
  readonly stages: readonly string[];
  readonly counts: {
    readonly indexed: number;
    readonly eligible: number;
    readonly retrieved: number;
    /** Scored by the reranker; absent without one. */
    readonly reranked?: number;
    readonly pinned: number;
    readonly returned: number;
  };
  /** What the reranker did; absent when none ran. */
  readonly rerank?: RerankRecord;
  /** Pinned ids that are not in the index or not allowed. */
  readonly pinnedMissing?: readonly string[];
  /** Milliseconds per stage, and in all. */
  readonly milliseconds: Readonly<Record<string, number>>;
}
