import { makeTool, own, type Tool } from '../tool.js';
import { type ImportContext, qualifiedId, type ToolElement } from './element.js';

/**
 * A client tool of Anthropic's Messages API: `{ name, description?, input_schema }`.
 *
 * Source: Anthropic API reference, Messages `tools`.
 */
export function toolFromAnthropic(element: ToolElement, context: ImportContext): Tool {
  const { value, raw, where } = element;
  return makeTool(
    {
      id: qualifiedId(own(value, 'name'), context.group),
      name: own(value, 'name'),
      description: own(value, 'description'),
      group: context.group,
      source: context.source,
      parameters: own(value, 'input_schema'),
      definition: raw,
    },
    where,
  );
}
