import type { CandidateList, CandidateSource, SimulatedQuery } from './environment.js';

/** One way to choose a tool, for one run: it starts knowing nothing. */
export interface SelectionMethod {
  /** Which candidates it works on; default `hybrid`, the product's. */
  readonly source?: CandidateSource;
  /** Calls within one step until one works; default 1. */
  readonly attempts?: number;
  /**
   * Candidates' tools, the one to call first.
   *
   * @param now milliseconds
   * @param works what only an oracle may look at
   */
  rank(
    query: SimulatedQuery,
    candidates: CandidateList,
    now: number,
    works: (tool: number) => boolean,
  ): ArrayLike<number>;
  /** The outcome of a call. */
  learn?(query: SimulatedQuery, tool: number, worked: boolean, now: number): void;
  /** After each step, whatever was called: checks outside user traffic. */
  afterStep?(now: number, works: (tool: number) => boolean): void;
  close?(): void;
}

/** A method by name, and how to start it. */
export interface MethodSpec {
  readonly name: string;
  readonly make: () => SelectionMethod;
}
