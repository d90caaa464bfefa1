import { isRecord, own } from '../tool.js';

/** One tool's value beside the bytes it was read from, and the place to name in an error. */
export interface ToolElement {
  readonly value: Record<string, unknown>;
  /** The exact text of the value in its source. */
  readonly raw: string;
  /** For messages: `tools.json, tools[3]`. */
  readonly where: string;
}

/** What the caller of an import says about all of its tools. */
export interface ImportContext {
  /** Namespace: the prefix of every id that the source does not spell out, and the group of every tool. */
  readonly group?: string | undefined;
  /** Provenance given to every tool whose source does not name its own. */
  readonly source?: string | undefined;
  /** What the group is for, where the source does not say. */
  readonly groupDescription?: string | undefined;
}

/** The shapes of a single tool. */
export type ToolShape = 'mcp' | 'openai' | 'anthropic' | 'record';

/**
 * The shape of one tool object: `hosted` is a tool that a model's provider runs itself (web search, code interpreter):
 * it has no schema and nothing to retrieve. Undefined when the object is no tool at all.
 */
export function shapeOf(value: unknown): ToolShape | 'hosted' | undefined {
  if (!isRecord(value)) return undefined;
  const type = own(value, 'type');
  if (isRecord(own(value, 'function')) && (type === 'function' || type === undefined))
    return 'openai';
  if (type === 'custom' && isRecord(own(value, 'custom'))) return 'openai';
  const name = own(value, 'name');
  if (own(value, 'input_schema') !== undefined) return 'anthropic';
  if (own(value, 'inputSchema') !== undefined) return 'mcp';
  if (type === 'function') return 'openai';
  const described = ['id', 'description', 'parameters'].some(
    (key) => own(value, key) !== undefined,
  );
  if (type === 'custom' && name !== undefined) return 'openai';
  if (typeof type === 'string' && !described) return 'hosted';
  return name !== undefined && described ? 'record' : undefined;
}

/** `group/name` when a namespace is known, else the name. */
export function qualifiedId(name: unknown, group: string | undefined): unknown {
  return group !== undefined && group !== '' && typeof name === 'string' && name !== ''
    ? `${group}/${name}`
    : name;
}
