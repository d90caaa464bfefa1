import {
  type CutEvaluation,
  type Dataset,
  type DatasetQuery,
  evaluateCut,
  evaluateRanking,
  evaluationPlot,
  loadDataset,
  type RankingEvaluation,
  selectQueries,
  writePicture,
} from '../../lib/evaluate/index.js';
import {
  CachedEncoder,
  FinchError,
  type RetrieveMethod,
  retrieve,
  Selector,
  ToolIndex,
} from '../../lib/index.js';
import { type Command, given, numberOption, parse, UsageError } from '../arguments.js';
import { encoderOptions, encoderUsage, openEncoder } from '../encoder-options.js';
import { checkPlot } from '../output-file.js';
import { ProgressLine } from '../progress.js';

const usage = `usage: toolfinch evaluate --data FOLDER [--split test]

Runs labelled queries and prints NDCG@10, Recall@10, Completeness@10 and MRR of lexical, dense and hybrid retrieval, and
Completeness with the mean k of a fixed cut and of the dynamic one. FOLDER holds tools.jsonl (or tools.json), queries.jsonl,
qrels.tsv and splits.tsv. Intervals are 95 % bootstrap over queries.

  --data FOLDER              the dataset
  --split NAME               train, test (default) or all
  --kind NAME                only queries of this kind, where queries.jsonl names kinds
  --limit N                  at most N queries, spread evenly
  --shortlist N              candidates the cuts work on (default 10)
  --plot FILE                recall curves and the distribution of k, as .svg or .png
${encoderUsage}
  --json                     everything as JSON`;

const methods: readonly RetrieveMethod[] = ['lexical', 'dense', 'hybrid'];
const depth = 50;

export const evaluate: Command = {
  name: 'evaluate',
  summary: 'measure retrieval and cuts on labelled queries',
  usage,
  async run(args) {
    const { values, positionals } = parse(args, {
      data: { type: 'string' },
      split: { type: 'string', default: 'test' },
      kind: { type: 'string' },
      limit: { type: 'string' },
      shortlist: { type: 'string' },
      plot: { type: 'string' },
      json: { type: 'boolean', default: false },
      ...encoderOptions,
    });
    if (values.data === undefined || positionals.length > 0) {
      throw new UsageError('give the dataset with --data FOLDER');
    }
    await checkPlot(values.plot);
    const whole = await loadDataset(values.data);
    const split = values.split === 'all' ? undefined : values.split;
    const dataset = limited(
      selectQueries(whole, { split, kind: values.kind }),
      numberOption('limit', values.limit),
    );
    const shortlist = numberOption('shortlist', values.shortlist);

    const encoder = new CachedEncoder(await openEncoder(values));
    const indexing = new ProgressLine(`indexing ${dataset.tools.length} tools`, 'texts');
    const index = await ToolIndex.build(dataset.tools, {
      encoder,
      prior: 'none',
      onProgress: ({ done, total }) => indexing.update(done, total),
    });
    indexing.end();

    const rankings = new Map<RetrieveMethod, RankingEvaluation>();
    for (const method of methods) {
      rankings.set(method, await rankWith(method, index, dataset));
    }
    const selector = new Selector({ index, explore: false, ...given({ shortlist }) });
    const cutWith = (settings: Parameters<typeof selector.select>[1]) =>
      cuts(dataset, async ({ text }) => {
        const { tools } = await selector.select(text, settings);
        return tools.map(({ id }) => id);
      });
    const fixed = await cutWith({ cut: { rule: 'fixed', k: 10 }, relevanceFloor: -Infinity });
    const dynamic = await cutWith({ cut: { rule: 'dynamic' }, relevanceFloor: -Infinity });
    const withFloor = await cutWith({ cut: { rule: 'dynamic' } });
    index.close();
    await encoder.close();

    const report = {
      dataset: dataset.name,
      split: values.split,
      model: encoder.model,
      tools: dataset.tools.length,
      queries: dataset.queries.length,
      unanswerable: dataset.unanswerable.length,
      retrieval: Object.fromEntries(
        [...rankings].map(([method, { perQuery: _, ...means }]) => [method, means]),
      ),
      cuts: {
        'fixed 10': withoutQueries(fixed),
        dynamic: withoutQueries(dynamic),
        'dynamic with floor': withoutQueries(withFloor),
      },
    };
    if (values.plot !== undefined) {
      const picture = evaluationPlot({
        title: `${dataset.name}: ${dataset.tools.length} tools, ${dataset.queries.length} queries`,
        subtitle: `${encoder.model}, ${values.split} split`,
        series: methods.map((method) => ({
          name: method,
          values: (rankings.get(method) as RankingEvaluation).curve.recall,
        })),
        points: [{ name: 'dynamic cut', k: dynamic.k.mean, value: dynamic.recall.mean }],
        distribution: { name: 'Tools kept by the dynamic cut', counts: dynamic.distribution },
      });
      await writePicture(values.plot, picture);
    }
    process.stdout.write(
      values.json
        ? `${JSON.stringify(report, null, 2)}\n`
        : table(report, rankings, { fixed, dynamic, withFloor }),
    );
  },
};

