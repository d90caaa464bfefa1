// What one writes without a library: a loop over the rows, four sums at a time, and a short sorted list.
import { k } from '../catalogue.mjs';

export const javascript = {
  name: 'plain JavaScript',
  threads: 1,
  scales: true,
  async prepare({ matrix, queries, count, dimension }) {
    return {
      ask: (asked) => search(matrix, queries, count, dimension, asked),
      found: (result) => result,
      close() {},
    };
  },
};

function search(matrix, queries, count, dimension, asked) {
  const rows = new Int32Array(asked * k).fill(-1);
  const scores = new Float64Array(asked * k).fill(-Infinity);
  for (let q = 0; q < asked; q++) {
    const first = q * k;
    const last = first + k - 1;
    for (let row = 0; row < count; row++) {
      const score = dot(queries, q * dimension, matrix, row * dimension, dimension);
      if (score <= scores[last]) continue;
      let at = last;
      while (at > first && scores[at - 1] < score) {
        scores[at] = scores[at - 1];
        rows[at] = rows[at - 1];
        at--;
      }
      scores[at] = score;
      rows[at] = row;
    }
  }
  return { rows, scores };
}

function dot(a, aAt, b, bAt, dimension) {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  let i = 0;
  for (; i + 4 <= dimension; i += 4) {
    s0 += a[aAt + i] * b[bAt + i];
    s1 += a[aAt + i + 1] * b[bAt + i + 1];
    s2 += a[aAt + i + 2] * b[bAt + i + 2];
    s3 += a[aAt + i + 3] * b[bAt + i + 3];
  }
  for (; i < dimension; i++) s0 += a[aAt + i] * b[bAt + i];
  return s0 + s1 + s2 + s3;
}
