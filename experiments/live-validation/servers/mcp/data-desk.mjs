import { valueAt } from '../abilities/json-path.mjs';
import { columnNumbers, sorted } from '../abilities/tables.mjs';
import { list, object, oneOf, string } from '../schema.mjs';

export const about = 'A data analyst’s desk: tables, JSON, lists.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'column_totals',
    description: 'Statistics of one numeric column of a CSV data table: total, average, range.',
    inputSchema: object({
      table: string('The data, comma-separated with a header'),
      column: string('The column’s name'),
    }),
    run: ({ table, column }) => columnNumbers(table, column),
  },
  {
    name: 'extract_json_value',
    description: 'Extract one value from JSON data by its path.',
    inputSchema: object({
      data: string('JSON data'),
      path: string('Path of keys and indices, such as a.b[0]'),
    }),
    run: ({ data, path }) => ({ value: valueAt(data, path) }),
  },
  {
    name: 'order_values',
    description: 'Put a list of values in ascending or descending alphabetical order.',
    inputSchema: object({
      values: list({ type: 'string' }, 'The values'),
      order: oneOf(['ascending', 'descending'], 'Which way'),
    }),
    run: ({ values, order }) => ({ values: sorted(values, order) }),
  },
];
