/**
 * One drawn task before it has its words.
 *
 * @typedef {object} Draw
 * @property {Record<string, unknown>} slots what the user gave, by role: see `agent/fill.mjs`
 * @property {import('./answers.mjs').Check} check
 */

/**
 * A kind of task.
 *
 * @typedef {object} TaskKind
 * @property {string} name
 * @property {string[]} tools ids of all tools that do it: the label
 * @property {string[]} templates ways to ask; `{slot}` is replaced by the slot's value
 * @property {(random: import('../random.mjs').Random) => Draw} draw
 */

/** Words for texts, lists and names. */
export const words = [
  ...['amber', 'birch', 'candle', 'delta', 'ember', 'falcon', 'garnet', 'harbour', 'island'],
  ...['jasmine', 'kettle', 'lantern', 'meadow', 'nectar', 'orchid', 'pepper', 'quartz', 'river'],
  ...['saddle', 'timber', 'umbrella', 'velvet', 'willow', 'yarrow', 'zephyr'],
];

/**
 * A sentence of words, with a capital and a full stop.
 *
 * @param {import('../random.mjs').Random} random
 * @param {number} count
 */
export function sentence(random, count) {
  const text = Array.from({ length: count }, () => random.pick(words)).join(' ');
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
