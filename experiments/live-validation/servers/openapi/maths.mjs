import { evaluate } from '../abilities/expression.mjs';
import { primeFactors } from '../abilities/numbers.mjs';
import { integer, string } from '../schema.mjs';

export const title = 'Maths service';

/** @type {import('../serve-openapi.mjs').Operation[]} */
export const operations = [
  {
    method: 'get',
    path: '/factors/{number}',
    operationId: 'getFactorisation',
    summary: 'Factorisation of a whole number into primes',
    parameters: { number: integer('Above 1') },
    run: (args) => ({ factors: primeFactors(Number(args.number)) }),
  },
  {
    method: 'get',
    path: '/sum',
    operationId: 'addNumbers',
    summary: 'Add two numbers and return their sum',
    parameters: {
      a: { type: 'number', description: 'First number' },
      b: { type: 'number', description: 'Second number' },
    },
    run: (args) => ({ sum: Number(args.a) + Number(args.b) }),
  },
  {
    method: 'post',
    path: '/calculations',
    operationId: 'calculate',
    summary: 'Calculate the value of an arithmetic expression',
    parameters: { expression: string('Numbers, + - * / ^ and parentheses') },
    run: (args) => ({ value: evaluate(args.expression) }),
  },
];
