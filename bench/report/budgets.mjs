// The budgets, held against what was measured. A line is reached when every case of it is.

/** Each line: { what, target, cases: [{ where, value, reached }], reached, worst, why }; reached is null when not shown. */
export function budgetTable(results, { python, parts }) {
  const lines = [
    ...exactLines(results.exact ?? []),
    ...storageLines(results.exact ?? []),
    annLine(results.ann ?? []),
    ...reliabilityLines(results.reliability),
    ...requestLines(results),
    {
      what: 'GPU, 1 M x 384, 1,024 queries against torch.mm + topk; 1 query against device memory bandwidth',
      target: '>= 1.5 x; >= 80 %',
      cases: [],
      why: 'this suite measures CPUs',
    },
  ];
  return lines.map((line) => settle(line, { python, parts }));
}

function settle(line, { python, parts }) {
  const { cases, part, needsPython, ...rest } = line;
  if (cases.length === 0) {
    const why =
      rest.why ??
      (part && !parts.includes(part)
        ? `the part '${part}' was not run`
        : needsPython && !python
          ? 'needs --python'
          : 'what it is held against was not there');
    return { ...rest, cases, reached: null, worst: null, why };
  }
  const failed = cases.filter(({ reached }) => !reached);
  const sorted = [...(failed.length > 0 ? failed : cases)].sort((a, b) => b.short - a.short);
  return { ...rest, cases, reached: failed.length === 0, worst: sorted[0] ?? null };
}

/** A case that must be at most, or at least, so much; `short` orders cases by how little room they leave. */
function atMost(where, value, limit) {
  return { where, value, reached: value <= limit, short: value / limit };
}
function atLeast(where, value, limit) {
  return { where, value, reached: value >= limit, short: limit / value };
}

function place({ count, dimension, threads, batch }) {
  return `${count.toLocaleString('en')} x ${dimension}, batch ${batch}, ${threads} thr.`;
}

function rowOf(cell, name) {
  return cell.rows.find((row) => row.name === name);
}

/** Cases of one batch size: `value` gives a number, or undefined where the cell does not show it. */
function casesOf(cells, batch, value, judge, limit) {
  return cells
    .filter((cell) => cell.batch === batch)
    .map((cell) => ({ cell, found: value(cell) }))
    .filter(({ found }) => found !== undefined && Number.isFinite(found))
    .map(({ cell, found }) => judge(place(cell), found, limit));
}

function exactLines(cells) {
  const overFloor = (cell) => rowOf(cell, 'toolfinch f32')?.overFloor.median;
  const faster = (name) => (cell) => rowOf(cell, name)?.oursIsFaster.median;
  const lines = [];
  for (const [batch, limit] of [
    [1, 1.15],
    [8, 1.3],
    [64, 1.25],
    [256, 1.15],
  ]) {
    lines.push({
      what: `exact f32, ${batch} ${batch === 1 ? 'query' : 'queries'}: time over floor`,
      target: `<= ${limit} x`,
      part: 'exact',
      cases: casesOf(cells, batch, overFloor, atMost, limit),
    });
  }
  for (const [batch, limit] of [
    [8, 1.6],
    [64, 1.3],
    [256, 1.1],
  ]) {
    lines.push({
      what: `exact f32, ${batch} queries: faster than onnxruntime-node`,
      target: `>= ${limit} x`,
      part: 'exact',
      cases: casesOf(cells, batch, faster('onnxruntime-node'), atLeast, limit),
    });
  }
  lines.push({
    what: 'exact f32, 256 queries: faster than usearch exactSearch',
    target: '>= 13 x',
    part: 'exact',
    cases: casesOf(cells, 256, faster('usearch f32'), atLeast, 13),
  });
  return lines;
}

