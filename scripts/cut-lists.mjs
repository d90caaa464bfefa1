// Candidate lists of labelled and of off-topic queries, kept in a folder: retrieving is most of the time of measuring cuts.
import { createWriteStream, existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadDataset } from '../dist/esm/lib/evaluate/index.js';
import { AllowSet, defaultEncoder, retrieve, ToolIndex } from '../dist/esm/lib/index.js';

const shortlist = 50;
const offTopicFile = fileURLToPath(
  new URL('../test/fixtures/off-topic/queries.txt', import.meta.url),
);

/** The committed off-topic queries; every second one is for choosing settings, the others are for measuring. */
export function offTopicQueries() {
  const queries = [];
  let kind = '';
  for (const line of readFileSync(offTopicFile, 'utf8').split('\n')) {
    if (line.startsWith('# ')) kind = line.slice(2);
    else if (line.trim() !== '') {
      queries.push({ id: `o${queries.length}`, text: line, kind, gold: new Map() });
    }
  }
  return queries;
}

/**
 * Lists of 50 hybrid candidates under the default encoder: of a dataset's split, or `off` for the off-topic queries on its
 * catalogue. `removed` has the best three scores that are left when the query's gold tools are taken out of the index.
 */
export async function candidateLists(data, cache, set, split, limit = Number.POSITIVE_INFINITY) {
  mkdirSync(cache, { recursive: true });
  const file = path.join(cache, `${set}.${split}.jsonl`);
  const saved = path.join(cache, `${set}.finch`);
  const encoder = await defaultEncoder();
  try {
    const index = await indexOf(data, saved, set, encoder);
    if (!existsSync(file)) await makeLists(data, index, encoder, set, split, limit, file);
    const snapshot = index.snapshot();
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const share = Math.min(1, limit / lines.length);
    const spread = lines.filter((_, i) => Math.floor((i + 1) * share) > Math.floor(i * share));
    const lists = spread.map((line) => {
      const { ids, scores, relevant, gold, removed } = JSON.parse(line);
      return {
        scores: Float32Array.from(scores),
        embeddings: snapshot.vectors(snapshot.find(ids)),
        relevant,
        gold,
        removed,
      };
    });
    snapshot.close();
    index.close();
    return { lists, pipeline: { encoder: encoder.model, method: 'hybrid', shortlist } };
  } finally {
    await encoder.close();
  }
}

async function indexOf(data, saved, set, encoder) {
  if (existsSync(saved)) return ToolIndex.open(saved, { encoder });
  const { tools } = await loadDataset(path.join(data, set));
  const index = await ToolIndex.build(tools, { encoder, prior: 'none' });
  await index.save(saved);
  return index;
}

async function makeLists(data, index, encoder, set, split, limit, file) {
  const queries = split === 'off' ? offTopicQueries() : await labelled(data, set, split, limit);
  const out = createWriteStream(file);
  const snapshot = index.snapshot();
  const all = index.ids();
  for (const { id, text, kind, gold } of queries) {
    const vector = await encoder.encode([text], { kind: 'query' });
    const right = new Set([...gold].filter(([, grade]) => grade > 0).map(([tool]) => tool));
    const found = await retrieve(index, snapshot, { text, vector }, { n: shortlist });
    const others =
      right.size === 0
        ? []
        : await retrieve(
            index,
            snapshot,
            { text, vector },
            { n: 3, allow: new AllowSet(all.filter((tool) => !right.has(tool))) },
          );
    const line = {
      id,
      kind,
      ids: found.map((hit) => hit.id),
      scores: found.map(({ score }) => score),
      relevant: found.flatMap((hit, i) => (right.has(hit.id) ? [i] : [])),
      gold: right.size,
      removed: others.map(({ score }) => score),
    };
    out.write(`${JSON.stringify(line)}\n`);
  }
  snapshot.close();
  await new Promise((resolve) => out.end(resolve));
}

async function labelled(data, set, split, limit) {
  const { queries, unanswerable } = await loadDataset(path.join(data, set));
  // metatool's test split has a second kind, multi-tool queries, that published figures leave out.
  const wanted = [...queries, ...unanswerable].filter(
    (query) => query.split === split && (set !== 'metatool' || query.kind === 'single'),
  );
  const share = Math.min(1, limit / wanted.length);
  return wanted.filter((_, i) => Math.floor((i + 1) * share) > Math.floor(i * share));
}
