/** Retrieval: exact and ANN search on the native core, BM25, and both on one scale. */
export type { SearchMode } from '../native.js';
export type { Progress } from './encode-all.js';
export type { PriorRule } from './index-priors.js';
export { type LexicalHit, LexicalIndex } from './lexical-index.js';
export {
  type Retrieved,
  type RetrieveMethod,
  type RetrieveOptions,
  type RetrieveQuery,
  retrieve,
} from './retrieve.js';
export {
  type ChangeOptions,
  type ChangeSummary,
  ToolIndex,
  type ToolIndexOptions,
} from './tool-index.js';
export {
  AllowSet,
  type AnnOptions,
  type FileSection,
  type Hit,
  type SearchOptions,
  Snapshot,
  VectorIndex,
  type VectorIndexInfo,
} from './vector-index.js';
