import { excerpt, kindOf } from '../../describe-value.js';
import { FinchError } from '../../errors.js';
import { objectSlices, valueSlice } from '../json-slices.js';
import { isRecord, type JsonSchema, makeTool, own, type Tool } from '../tool.js';
import { type ImportContext, qualifiedId } from './element.js';
import { LocalRefs } from './local-refs.js';

/** An OpenAPI document as parsed, beside its text where that is JSON. */
export interface OpenApiDocument {
  readonly root: Record<string, unknown>;
  /** The JSON text; undefined for YAML, whose operations have no JSON bytes. */
  readonly json: string | undefined;
  readonly origin: string;
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;
const schemaLimits = { maxDepth: 12, maxNodes: 4000 } as const;
/** Header parameters that the specification tells readers to ignore. */
const ignoredHeaders = new Set(['accept', 'content-type', 'authorization']);

/**
 * One tool per operation of an OpenAPI 3.0 or 3.1 document.
 *
 * - name: `operationId`, else `METHOD /path`; id: the same, prefixed by the caller's group.
 * - title: `summary`; description: `description`, else `summary`; group: the caller's, else the first tag.
 * - parameters: path, query and header parameters (the path item's merged in, the operation's win) and the properties
 *   of the request body, in one object schema. A name taken twice gets its place in front (`query.id`, `body.id`); a body
 *   that is no object is the property `body`. Cookies and the headers HTTP itself owns are left out.
 * - definition: the operation's bytes when the document is JSON; from YAML, JSON text of the operation.
 *
 * Webhooks and callbacks are requests the service sends, not tools: they are left out.
 *
 * @throws FinchError FINCH_INVALID_ARGUMENT for another version or a malformed document
 */
export function toolsFromOpenApi(
  document: OpenApiDocument,
  context: ImportContext,
  warnings: string[],
): Tool[] {
  const { root, origin } = document;
  const version = own(root, 'openapi');
  if (typeof version !== 'string' || !/^3\.[01]\.\d/.test(version)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${origin}: openapi is ${kindOf(version)}, expected a 3.0 or 3.1 version; convert the document first`,
    );
  }
  const paths = own(root, 'paths');
  if (paths !== undefined && !isRecord(paths)) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${origin}: paths is ${kindOf(paths)}, expected an object from paths to path items`,
    );
  }
  const refs = new LocalRefs(root);
  const slices = new OperationSlices(document.json);
  const tagDescriptions = descriptionsOfTags(own(root, 'tags'));
  const tools: Tool[] = [];
  for (const [path, given] of Object.entries(paths ?? {})) {
    if (path.startsWith('x-')) continue;
    const item = refs.follow(given);
    if (item === undefined) {
      warnings.push(`${origin}, ${path}: its $ref leads nowhere in this document; left out`);
      continue;
    }
    if (!isRecord(item.value)) throw malformed(`${origin}, ${path}`, item.value, 'a path item');
    for (const method of methods) {
      const operation = own(item.value, method);
      if (operation === undefined) continue;
      const endpoint = `${method.toUpperCase()} ${path}`;
      const where = `${origin}, ${endpoint}`;
      if (!isRecord(operation)) throw malformed(where, operation, 'an operation object');
      const summary = own(operation, 'summary');
      const description = own(operation, 'description');
      const tags = own(operation, 'tags');
      const firstTag = Array.isArray(tags) ? tags[0] : undefined;
      const group = context.group ?? (typeof firstTag === 'string' ? firstTag : undefined);
      const name = own(operation, 'operationId') ?? endpoint;
      tools.push(
        makeTool(
          {
            id: qualifiedId(name, context.group),
            name,
            title: summary,
            description: description === '' ? summary : (description ?? summary),
            group,
            groupDescription: group === undefined ? undefined : tagDescriptions.get(group),
            source: context.source,
            tags,
            parameters: flatten(item.value, operation, refs, where),
            endpoint,
            deprecated: own(operation, 'deprecated'),
            definition:
              slices.operation(item.path ?? ['paths', path], method) ?? jsonOf(operation, where),
          },
          where,
        ),
      );
    }
  }
  for (const ref of refs.unresolved) {
    warnings.push(
      `${origin}: ${excerpt(ref)} points outside this document or to nothing; not followed`,
    );
  }
  return tools;
}

/** Finds an operation's bytes, scanning each object of the text once. */
class OperationSlices {
  readonly #json: string | undefined;
  readonly #members = new Map<string, ReadonlyMap<string, string>>();

  constructor(json: string | undefined) {
    this.#json = json;
  }

