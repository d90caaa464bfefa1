// Vectors to search in, queries, what an exact search in float64 finds, and how far results are from it.

export const k = 10;

/** Rows of unit vectors; with `clusters`, around that many centres. Queries come from the same distribution. */
export function makeCatalogue(probe, { count, dimension, queries, clusters = 0, seed = 1 }) {
  const matrix = new Float32Array(count * dimension);
  const asked = new Float32Array(queries * dimension);
  // Noise of half a centre's length: neighbours lie in the same cluster, and there are ties to tell apart.
  const width = clusters > 0 ? 0.5 : 0;
  probe.fill(matrix, dimension, seed, clusters, 99, width);
  probe.fill(asked, dimension, seed + 1000, clusters, 99, width);
  return { count, dimension, queries: asked, queryCount: queries, matrix };
}

/** Adds `truth`: { k, rows, scores } of an exact search in float64. */
export function withTruth(probe, catalogue, depth = k) {
  const { matrix, queries, dimension } = catalogue;
  return { ...catalogue, truth: probe.truth(matrix, queries, dimension, depth) };
}

/**
 * recall@k against the float64 reference and the largest error of a score. A row that scores as well as the k-th true
 * one counts: which of equals is returned is a matter of taste.
 *
 * @param found { rows, scores } of `asked` queries, `width` entries a query; scores as cosines, or undefined
 */
export function quality(probe, catalogue, found, asked, depth = k) {
  const { matrix, queries, dimension, truth } = catalogue;
  const width = found.rows.length / asked;
  let hits = 0;
  let maxError = 0;
  for (let q = 0; q < asked; q++) {
    const least = truth.scores[q * truth.k + Math.min(depth, truth.k) - 1];
    const seen = new Set();
    for (let i = 0; i < Math.min(width, depth); i++) {
      const row = Number(found.rows[q * width + i]);
      if (!(row >= 0 && row < catalogue.count) || seen.has(row)) continue;
      seen.add(row);
      const exact = probe.dot64(matrix, row, queries, q, dimension);
      if (exact >= least - 1e-9) hits++;
      if (found.scores)
        maxError = Math.max(maxError, Math.abs(found.scores[q * width + i] - exact));
    }
  }
  const recall = hits / (asked * Math.min(depth, truth.k));
  return { recall, maxError: found.scores ? maxError : null };
}

/** Mean recall of rows whose true neighbours are `wanted`, arrays of row numbers a query. */
export function recallOf(found, width, wanted) {
  let hits = 0;
  let all = 0;
  wanted.forEach((rows, q) => {
    const truth = new Set(rows);
    all += truth.size;
    for (let i = 0; i < width; i++) if (truth.delete(Number(found[q * width + i]))) hits++;
  });
  return hits / all;
}