function rankWith(
  method: RetrieveMethod,
  index: ToolIndex,
  dataset: Dataset,
): Promise<RankingEvaluation> {
  const progress = new ProgressLine(method, 'queries');
  return evaluateRanking(
    dataset.queries,
    async ({ text }) => {
      const snapshot = index.snapshot();
      try {
        const vector = method === 'lexical' ? undefined : await index.encoder.encode([text]);
        const found = await retrieve(index, snapshot, { text, vector }, { n: depth, method });
        return found.map(({ id }) => id);
      } finally {
        snapshot.close();
      }
    },
    { k: 10, depth, onProgress: ({ done, total }) => progress.update(done, total) },
  ).finally(() => progress.end());
}

function cuts(
  dataset: Dataset,
  select: (query: DatasetQuery) => Promise<string[]>,
): Promise<CutEvaluation> {
  const progress = new ProgressLine('cuts', 'queries');
  return evaluateCut([...dataset.queries, ...dataset.unanswerable], select, {
    onProgress: ({ done, total }) => progress.update(done, total),
  }).finally(() => progress.end());
}

/** About every n-th query, so that a limit keeps the mix. */
function limited(dataset: Dataset, limit: number | undefined): Dataset {
  if (limit === undefined) return dataset;
  if (!Number.isInteger(limit) || limit < 1) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `--limit is ${limit}; expected an integer, 1 or more.`,
    );
  }
  const all = dataset.queries.length + dataset.unanswerable.length;
  const share = Math.min(1, limit / all);
  const spread = (queries: readonly DatasetQuery[]) =>
    queries.filter((_, i) => Math.floor((i + 1) * share) > Math.floor(i * share));
  return {
    ...dataset,
    queries: spread(dataset.queries),
    unanswerable: spread(dataset.unanswerable),
  };
}

function withoutQueries({ perQuery: _, ...means }: CutEvaluation) {
  return means;
}

function table(
  report: {
    dataset: string;
    split: string;
    model: string;
    tools: number;
    queries: number;
    unanswerable: number;
  },
  rankings: ReadonlyMap<RetrieveMethod, RankingEvaluation>,
  { fixed, dynamic, withFloor }: Record<'fixed' | 'dynamic' | 'withFloor', CutEvaluation>,
): string {
  const percent = (value: number) => (100 * value).toFixed(1).padStart(6);
  const lines = [
    `${report.dataset} (${report.split}): ${report.tools} tools, ${report.queries} queries, ${report.unanswerable} unanswerable; ${report.model}`,
    '',
    'retrieval   NDCG@10  ± 95 %  Recall@10  Complete@10     MRR',
  ];
  for (const [method, { ndcg, recall, completeness, reciprocalRank }] of rankings) {
    const half = (ndcg.high - ndcg.low) / 2;
    lines.push(
      `${method.padEnd(10)}  ${percent(ndcg.mean)}  ${percent(half)}  ${percent(recall.mean).padStart(9)}  ${percent(completeness.mean).padStart(11)}  ${percent(reciprocalRank.mean)}`,
    );
  }
  lines.push(
    '',
    'cut (hybrid)          Complete  mean k  Recall  Precision  abstained  rightly none',
  );
  const cutLine = (
    name: string,
    { completeness, k, recall, precision, abstained, unanswerable }: CutEvaluation,
  ) =>
    `${name.padEnd(20)}  ${percent(completeness.mean).padStart(8)}  ${k.mean.toFixed(2).padStart(6)}  ${percent(recall.mean)}  ${percent(precision.mean).padStart(9)}  ${percent(abstained).padStart(9)}  ${unanswerable === undefined ? '–'.padStart(12) : percent(unanswerable.abstained).padStart(12)}`;
  lines.push(
    cutLine('fixed 10', fixed),
    cutLine('dynamic', dynamic),
    cutLine('dynamic, with floor', withFloor),
  );
  return `${lines.join('\n')}\n`;
}