  operation(itemPath: readonly string[], method: string): string | undefined {
    if (this.#json === undefined) return undefined;
    const last = itemPath.at(-1);
    if (last === undefined) return undefined;
    const item = this.#membersOf(itemPath.slice(0, -1)).get(last);
    return item === undefined ? undefined : valueSlice(item, [method])?.text;
  }

  #membersOf(path: readonly string[]): ReadonlyMap<string, string> {
    const key = JSON.stringify(path);
    let members = this.#members.get(key);
    if (members === undefined) {
      const found = objectSlices(this.#json ?? '', path);
      members = new Map(found.map((member) => [member.key, member.text]));
      this.#members.set(key, members);
    }
    return members;
  }
}

function descriptionsOfTags(tags: unknown): Map<string, string> {
  const found = new Map<string, string>();
  if (!Array.isArray(tags)) return found;
  for (const tag of tags) {
    if (!isRecord(tag)) continue;
    const name = own(tag, 'name');
    const description = own(tag, 'description');
    if (typeof name === 'string' && typeof description === 'string') found.set(name, description);
  }
  return found;
}

interface Argument {
  readonly name: string;
  readonly place: string;
  readonly schema: unknown;
  readonly required: boolean;
}

function flatten(
  item: Record<string, unknown>,
  operation: Record<string, unknown>,
  refs: LocalRefs,
  where: string,
): JsonSchema | undefined {
  const args = [
    ...parameterArguments(own(item, 'parameters'), own(operation, 'parameters'), refs, where),
    ...bodyArguments(own(operation, 'requestBody'), refs),
  ];
  if (args.length === 0) return undefined;
  const properties = new Map<string, unknown>();
  const required: string[] = [];
  for (const arg of args) {
    const name = properties.has(arg.name) ? `${arg.place}.${arg.name}` : arg.name;
    properties.set(name, arg.schema);
    if (arg.required) required.push(name);
  }
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** Parameters of the path item, replaced by the operation's where name and place agree; path first, then query, header. */
function parameterArguments(
  shared: unknown,
  specific: unknown,
  refs: LocalRefs,
  where: string,
): Argument[] {
  const found = new Map<string, Argument>();
  for (const list of [shared, specific]) {
    if (list === undefined || list === null) continue;
    if (!Array.isArray(list)) throw malformed(where, list, 'an array of parameters');
    for (const given of list) {
      const parameter = refs.follow(given)?.value;
      if (parameter === undefined) continue;
      if (!isRecord(parameter)) throw malformed(where, parameter, 'a parameter object');
      const name = own(parameter, 'name');
      const place = own(parameter, 'in');
      if (typeof name !== 'string' || typeof place !== 'string') {
        throw malformed(where, parameter, "a parameter with the strings 'name' and 'in'");
      }
      if (place === 'cookie' || (place === 'header' && ignoredHeaders.has(name.toLowerCase()))) {
        continue;
      }
      const schema = refs.inline(
        own(parameter, 'schema') ?? mediaSchema(parameter, refs),
        schemaLimits,
      );
      const description = own(parameter, 'description');
      found.set(`${place} ${name}`, {
        name,
        place,
        schema: {
          ...(isRecord(schema) ? schema : {}),
          ...(typeof description === 'string' ? { description } : {}),
        },
        required: own(parameter, 'required') === true || place === 'path',
      });
    }
  }
  const order = ['path', 'query', 'header'];
  return [...found.values()].sort((a, b) => order.indexOf(a.place) - order.indexOf(b.place));
}

function bodyArguments(given: unknown, refs: LocalRefs): Argument[] {
  const body = refs.follow(given)?.value;
  if (!isRecord(body)) return [];
  const schema = refs.inline(mediaSchema(body, refs), schemaLimits);
  const required = own(body, 'required') === true;
  const merged = isRecord(schema) ? mergeAllOf(schema) : undefined;
  if (merged === undefined || merged.properties.size === 0) {
    const description = own(body, 'description');
    return [
      {
        name: 'body',
        place: 'body',
        schema: {
          ...(isRecord(schema) ? schema : {}),
          ...(typeof description === 'string' ? { description } : {}),
        },
        required,
      },
    ];
  }
  return Array.from(merged.properties, ([name, property]) => ({
    name,
    place: 'body',
    schema: property,
    required: required && merged.required.has(name),
  }));
}

/** The schema of the media type a model is best at: JSON, then anything JSON-like, then forms, then the first. */
function mediaSchema(holder: Record<string, unknown>, refs: LocalRefs): unknown {
  const content = own(holder, 'content');
  if (!isRecord(content)) return undefined;
  const types = Object.keys(content);
  const chosen =
    types.find((type) => /^application\/json\b/i.test(type)) ??
    types.find((type) => /\+json\b/i.test(type)) ??
    types.find((type) => /form/i.test(type)) ??
    types[0];
  if (chosen === undefined) return undefined;
  const media = refs.follow(content[chosen])?.value;
  return isRecord(media) ? own(media, 'schema') : undefined;
}

/** Properties of an object schema and of the branches of its `allOf`, which all hold at once. */
function mergeAllOf(schema: Record<string, unknown>): {
  properties: Map<string, unknown>;
  required: Set<unknown>;
} {
  const properties = new Map<string, unknown>();
  const required = new Set<unknown>();
  const visit = (part: unknown, depth: number): void => {
    if (!isRecord(part) || depth > schemaLimits.maxDepth) return;
    const branches = own(part, 'allOf');
    if (Array.isArray(branches)) for (const branch of branches) visit(branch, depth + 1);
    const direct = own(part, 'properties');
    if (isRecord(direct))
      for (const [name, value] of Object.entries(direct)) properties.set(name, value);
    const names = own(part, 'required');
    if (Array.isArray(names)) for (const name of names) required.add(name);
  };
  visit(schema, 0);
  return { properties, required };
}

function malformed(where: string, value: unknown, expected: string): FinchError {
  return new FinchError(
    'FINCH_INVALID_ARGUMENT',
    `${where}: found ${kindOf(value)}, expected ${expected}`,
  );
}

/** A YAML anchor may hold itself, which JSON cannot say. */
function jsonOf(operation: unknown, where: string): string {
  try {
    return JSON.stringify(operation);
  } catch (cause) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: the operation holds itself (a recursive YAML anchor); write the recursion as a $ref`,
      { cause },
    );
  }
}
