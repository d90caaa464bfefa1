/** @typedef {(answer: string) => boolean} Check whether a tool's answer is right */

/** The answer holds the number. @param {number} wanted @returns {Check} */
export const hasNumber = (wanted) => (answer) =>
  (answer.match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi) ?? []).some(
    (found) => Math.abs(Number(found) - wanted) <= 1e-6 * Math.max(1, Math.abs(wanted)),
  );

/** The answer holds each text, as it is or as JSON writes it. @param {...string} wanted @returns {Check} */
export const hasText =
  (...wanted) =>
  (answer) =>
    wanted.every(
      (each) => answer.includes(each) || answer.includes(JSON.stringify(each).slice(1, -1)),
    );

/** The answer holds the words in this order, and nothing of the list twice. @param {string[]} wanted @returns {Check} */
export const hasInOrder = (wanted) => (answer) => {
  const known = new Set(wanted);
  const found = (answer.match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => known.has(word));
  return found.join() === wanted.join();
};
