/**
 * Lines that only one of two texts has, as a unified diff marks them, by their longest common subsequence.
 *
 * @param {string} before
 * @param {string} after
 */
export function changedLines(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  const width = b.length + 1;
  /** Length of the longest common subsequence of the lines from (i, j) on. */
  const common = new Uint32Array((a.length + 1) * width);
  const from = (/** @type {number} */ i, /** @type {number} */ j) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j] ? from(i + 1, j + 1) + 1 : Math.max(from(i + 1, j), from(i, j + 1));
    }
  }
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && from(i + 1, j) >= from(i, j + 1))) {
      out.push(`-${a[i++]}`);
    } else {
      out.push(`+${b[j++]}`);
    }
  }
  return out;
}
