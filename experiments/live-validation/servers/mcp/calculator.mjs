import { evaluate } from '../abilities/expression.mjs';
import { object, string } from '../schema.mjs';

export const about = 'A pocket calculator.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'evaluate_expression',
    description:
      'Calculate the value of an arithmetic expression with + - * / ^ and parentheses, such as (3 + 4) * 12.',
    inputSchema: object({ expression: string('The expression to calculate') }),
    run: ({ expression }) => `${expression} = ${evaluate(expression)}`,
  },
];
