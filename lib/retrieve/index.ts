/** Retrieval: exact and ANN search on the native core, BM25, and both on one scale. */
export type { SearchMode, VectorStorage } from '../native.js';
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
  type OpenOptions,
  type SearchOptions,
  Snapshot,
  setSearchWait,
  VectorIndex,
  type VectorIndexInfo,
  type VectorIndexOptions,
} from './vector-index.js';
