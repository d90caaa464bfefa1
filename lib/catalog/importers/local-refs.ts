import { isRecord, own } from '../tool.js';

/** Bounds of {@link LocalRefs.inline}. */
export interface InlineLimits {
  /** Levels of nesting kept, the root being level 0. */
  readonly maxDepth: number;
  /** Values (objects, arrays, scalars) copied in one call. */
  readonly maxNodes: number;
}

/** References entered one inside the other before a copy stops: bounds the stack. */
const longestChain = 64;

/** Resolves `$ref`s that point into their own document (`#/components/schemas/Pet`), cycles and blow-ups bounded. */
export class LocalRefs {
  /** References that were not resolved: into another file, or to nothing. */
  readonly unresolved = new Set<string>();
  readonly #root: unknown;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** Follows `value.$ref` until it is no reference; undefined when the chain is broken or runs in a circle. */
  follow(
    value: unknown,
  ): { readonly value: unknown; readonly path?: readonly string[] } | undefined {
    let current = value;
    let path: readonly string[] | undefined;
    const seen = new Set<string>();
    for (;;) {
      const ref = isRecord(current) ? own(current, '$ref') : undefined;
      if (typeof ref !== 'string')
        return path === undefined ? { value: current } : { value: current, path };
      const target = seen.has(ref) ? undefined : this.#lookUp(ref);
      if (target === undefined) {
        this.unresolved.add(ref);
        return undefined;
      }
      seen.add(ref);
      current = target.value;
      path = target.path;
    }
  }

  /**
   * A copy of a schema with its references replaced by what they point at. Where a reference recurses, or a bound is
   * met, the copy holds only `title`, `type` and `description`.
   */
  inline(schema: unknown, limits: InlineLimits): unknown {
    let nodes = 0;
    const copy = (value: unknown, depth: number, open: readonly string[]): unknown => {
      nodes += 1;
      if (typeof value !== 'object' || value === null) return value;
      if (depth > limits.maxDepth || nodes > limits.maxNodes) {
        return Array.isArray(value) ? [] : heading(value);
      }
      if (Array.isArray(value)) {
        const items: unknown[] = [];
        for (const item of value) {
          if (nodes > limits.maxNodes) break;
          items.push(copy(item, depth + 1, open));
        }
        return items;
      }
      const ref = own(value, '$ref');
      if (typeof ref === 'string') {
        if (open.includes(ref) || open.length >= longestChain) {
          return heading(this.#lookUp(ref)?.value);
        }
        const target = this.#lookUp(ref);
        if (target === undefined) {
          this.unresolved.add(ref);
          return heading(value);
        }
        const resolved = copy(target.value, depth, [...open, ref]);
        const { $ref: _, ...siblings } = value as Record<string, unknown>;
        // OpenAPI 3.1 lets keywords stand beside $ref; they win.
        return isRecord(resolved) && Object.keys(siblings).length > 0
          ? { ...resolved, ...(copy(siblings, depth, open) as object) }
          : resolved;
      }
      const members: [string, unknown][] = [];
      for (const key of Object.keys(value)) {
        if (nodes > limits.maxNodes) break;
        members.push([key, copy((value as Record<string, unknown>)[key], depth + 1, open)]);
      }
      return Object.fromEntries(members);
    };
    return copy(schema, 0, []);
  }

  #lookUp(ref: string): { value: unknown; path: string[] } | undefined {
    if (ref !== '#' && !ref.startsWith('#/')) return undefined;
    const path: string[] = [];
    let value = this.#root;
    for (const token of ref.split('/').slice(1)) {
      const step = unescapeToken(token);
      if (step === undefined || typeof value !== 'object' || value === null) return undefined;
      if (!Object.hasOwn(value, step)) return undefined;
      value = (value as Record<string, unknown>)[step];
      path.push(step);
    }
    return { value, path };
  }
}

/** One token of a JSON Pointer in a URI fragment (RFC 6901, section 6). */
function unescapeToken(token: string): string | undefined {
  try {
    return decodeURIComponent(token).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}

function heading(value: unknown): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  if (!isRecord(value)) return kept;
  for (const key of ['title', 'type', 'description']) {
    const found = own(value, key);
    if (typeof found === 'string') kept[key] = found;
  }
  return kept;
}
