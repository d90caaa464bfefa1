/** Size of each unit in the base unit of its kind. @type {Record<string, [kind: string, size: number]>} */
const units = {
  metre: ['length', 1],
  kilometre: ['length', 1000],
  centimetre: ['length', 0.01],
  mile: ['length', 1609.344],
  foot: ['length', 0.3048],
  inch: ['length', 0.0254],
  gram: ['mass', 0.001],
  kilogram: ['mass', 1],
  pound: ['mass', 0.45359237],
  ounce: ['mass', 0.028349523125],
  litre: ['volume', 1],
  millilitre: ['volume', 0.001],
  gallon: ['volume', 3.785411784],
  pint: ['volume', 0.473176473],
};

/** @type {Record<string, [toKelvin: (value: number) => number, fromKelvin: (value: number) => number]>} */
const temperatures = {
  celsius: [(c) => c + 273.15, (k) => k - 273.15],
  fahrenheit: [(f) => (f + 459.67) / 1.8, (k) => k * 1.8 - 459.67],
  kelvin: [(k) => k, (k) => k],
};

export const unitNames = [...Object.keys(units), ...Object.keys(temperatures)];

/**
 * @param {number} value
 * @param {string} from
 * @param {string} to
 */
export function convertUnits(value, from, to) {
  const warm = temperatures[from];
  const cold = temperatures[to];
  if (warm !== undefined && cold !== undefined) return round(cold[1](warm[0](value)));
  const source = units[from];
  const target = units[to];
  if (source === undefined || target === undefined) {
    throw new Error(`unknown unit; known are ${unitNames.join(', ')}`);
  }
  if (source[0] !== target[0]) throw new Error(`${from} and ${to} do not measure the same`);
  return round((value * source[1]) / target[1]);
}

/** @param {number} value */
function round(value) {
  return Number(value.toPrecision(9));
}
