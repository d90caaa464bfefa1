// The results as titled tables: the terminal and docs/benchmarks.md show the same.
import { bytesText, digits, sizeText, spread } from './numbers.mjs';

/** [{ title, note, rows }], rows beginning with the head. */
export function tables(report) {
  const { results } = report;
  return [
    ...limitTables(results.limits ?? []),
    ...exactTables(results.exact ?? []),
    ...growthTables(results.growth ?? []),
    ...annTables(results.ann ?? []),
    ...reliabilityTables(results.reliability),
    ...requestTables(results),
    ...crossingTables(results.crossingNs),
    budgets(report.budgets),
  ].filter((table) => table.rows.length > 1);
}

function limitTables(limits) {
  if (limits.length === 0) return [];
  const heads = limits.map(({ threads }) => `${threads} thr.`);
  const reads = limits[0].reads.map(({ bytes }, i) => [
    bytesText(bytes),
    ...limits.map(({ reads: all }) => digits((all[i]?.perSecond.median ?? Number.NaN) / 1e9)),
  ]);
  const peaks = Object.keys(limits[0].peaks).map((kind) => [
    kind,
    ...limits.map(({ peaks: all }) => digits((all[kind]?.median ?? Number.NaN) / 1e9)),
  ]);
  return [
    { title: 'Read bandwidth by working set, GB/s', rows: [['working set', ...heads], ...reads] },
    { title: 'Peak arithmetic, billion operations/s', rows: [['kind', ...heads], ...peaks] },
  ];
}

function exactTables(cells) {
  const shapes = new Map();
  for (const cell of cells) {
    const key = `${sizeText(cell.count, cell.dimension)}, ${cell.threads} thr.`;
    shapes.set(key, [...(shapes.get(key) ?? []), cell]);
  }
  return [...shapes].map(([title, group]) => {
    const names = [...new Set(group.flatMap(({ rows }) => rows.map(({ name }) => name)))];
    const head = ['', ...group.map(({ batch }) => `batch ${batch}`), 'recall@10', 'max error'];
    const rows = names.flatMap((name) => timesOf(name, group));
    const floors = Object.keys(group[0].floors).map((storage) => [
      `floor ${storage}`,
      ...group.map(
        (cell) =>
          `${digits(cell.floors[storage].ms)} ${cell.floors[storage].by === 'bandwidth' ? 'b' : 'a'}`,
      ),
      '',
      '',
    ]);
    return {
      title: `Exact search, ${title}: ms a batch`,
      note:
        'Median (10th-90th percentile over rounds). Floor: b by bandwidth, a by arithmetic. "over floor": ours / floor. ' +
        '"ours f32 faster by": time of the peer / ours. * fewer queries timed, and scaled up.',
      rows: [head, ...floors, ...rows],
    };
  });
}

function timesOf(name, group) {
  const found = group.map((cell) => ({ cell, row: cell.rows.find((row) => row.name === name) }));
  const rows = found.map(({ row }) => row).filter(Boolean);
  const worst = (key, pick) => {
    const values = rows
      .map((row) => row[key])
      .filter((value) => value !== null && value !== undefined);
    return values.length === 0 ? null : pick(...values);
  };
  const error = worst('maxError', Math.max);
  const times = [
    name,
    ...found.map(({ cell, row }) =>
      row ? `${spread(row.ms)}${row.queriesTimed < cell.batch ? '*' : ''}` : '-',
    ),
    digits(worst('recall', Math.min), 4),
    error === null ? '-' : error.toExponential(1),
  ];
  const [label, key] = rows[0].ours
    ? ['over floor', 'overFloor']
    : ['ours f32 faster by', 'oursIsFaster'];
  const ratios = found.map(({ row }) => (row?.[key] ? spread(row[key]) : '-'));
  return [times, [`  ${label}`, ...ratios, '', '']];
}

function growthTables(points) {
  return ['vectors', 'queries'].map((curve) => {
    const group = points.filter((point) => point.curve === curve);
    const names = [...new Set(group.flatMap(({ ms }) => Object.keys(ms)))];
    const first = group[0];
    const where =
      first &&
      (curve === 'vectors'
        ? `dimension ${first.dimension}, 1 query`
        : `over ${sizeText(first.count, first.dimension)}`);
    return {
      title: `Growth over ${curve}, ms (${where}, ${first?.threads} thr.)`,
      rows: [
        [curve, ...names],
        ...group.map(({ count, batch, ms }) => [
          curve === 'vectors' ? count.toLocaleString('en') : batch,
          ...names.map((name) => digits(ms[name]?.median)),
        ]),
      ],
    };
  });
}

