import { evaluate } from '../abilities/expression.mjs';
import { convertUnits, unitNames } from '../abilities/units.mjs';
import { number, object, oneOf, string } from '../schema.mjs';

export const about = 'An engineer’s desk: measurements and formulas.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'measurement_conversion',
    description:
      'Express a measured quantity in another unit of measurement (distance, weight, volume, temperature).',
    inputSchema: object({
      quantity: number('The measured number'),
      source_unit: oneOf(unitNames, 'Unit it was measured in'),
      target_unit: oneOf(unitNames, 'Unit to express it in'),
    }),
    run: ({ quantity, source_unit, target_unit }) => ({
      result: convertUnits(quantity, source_unit, target_unit),
      unit: target_unit,
    }),
  },
  {
    name: 'compute_formula',
    description: 'Work out a mathematical formula made of numbers and the operators + - * / ^.',
    inputSchema: object({ formula: string('The formula to work out') }),
    run: ({ formula }) => ({ result: evaluate(formula) }),
  },
];
