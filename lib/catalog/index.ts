/** The catalogue: tools, where they come from, and what is made of them before retrieval. */
export { contentHash } from './content-hash.js';
export type { WaitOptions } from './deadline.js';
export { type DefineToolOptions, defineTool, type ToolInput } from './define-tool.js';
export {
  type ImportMcpOptions,
  importMcpServers,
  type McpImport,
} from './import-mcp-servers.js';
export {
  detectFormat,
  type ImportFormat,
  type ImportOptions,
  type ImportResult,
  importFormats,
  importTools,
} from './import-tools.js';
export {
  type IndexTextOptions,
  type IndexTextPart,
  indexText,
  indexTextRecipe,
  indexTextVersion,
  type LexicalFields,
  lexicalFields,
  splitToolName,
} from './index-text.js';
export {
  type ConnectMcpOptions,
  connectMcp,
  type McpCallResult,
  type McpConnection,
} from './mcp.js';
export {
  type Environment,
  expandMcpServer,
  type McpConfig,
  type McpHttpServer,
  type McpServerConfig,
  type McpServerEntry,
  type McpStdioServer,
  readMcpConfig,
} from './mcp-config.js';
export { mergeTools, type ToolSource } from './merge-tools.js';
export {
  defaultSourceWeights,
  metadataPriors,
  type PriorOptions,
  type SourceWeights,
} from './prior.js';
export { splitWords } from './split-words.js';
export { countTokens, estimateTokens, type TokenCounter } from './tokens.js';
export { type JsonSchema, maxIdBytes, type Tool, type ToolReliability } from './tool.js';
