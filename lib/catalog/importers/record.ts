import { kindOf } from '../../describe-value.js';
import { FinchError } from '../../errors.js';
import { isRecord, type JsonSchema, makeTool, own, type Tool } from '../tool.js';
import { type ImportContext, qualifiedId, type ToolElement } from './element.js';

/**
 * A tool in Toolfinch's own layout, the one of its evaluation data: `{ id?, name, description?, title?, source?, tags?,
 * parameters?, group?, server_description?, official?, deprecated?, version?, reliability? }`.
 *
 * `parameters` is a JSON Schema or a map of `name: { type, description, required }`. An `id` is taken as it is; without
 * one the name serves, prefixed by the caller's group. Without a `group`, `source` (a server, an API) is the group.
 * `etag` is read as `version`; `usage_count` and `success_rate` as reliability. A serialised {@link Tool} carries its
 * own `definition`, which is kept: tools written out come back the same.
 */
export function toolFromRecord(element: ToolElement, context: ImportContext): Tool {
  const { value, raw, where } = element;
  const field = (key: string): unknown => own(value, key) ?? undefined;
  const definition = field('definition');
  if (definition !== undefined && typeof definition !== 'string') {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${where}: definition is ${kindOf(definition)}, expected the tool's raw text as a string`,
    );
  }
  const source = field('source');
  return makeTool(
    {
      id: field('id') ?? qualifiedId(field('name'), context.group),
      name: field('name'),
      title: field('title'),
      description: field('description'),
      group: context.group ?? field('group') ?? (definition === undefined ? source : undefined),
      groupDescription:
        field('groupDescription') ?? field('group_description') ?? field('server_description'),
      source: source ?? context.source,
      official: field('official'),
      tags: field('tags'),
      parameters: parametersSchema(field('parameters'), where),
      endpoint: field('endpoint'),
      deprecated: field('deprecated'),
      version: field('version') ?? field('etag'),
      reliability: field('reliability') ?? publishedUse(value),
      definition: definition ?? raw,
    },
    where,
  );
}

/** A registry's figures; a rate outside [0, 1], which real registries publish, says nothing and is left out. */
function publishedUse(value: Record<string, unknown>): unknown {
  const uses = own(value, 'usage_count');
  if (typeof uses !== 'number') return undefined;
  const successRate = own(value, 'success_rate');
  const usable = typeof successRate === 'number' && successRate >= 0 && successRate <= 1;
  return usable ? { uses, successRate } : { uses };
}

function parametersSchema(parameters: unknown, where: string): unknown {
  if (!isRecord(parameters) || isJsonSchema(parameters)) return parameters;
  const required: string[] = [];
  const properties: [string, JsonSchema][] = [];
  for (const [name, described] of Object.entries(parameters)) {
    if (typeof described === 'string') {
      properties.push([name, { description: described }]);
      continue;
    }
    if (!isRecord(described)) {
      throw new FinchError(
        'FINCH_INVALID_ARGUMENT',
        `${where}: parameters.${name} is ${kindOf(described)}, expected { type?, description?, required? }; ` +
          'parameters is a JSON Schema or a map from names to such objects',
      );
    }
    const { required: isRequired, ...schema } = described;
    if (isRequired === true) required.push(name);
    properties.push([name, Array.isArray(isRequired) ? described : schema]);
  }
  // fromEntries defines own properties, so that a parameter called __proto__ is one like any other.
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** Tells a schema from a map of parameters, one of which may be called `type` or `properties`. */
function isJsonSchema(value: Record<string, unknown>): boolean {
  const type = own(value, 'type');
  if (typeof type === 'string' || Array.isArray(type)) return true;
  if (typeof own(value, '$schema') === 'string' || typeof own(value, '$ref') === 'string')
    return true;
  if (['anyOf', 'oneOf', 'allOf'].some((key) => Array.isArray(own(value, key)))) return true;
  const properties = own(value, 'properties');
  return (
    isRecord(properties) &&
    type === undefined &&
    Object.values(properties).every((property) => isRecord(property) || property === true)
  );
}
