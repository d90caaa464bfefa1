import { columnNumbers, parseCsv } from '../abilities/tables.mjs';
import { object, string } from '../schema.mjs';

export const about = 'Tables of comma-separated values.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'summarise_csv_column',
    description: 'Sum, mean, minimum and maximum of a column of a CSV table.',
    inputSchema: object({
      csv: string('The table: comma-separated values with a header line'),
      column: string('Name of the column'),
    }),
    run: ({ csv, column }) => columnNumbers(csv, column),
  },
  {
    name: 'count_csv_rows',
    description: 'How many rows a CSV table has, without its header.',
    inputSchema: object({ csv: string('The table') }),
    run: ({ csv }) => `${parseCsv(csv).rows.length} rows`,
  },
];
