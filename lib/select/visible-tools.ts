import type { ToolIndex } from '../retrieve/tool-index.js';
import { AllowSet, asAllowSet, idList } from '../retrieve/vector-index.js';

export interface Visibility {
  allow?: Iterable<string> | AllowSet;
  exclude?: Iterable<string>;
  groups?: readonly string[];
}

/** One allow set of what `allow`, `exclude` and `groups` leave; undefined when all tools are visible. */
export function visibleTools(index: ToolIndex, options: Visibility): AllowSet | undefined {
  const allow = options.allow === undefined ? undefined : asAllowSet(options.allow);
  if (options.exclude === undefined && options.groups === undefined) return allow;
  const excluded = new Set(idList('exclude', options.exclude ?? []));
  const groups =
    options.groups === undefined ? undefined : new Set(idList('groups', options.groups));
  const visible = (allow === undefined ? index.ids() : [...allow.ids]).filter((id) => {
    if (excluded.has(id)) return false;
    if (groups === undefined) return true;
    const group = index.get(id)?.group;
    return group !== undefined && groups.has(group);
  });
  return new AllowSet(visible);
}
