import { isRecord, makeTool, own, type Tool } from '../tool.js';
import { type ImportContext, qualifiedId, type ToolElement } from './element.js';

/**
 * A tool as MCP's `tools/list` gives it (`name`, `title?`, `description?`, `inputSchema`, `annotations?`, `_meta?`).
 * Without a group of the caller's, `_meta.group` names it; with one, `_meta.group` is kept as a tag.
 *
 * Source: Model Context Protocol, revision 2025-06-18, Tool.
 */
export function toolFromMcp(element: ToolElement, context: ImportContext): Tool {
  const { value, raw, where } = element;
  const meta = own(value, '_meta');
  const annotations = own(value, 'annotations');
  const metaGroup = isRecord(meta) ? own(meta, 'group') : undefined;
  const metaTags = isRecord(meta) ? own(meta, 'tags') : undefined;
  const tags = Array.isArray(metaTags) ? metaTags.filter((tag) => typeof tag === 'string') : [];
  if (context.group !== undefined && typeof metaGroup === 'string' && metaGroup !== '') {
    tags.unshift(metaGroup);
  }
  return makeTool(
    {
      id: qualifiedId(own(value, 'name'), context.group),
      name: own(value, 'name'),
      title: own(value, 'title') ?? (isRecord(annotations) ? own(annotations, 'title') : undefined),
      description: own(value, 'description'),
      group: context.group ?? (typeof metaGroup === 'string' ? metaGroup : undefined),
      groupDescription: context.groupDescription,
      source: context.source,
      tags,
      parameters: own(value, 'inputSchema'),
      definition: raw,
    },
    where,
  );
}
