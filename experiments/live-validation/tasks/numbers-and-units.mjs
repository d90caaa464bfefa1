import { hasNumber, hasText } from './answers.mjs';

/** Metres, kilograms, litres of each unit: written down here again, to check the servers' own. */
const sizes = /** @type {const} */ ([
  { kilometre: 1000, mile: 1609.344, metre: 1, foot: 0.3048, inch: 0.0254 },
  { kilogram: 1, pound: 0.45359237, ounce: 0.45359237 / 16, gram: 0.001 },
  { litre: 1, gallon: 3.785411784, millilitre: 0.001 },
]);

/** @type {import('./kind.mjs').TaskKind[]} */
export const kinds = [
  {
    name: 'convert a measure',
    tools: ['units/convert_units', 'engineer/measurement_conversion'],
    templates: [
      'Convert {value} {from} to {to}.',
      'How many {to} are {value} {from}?',
      'I have {value} {from}; what is that in the unit {to}?',
      'Unit conversion please: {value} {from} expressed in {to}.',
    ],
    draw: (random) => {
      const kind = /** @type {Record<string, number>} */ (random.pick(sizes));
      const [from = '', to = ''] = random.some(Object.keys(kind), 2);
      const value = random.between(2, 900);
      const wanted =
        (value * /** @type {number} */ (kind[from])) / /** @type {number} */ (kind[to]);
      return { slots: { value, from, to }, check: hasNumber(Number(wanted.toPrecision(9))) };
    },
  },
  {
    name: 'convert a temperature',
    tools: ['units/convert_units', 'engineer/measurement_conversion'],
    templates: [
      'Convert a temperature of {value} degrees {from} to {to}.',
      'It is {value} {from} outside. How much is that in {to}?',
      'The oven says {value} {from}; give me the temperature in {to}.',
      'What is {value} {from} in {to} degrees?',
    ],
    draw: (random) => {
      const value = random.between(-20, 250);
      const down = random.next() < 0.5;
      return {
        slots: {
          value,
          from: down ? 'fahrenheit' : 'celsius',
          to: down ? 'celsius' : 'fahrenheit',
        },
        check: hasNumber(down ? ((value - 32) * 5) / 9 : (value * 9) / 5 + 32),
      };
    },
  },
  {
    name: 'calculate',
    tools: ['calculator/evaluate_expression', 'engineer/compute_formula', 'maths/calculate'],
    templates: [
      'Calculate {expression}.',
      'What is the value of {expression}?',
      'Work out {expression} for me.',
      'Please evaluate the arithmetic expression {expression}.',
    ],
    draw: (random) => {
      const [a = 0, b = 0, c = 0] = [2, 3, 4].map((low) => random.between(low, 60));
      return random.pick([
        { slots: { expression: `(${a} + ${b}) * ${c}` }, check: hasNumber((a + b) * c) },
        { slots: { expression: `${a} * ${b} - ${c}` }, check: hasNumber(a * b - c) },
        { slots: { expression: `${a * c} / ${c} + ${b}` }, check: hasNumber(a + b) },
      ]);
    },
  },
  {
    name: 'add two numbers',
    tools: ['everything/get-sum', 'maths/addNumbers'],
    templates: [
      'Add the two numbers {a} and {b}.',
      'What is the sum of {a} and {b}?',
      'Sum up {a} and {b}, please.',
      'Give me {a} and {b} added together.',
    ],
    draw: (random) => {
      const [a, b] = [random.between(100, 9999), random.between(100, 9999)];
      return { slots: { a, b }, check: hasNumber(a + b) };
    },
  },
  {
    name: 'factorise',
    tools: ['numbers/prime_factors', 'maths/getFactorisation'],
    templates: [
      'Find the prime factors of {number}.',
      'Factorise {number} into primes.',
      'Which primes multiply to {number}?',
      'What is the prime factorisation of the number {number}?',
    ],
    draw: (random) => {
      const primes = [2, 3, 5, 7, 11, 13, 17, 19, 23];
      const factors = Array.from({ length: 3 }, () => random.pick(primes)).sort((a, b) => a - b);
      const pattern = new RegExp(`\\b${factors.join('\\D+')}\\b`);
      return {
        slots: { number: factors.reduce((a, b) => a * b, 1) },
        check: (answer) => pattern.test(answer),
      };
    },
  },
  {
    name: 'Roman numeral',
    tools: ['numbers/to_roman_numeral'],
    templates: [
      'Write {number} as a Roman numeral.',
      'What is {number} in Roman numerals?',
      'How would the Romans have written the number {number}?',
      'Roman numeral for {number}, please.',
    ],
    draw: (random) => {
      const digits = [
        ['', 'X', 'XX', 'XXX', 'XL', 'L', 'LX', 'LXX', 'LXXX', 'XC'],
        ['', 'I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX'],
      ];
      const number = random.between(11, 99);
      const wanted = `M${digits[0]?.[Math.floor(number / 10)]}${digits[1]?.[number % 10]}`;
      return { slots: { number: 1000 + number }, check: hasText(wanted) };
    },
  },
  {
    name: 'colour to RGB',
    tools: ['colours/hex_to_rgb', 'design/getRgb'],
    templates: [
      'Convert the colour {hex} to RGB.',
      'What are the red, green and blue values of {hex}?',
      'Give me the RGB values of the hex colour {hex}.',
      'Which RGB colour is {hex}?',
    ],
    draw: (random) => {
      const rgb = [random.between(16, 255), random.between(16, 255), random.between(16, 255)];
      const hex = `#${rgb.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
      const pattern = new RegExp(`\\b${rgb.join('\\D+')}\\b`);
      return { slots: { hex }, check: (answer) => pattern.test(answer) };
    },
  },
  {
    name: 'contrast of colours',
    tools: ['colours/contrast_ratio', 'design/getContrast'],
    templates: [
      'What is the contrast ratio of text coloured {foreground} on a background of {background}?',
      'Is {foreground} readable on {background}? Give me the contrast.',
      'Check the contrast between foreground {foreground} and background {background}.',
      'Contrast of a {foreground} label on {background}, please.',
    ],
    draw: (random) => {
      // Contrasts with black and white that can be looked up.
      const [colour = '', onWhite = 0] = random.pick(
        /** @type {[string, number][]} */ ([
          ['#000000', 21],
          ['#ff0000', 4],
          ['#0000ff', 8.59],
          ['#767676', 4.54],
          ['#008000', 5.14],
        ]),
      );
      return {
        slots: { foreground: colour, background: '#ffffff' },
        check: hasNumber(onWhite),
      };
    },
  },
];
