import { isRecord, own } from './tool.js';

export interface ArgumentNameLimits {
  /** Levels of objects entered below the top one; 0 names the top arguments only. */
  readonly maxDepth: number;
  /** Names returned. */
  readonly maxNames: number;
}

/** Schema nodes visited before the search stops: enough for the largest honest schema, nothing for a hostile one. */
const maxNodes = 4000;

const branches = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const;
const wrappers = ['items', 'additionalProperties', 'then', 'else'] as const;

/**
 * The names of a schema's arguments, the outermost first, each once. Follows properties, items, combinations and local
 * `$ref`s; each schema object is visited once, so recursion and cycles end.
 */
export function argumentNames(schema: unknown, limits: ArgumentNameLimits): string[] {
  const names = new Set<string>();
  const visited = new Set<object>();
  let level: unknown[] = [schema];
  let nodes = 0;
  for (let depth = 0; depth <= limits.maxDepth && level.length > 0; depth += 1) {
    const next: unknown[] = [];
    // Combinations and references stay on the level of the schema they stand in, so the list grows while it is read.
    for (let at = 0; at < level.length; at += 1) {
      const node = level[at];
      if (!isRecord(node) || visited.has(node)) continue;
      if (nodes >= maxNodes) return [...names];
      nodes += 1;
      visited.add(node);
      const ref = own(node, '$ref');
      if (typeof ref === 'string') level.push(pointed(schema, ref));
      for (const key of branches) {
        const list = own(node, key);
        if (Array.isArray(list)) for (const branch of list.slice(0, maxNodes)) level.push(branch);
      }
      for (const key of wrappers) level.push(own(node, key));
      const properties = own(node, 'properties');
      if (!isRecord(properties)) continue;
      for (const name of Object.keys(properties).slice(0, maxNodes)) {
        if (names.size >= limits.maxNames) return [...names];
        names.add(name);
        next.push(properties[name]);
      }
    }
    level = next;
  }
  return [...names];
}

function pointed(root: unknown, ref: string): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) return undefined;
  let value = root;
  for (const token of ref.split('/', 32).slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = own(value, token.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return value;
}
