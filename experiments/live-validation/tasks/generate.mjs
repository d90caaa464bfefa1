import { Random } from '../random.mjs';
import { kinds as data } from './data.mjs';
import { kinds as dates } from './dates-and-times.mjs';
import { kindsOn } from './kept-things.mjs';
import { kinds as numbers } from './numbers-and-units.mjs';
import { kinds as texts } from './texts.mjs';

/**
 * A task with its label.
 *
 * @typedef {object} Task
 * @property {string} kind
 * @property {string} text what the agent is asked
 * @property {Record<string, unknown>} slots what was given, by role
 * @property {readonly string[]} tools the tools that do it
 * @property {import('./answers.mjs').Check} check
 */

/**
 * All kinds of tasks.
 *
 * @param {string} folder the servers' folder
 */
export function taskKinds(folder) {
  return [...numbers, ...dates, ...texts, ...data, ...kindsOn(folder)];
}

/**
 * A sequence of tasks. Kinds differ in how often they are asked for, as Zipf's law has it (exponent 0.7); which are frequent
 * is drawn.
 *
 * @param {number} seed
 * @param {number} count
 * @param {string} folder
 * @returns {Task[]}
 */
export function generateTasks(seed, count, folder) {
  const random = new Random(seed);
  const kinds = random.shuffled(taskKinds(folder));
  const weights = kinds.map((_, rank) => (rank + 1) ** -0.7);
  const total = weights.reduce((a, b) => a + b, 0);
  return Array.from({ length: count }, () => {
    let left = random.next() * total;
    const at = weights.findIndex((weight) => {
      left -= weight;
      return left < 0;
    });
    const kind = kinds[Math.max(0, at)];
    if (kind === undefined) throw new Error('there are no kinds of tasks');
    const { slots, check } = kind.draw(random);
    const text = random.pick(kind.templates).replace(/\{(\w+)\}/g, (_, slot) => {
      const value = slots[slot];
      return Array.isArray(value) ? value.join(', ') : String(value);
    });
    return { kind: kind.name, text, slots, tools: kind.tools, check };
  });
}
