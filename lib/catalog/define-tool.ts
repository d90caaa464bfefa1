import { aString, fields, optional } from '../check.js';
import { kindOf } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { toolFromAnthropic } from './importers/anthropic.js';
import {
  type ImportContext,
  shapeOf,
  type ToolElement,
  type ToolShape,
} from './importers/element.js';
import { toolFromMcp } from './importers/mcp.js';
import { toolFromOpenAi } from './importers/openai.js';
import { toolFromRecord } from './importers/record.js';
import { isRecord, type JsonSchema, own, type Tool, type ToolReliability } from './tool.js';

/** A tool in Toolfinch's own terms, as {@link defineTool} takes it. */
export interface ToolInput {
  /** Default: `group/name`, or the name when the caller of {@link defineTool} gives no group. */
  readonly id?: string;
  readonly name: string;
  readonly description?: string;
  readonly title?: string;
  readonly group?: string;
  readonly groupDescription?: string;
  readonly source?: string;
  readonly official?: boolean;
  readonly tags?: readonly string[];
  readonly parameters?: JsonSchema;
  readonly deprecated?: boolean;
  readonly version?: string;
  readonly reliability?: ToolReliability;
  /** The tool's raw text; default: JSON of the object given. */
  readonly definition?: string;
}

export interface DefineToolOptions {
  readonly group?: string;
  readonly source?: string;
}

const anOptions = fields({ group: optional(aString), source: optional(aString) });

/**
 * Makes a {@link Tool} of an object a host holds in memory: a {@link ToolInput}, or a tool of MCP, OpenAI or Anthropic
 * as it is. The definition is `JSON.stringify(given)`; given a string of JSON, it is that string.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT saying what is wrong with which field
 */
export function defineTool(
  given: ToolInput | object | string,
  options: DefineToolOptions = {},
): Tool {
  const where = 'defineTool';
  anOptions(options, `${where}: options`);
  let value: unknown = given;
  if (typeof given === 'string') {
    try {
      value = JSON.parse(given);
    } catch (cause) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${where}: the string given is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`,
        { cause },
      );
    }
  }
  if (!isRecord(value)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: found ${kindOf(value)}, expected one tool as an object or its JSON text`,
    );
  }
  const shape = shapeOf(value) ?? 'record';
  if (shape === 'hosted') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: ${kindOf(own(value, 'type'))} names a tool that the model's provider runs; it has no description to ` +
        'retrieve it by. Pass it to the model beside the chosen tools',
    );
  }
  const raw = typeof given === 'string' ? given : stringify(value);
  return toolFromElement(shape, { value, raw, where }, options);
}

/** Reads one element whose shape is known. */
export function toolFromElement(
  shape: ToolShape,
  element: ToolElement,
  context: ImportContext,
): Tool {
  switch (shape) {
    case 'mcp':
      return toolFromMcp(element, context);
    case 'openai':
      return toolFromOpenAi(element, context);
    case 'anthropic':
      return toolFromAnthropic(element, context);
    case 'record':
      return toolFromRecord(element, context);
  }
}

function stringify(value: object): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `defineTool: the tool cannot be written as JSON (${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)}); ` +
        'remove cycles and bigints, or pass its JSON text',
      { cause },
    );
  }
}
