/**
 * Toolfinch: the right few tools for an agent's next step, and feedback on which of them really work.
 *
 * {@link Selector} wires the stages; each can be used alone: catalogue, encode, retrieve, rerank, reliability,
 * truncate.
 *
 * @packageDocumentation
 */
export * from './catalog/index.js';
export * from './encode/index.js';
export { type FinchCode, FinchError, finchCodes } from './errors.js';
export * from './reliability/index.js';
export * from './rerank/index.js';
export * from './retrieve/index.js';
export * from './select/index.js';
export * from './truncate/index.js';
