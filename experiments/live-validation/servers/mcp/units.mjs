import { convertUnits, unitNames } from '../abilities/units.mjs';
import { number, object, oneOf } from '../schema.mjs';

export const about = 'Conversion between units of length, mass, volume and temperature.';

/** @type {import("../serve-mcp.mjs").ServedTool[]} */
export const tools = [
  {
    name: 'convert_units',
    description:
      'Convert a value from one unit to another: lengths, weights, volumes and temperatures, metric and imperial.',
    inputSchema: object({
      value: number('How much'),
      from_unit: oneOf(unitNames, 'The unit of the value'),
      to_unit: oneOf(unitNames, 'The unit wanted'),
    }),
    run: ({ value, from_unit, to_unit }) =>
      `${value} ${from_unit} = ${convertUnits(value, from_unit, to_unit)} ${to_unit}`,
  },
];
