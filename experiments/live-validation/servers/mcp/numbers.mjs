import { primeFactors, roman } from '../abilities/numbers.mjs';
import { integer, object } from '../schema.mjs';

export const about = 'Facts about whole numbers.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'prime_factors',
    description: 'Factorise a whole number: its prime factors.',
    inputSchema: object({ number: integer('A whole number above 1') }),
    run: ({ number }) => primeFactors(number).join(' * '),
  },
  {
    name: 'to_roman_numeral',
    description: 'Write a whole number as a Roman numeral.',
    inputSchema: object({ number: integer('From 1 to 3999') }),
    run: ({ number }) => roman(number),
  },
];