function storageLines(cells) {
  const comparison = (name, than) => (cell) =>
    cell.comparisons.find((pair) => pair.name === name && pair.than === than)?.ratio.median;
  const partOfPeak = (name, kind) => (cell) => {
    const ms = rowOf(cell, name)?.ms.median;
    const peak = cell.limits[`peak ${kind}`];
    return ms && peak && (2 * cell.count * cell.dimension * cell.batch) / (ms / 1000) / peak;
  };
  const recall = (name) =>
    cells
      .filter((cell) => rowOf(cell, name) !== undefined && cell.batch >= 64)
      .map((cell) => atLeast(place(cell), rowOf(cell, name).recall, 0.999));
  const line = (what, target, batch, value, limit, extra = {}) => ({
    what,
    target,
    part: 'exact',
    cases: casesOf(cells, batch, value, atLeast, limit),
    ...extra,
  });
  const bf16 = 'toolfinch bf16';
  const i8 = 'toolfinch i8';
  return [
    line(
      'bf16, 1 query: faster than our f32',
      '>= 1.9 x',
      1,
      comparison(bf16, 'toolfinch f32'),
      1.9,
    ),
    line(
      'bf16, 256 queries: part of the bf16 dot peak',
      '>= 0.7',
      256,
      partOfPeak(bf16, 'bf16'),
      0.7,
    ),
    line(
      'bf16, 256 queries: faster than torch bf16 mm + topk',
      '>= 1.15 x',
      256,
      comparison(bf16, 'torch bf16'),
      1.15,
      { needsPython: true },
    ),
    line(
      'bf16, 256 queries: faster than torch bf16 kept off the matrix unit',
      '>= 1.15 x',
      256,
      comparison(bf16, 'torch bf16 without AMX'),
      1.15,
      { needsPython: true },
    ),
    {
      what: 'bf16: recall@10 after rescoring',
      target: '>= 0.999',
      part: 'exact',
      cases: recall(bf16),
    },
    line('i8, 1 query: faster than our f32', '>= 3.5 x', 1, comparison(i8, 'toolfinch f32'), 3.5),
    line('i8, 1 query: faster than usearch i8', '>= 1.2 x', 1, comparison(i8, 'usearch i8'), 1.2),
    line('i8, 256 queries: part of the i8 dot peak', '>= 0.5', 256, partOfPeak(i8, 'i8'), 0.5),
    { what: 'i8: recall@10 after rescoring', target: '>= 0.999', part: 'exact', cases: recall(i8) },
  ];
}

function annLine(runs) {
  const cases = [];
  for (const { count, dimension, threads, curves } of runs) {
    const ours = curves.find(({ name }) => name === 'toolfinch');
    const faiss = curves.find(({ name }) => name === 'faiss HNSW');
    if (!ours || !faiss?.at99) continue;
    const where = `${count.toLocaleString('en')} x ${dimension}, ${threads} thr.`;
    cases.push(atLeast(where, (ours.at99 ?? 0) / faiss.at99, 1));
  }
  return {
    what: "ANN at recall@10 0.99: queries/s over faiss HNSW's",
    target: '>= 1 x',
    part: 'ann',
    needsPython: true,
    cases,
  };
}

function reliabilityLines(found) {
  const inside = found?.insideNs;
  const node = found?.nodeUs;
  const line = (what, unit, limit, stats) => ({
    what,
    target: `<= ${limit} ${unit}`,
    part: 'reliability',
    cases: stats ? [atMost(unit, stats.median, limit)] : [],
  });
  return [
    line('bandit score, a resident arm', 'ns', 45, inside?.scoreResident),
    line('bandit score, an arm scattered over all', 'ns', 200, inside?.scoreScattered),
    line('bandit update, a resident arm', 'ns', 30, inside?.updateResident),
    line('bandit update, an arm scattered over all', 'ns', 250, inside?.updateScattered),
    line('bandit score of 10 arms through Node', 'us', 1.5, node?.['score 10 resident arms']),
    line('dynamic cut 50 x 768, inside', 'us', 1.3, scaled(inside?.truncate, 1e-3)),
    line('dynamic cut 50 x 768 through Node', 'us', 2, node?.['cut 50 x 768']),
  ];
}

function scaled(stats, factor) {
  return stats && { ...stats, median: stats.median * factor };
}

function requestLines({ select, encode, loop }) {
  const lines = [
    {
      what: 'select without encoder, i8, through Node',
      target: '<= 100 us',
      part: 'select',
      cases: Object.entries(select?.us ?? {})
        .filter(([name]) => name.startsWith('i8'))
        .map(([name, us]) =>
          atMost(`us, ${select.count} x ${select.dimension}, ${name}`, us.median, 100),
        ),
    },
    {
      what: 'encode + select over encode alone',
      target: '<= 1.03 x',
      part: 'select',
      cases: encode
        ? [atMost(`${encode.count} x ${encode.dimension}`, encode.ratio.median, 1.03)]
        : [],
    },
    {
      what: 'event loop delay under load, p99 above idle',
      target: '<= 10 ms',
      part: 'loop',
      cases: loop ? [atMost('ms', loop.busy.delayMs.p99 - loop.idle.delayMs.p99, 10)] : [],
    },
  ];
  return lines;
}
