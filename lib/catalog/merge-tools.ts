import { aList, aString, fields } from '../check.js';
import { excerpt } from '../describe-value.js';
import { FinchError } from '../errors.js';
import { checkTool, type Tool } from './tool.js';

/** Tools of one source, named for messages. */
export interface ToolSource {
  /** A file, a server, a URL. */
  readonly origin: string;
  readonly tools: readonly Tool[];
}

const someSources = aList(fields({ origin: aString, tools: aList(checkTool) }));

/**
 * The tools of several sources as one list, in order.
 *
 * @throws FinchError FINCH_DUPLICATE_ID naming both sources when an id occurs twice; nothing is renamed or dropped
 */
export function mergeTools(sources: readonly ToolSource[]): Tool[] {
  const origins = new Map<string, { origin: string; index: number }>();
  const merged: Tool[] = [];
  someSources(sources, 'sources');
  for (const { origin, tools } of sources) {
    tools.forEach((tool, index) => {
      const earlier = origins.get(tool.id);
      if (earlier !== undefined) throw duplicate(tool.id, earlier, { origin, index });
      origins.set(tool.id, { origin, index });
      merged.push(tool);
    });
  }
  return merged;
}

/** @throws FinchError FINCH_DUPLICATE_ID when two of the tools have one id */
export function assertUniqueIds(tools: readonly Tool[], origin: string): void {
  mergeTools([{ origin, tools }]);
}

function duplicate(
  id: string,
  first: { origin: string; index: number },
  second: { origin: string; index: number },
): FinchError {
  const where =
    first.origin === second.origin
      ? `twice in ${first.origin} (tools ${first.index} and ${second.index}, counted from 0)`
      : `in ${first.origin} (tool ${first.index}) and in ${second.origin} (tool ${second.index})`;
  const mend =
    first.origin === second.origin
      ? 'remove one of them or give it an id of its own'
      : 'import one of the sources with a group, which is put before its ids, or remove the tool from one';
  return new FinchError(
    'FINCH_DUPLICATE_ID',
    `the id ${excerpt(id, 120)} occurs ${where}; ids are unique in a catalogue: ${mend}`,
  );
}