function annTables(runs) {
  return runs.flatMap(({ count, dimension, threads, curves, masks }) => {
    const title = `${sizeText(count, dimension)}, clustered, ${threads} thr.`;
    const efs = curves[0].points.map(({ ef }) => ef);
    return [
      {
        title: `ANN, ${title}: queries/s (recall@10)`,
        note: 'Same M and efConstruction. The column "at 0.99" is read off between the measured points.',
        rows: [
          ['', 'adds/s', ...efs.map((ef) => `ef ${ef}`), 'at 0.99'],
          ...curves.map(({ name, addsPerSecond, points, at99 }) => [
            name,
            digits(addsPerSecond, 4),
            ...points.map(
              ({ queriesPerSecond, recall }) =>
                `${digits(queriesPerSecond, 4)} (${digits(recall, 4)})`,
            ),
            digits(at99, 4),
          ]),
        ],
      },
      {
        title: `ANN with masks, ${title}`,
        rows: [
          ['allowed', 'queries/s', 'recall@10', 'exact queries/s'],
          ...(masks ?? []).map(({ share, queriesPerSecond, recall, exactQueriesPerSecond }) => [
            `${share * 100} %`,
            digits(queriesPerSecond, 4),
            digits(recall, 4),
            digits(exactQueriesPerSecond, 4),
          ]),
        ],
      },
    ];
  });
}

function reliabilityTables(found) {
  if (!found) return [];
  const { insideNs, nodeUs, dimension, arms } = found;
  return [
    {
      title: `Bandit (d = ${dimension}, ${arms.toLocaleString('en')} arms) and cut (50 x ${dimension})`,
      note: 'Inside the core: per arm, in calls of 10, ids looked up. Through Node: per call.',
      rows: [
        ['what', 'time'],
        ...Object.entries(insideNs).map(([name, stats]) => [
          `inside: ${words(name)}`,
          `${spread(stats)} ns`,
        ]),
        ...Object.entries(nodeUs ?? {}).map(([name, stats]) => [name, `${spread(stats)} us`]),
      ],
    },
  ];
}

function words(name) {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function requestTables({ select, encode, loop }) {
  const rows = [['what', 'figure']];
  for (const [storage, stats] of Object.entries(select?.us ?? {}))
    rows.push([
      `select, ${sizeText(select.count, select.dimension)}, ${storage}`,
      `${spread(stats)} us, ${select.heapBytesPerCall[storage]} bytes of heap a call`,
    ]);
  if (encode) {
    rows.push(['encode', `${spread(encode.encodeMs)} ms`]);
    rows.push(['encode + select', `${spread(encode.encodeAndSelectMs)} ms`]);
    rows.push(['the two over encode alone', `${spread(encode.ratio)} x`]);
    rows.push([
      `select alone, ${sizeText(encode.count, encode.dimension)}`,
      `${spread(encode.selectMs)} ms`,
    ]);
  }
  if (loop) {
    for (const [name, { delayMs }] of [
      ['idle', loop.idle],
      [`${loop.requests} selects in flight`, loop.busy],
    ])
      rows.push([
        `event loop delay, ${name}`,
        `p50 ${digits(delayMs.p50)}, p99 ${digits(delayMs.p99)}, max ${digits(delayMs.max)} ms`,
      ]);
  }
  return [{ title: 'One request', rows }];
}

function crossingTables(crossing) {
  return [
    {
      title: 'Calls into native code, ns',
      rows: [
        ['what', 'ns'],
        ...Object.entries(crossing ?? {}).map(([name, stats]) => [name, spread(stats)]),
      ],
    },
  ];
}

function budgets(lines) {
  return {
    title: 'Budgets',
    note: 'The case shown is the one with the least room; "reached" means every case.',
    rows: [
      ['budget', 'target', 'reached', 'closest case', 'value', 'cases'],
      ...lines.map(({ what, target, reached, worst, why, cases }) =>
        reached === null
          ? [what, target, 'not shown here', why, '-', '-']
          : [
              what,
              target,
              reached ? 'reached' : 'not reached',
              worst.where,
              digits(worst.value, 4),
              `${cases.filter((one) => one.reached).length} of ${cases.length}`,
            ],
      ),
    ],
  };
}
