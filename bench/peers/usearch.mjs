// usearch's exactSearch over float32 and over int8. It ignores a view's byteOffset, so it is given arrays of their own.
import { k } from '../catalogue.mjs';

export const usearchF32 = exact('usearch f32', (vectors) => vectors.slice(), true);
export const usearchI8 = exact('usearch i8', quantised, false);

function exact(name, convert, cosines) {
  return {
    name,
    scales: true,
    settleMs: 2,
    async prepare({ matrix, queries, dimension, threads }) {
      const { exactSearch, MetricKind } = await import('usearch');
      const rows = cosines ? matrix : convert(matrix);
      const copies = new Map();
      const asked = (count) => {
        if (!copies.has(count)) copies.set(count, convert(queries.subarray(0, count * dimension)));
        return copies.get(count);
      };
      return {
        ask: (count) => exactSearch(rows, asked(count), dimension, k, MetricKind.IP, threads),
        // A distance is 1 - the dot product; of int8 components it is no cosine.
        found: ({ keys, distances }) => ({
          rows: keys,
          scores: cosines ? Float32Array.from(distances, (d) => 1 - d) : undefined,
        }),
        close() {},
      };
    },
  };
}

/** All vectors by the same factor, that which makes the largest component 127: products stay comparable. */
function quantised(vectors) {
  let largest = 0;
  for (let i = 0; i < vectors.length; i++) largest = Math.max(largest, Math.abs(vectors[i]));
  const scale = 127 / largest;
  const out = new Int8Array(vectors.length);
  for (let i = 0; i < out.length; i++) out[i] = Math.round(vectors[i] * scale);
  return out;
}
