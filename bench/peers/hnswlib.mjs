// hnswlib-node's brute force: one query a call, one thread.
import { k } from '../catalogue.mjs';

export const hnswlib = {
  name: 'hnswlib-node',
  threads: 1,
  scales: true,
  async prepare({ matrix, queries, count, dimension }) {
    const { default: library } = await import('hnswlib-node');
    const index = new library.BruteforceSearch('ip', dimension);
    index.initIndex(count);
    for (let row = 0; row < count; row++)
      index.addPoint(Array.from(matrix.subarray(row * dimension, (row + 1) * dimension)), row);
    const asked = [];
    const query = (q) => {
      asked[q] ??= Array.from(queries.subarray(q * dimension, (q + 1) * dimension));
      return asked[q];
    };
    return {
      ask(wanted) {
        const results = [];
        for (let q = 0; q < wanted; q++) results.push(index.searchKnn(query(q), k));
        return results;
      },
      // Farthest first.
      found: (results) => ({
        rows: results.flatMap(({ neighbors }) => [...neighbors].reverse()),
        scores: results.flatMap(({ distances }) => [...distances].reverse().map((d) => 1 - d)),
      }),
      close() {},
    };
  },
};
