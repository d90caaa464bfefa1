/** A query and documents to scores: ONNX cross-encoders, and any Cohere- or Jina-compatible endpoint. */
export type { PairTruncation, Provider } from '../native.js';
export { HttpReranker, type HttpRerankerOptions } from './http-reranker.js';
export {
  OnnxReranker,
  type OnnxRerankerOptions,
  type RerankCacheStatistics,
  type RerankerBinding,
} from './onnx-reranker.js';
export {
  type Reranked,
  type RerankedDocument,
  type Reranker,
  type RerankOptions,
  type RerankScoreKind,
  sigmoid,
} from './reranker.js';
