import { isRecord, makeTool, own, type Tool } from '../tool.js';
import { type ImportContext, qualifiedId, type ToolElement } from './element.js';

/**
 * A tool of OpenAI's APIs: nested (`{ type: 'function', function: { name, description, parameters } }`, Chat
 * Completions) or flat (`{ type: 'function', name, description, parameters }`, Responses); `custom` tools of both too,
 * which take free text and so have no schema. The definition is the whole object, wrapper included.
 *
 * Source: OpenAI API reference, Chat Completions `tools` and Responses `tools`.
 */
export function toolFromOpenAi(element: ToolElement, context: ImportContext): Tool {
  const { value, raw, where } = element;
  const wrapped = own(value, 'function') ?? own(value, 'custom');
  const body = isRecord(wrapped) ? wrapped : value;
  return makeTool(
    {
      id: qualifiedId(own(body, 'name'), context.group),
      name: own(body, 'name'),
      description: own(body, 'description'),
      group: context.group,
      source: context.source,
      parameters: own(body, 'parameters'),
      definition: raw,
    },
    isRecord(wrapped) ? `${where}.${'function' in value ? 'function' : 'custom'}` : where,
  );
}
