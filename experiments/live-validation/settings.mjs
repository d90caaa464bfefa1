import { methods } from './agent/methods.mjs';

/** @type {import('./experiment.mjs').Settings} */
export const fullSettings = {
  seeds: [1, 2, 3],
  tasks: { before: 200, during: 300, after: 250 },
  timeoutMs: 500,
  taskSeconds: 10,
  methods: Object.keys(methods),
};

/** @type {import('./experiment.mjs').Settings} */
export const shortSettings = {
  seeds: [1],
  tasks: { before: 40, during: 80, after: 40 },
  timeoutMs: 400,
  taskSeconds: 10,
  methods: ['no feedback', 'blacklist', 'toolfinch'],
};

/** Methods that the curve shows; more would not be told apart. */
export const curveMethods = [
  'no feedback',
  'blacklist',
  'retry (k = 3)',
  'toolfinch',
  'toolfinch + pings',
  'toolfinch + pings + retry',
];
