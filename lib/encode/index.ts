/** Text to unit vectors: ONNX model folders, OpenAI-compatible endpoints, and a cache before either. */
export {
  CachedEncoder,
  type CachedEncoderOptions,
  type CacheStatistics,
} from './cached-encoder.js';
export type { EncodeKind, EncodeOptions, Encoder } from './encoder.js';
export { HttpEncoder, type HttpEncoderOptions } from './http-encoder.js';
export {
  type ModelFolder,
  type ModelFolderOptions,
  type ModelManifest,
  type RerankerManifest,
  readModelFolder,
  readRerankerFolder,
  type WordPieceManifest,
} from './model-folder.js';
export {
  defaultEncoder,
  defaultModel,
  type EncoderBinding,
  OnnxEncoder,
  type OnnxEncoderOptions,
} from './onnx-encoder.js';
export { findRuntime, type RuntimeOptions } from './runtime.js';
export { VectorCache } from './vector-cache.js';
