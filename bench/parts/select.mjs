// One request: search, reliability, fusion and cut in one native call; and what it adds to encoding the query.
import path from 'node:path';
import { makeCatalogue } from '../catalogue.mjs';
import { makeIndex } from '../peers/ours.mjs';
import { root } from '../prepare.mjs';
import { ratio, roundRobin, summary } from '../rounds.mjs';

const rank = { now: 1, explore: true };
const asked = 64;

export function selectSteps({ options, plan }) {
  const [count, dimension] = plan.shapes[0];
  return [
    { name: `select over ${count} x ${dimension}`, seconds: 4, run: (context) => select(context) },
    {
      name: 'encode and select against encode',
      seconds: options.mode === 'full' ? 60 : 16,
      run: (context) => encodeAndSelect(context),
    },
  ];
}

/** An index, and a bandit that knows every tenth tool. */
function prepare({ addon, probe }, count, dimension, storage) {
  const catalogue = makeCatalogue(probe, { count, dimension, queries: asked, clusters: 50 });
  const made = makeIndex(addon, catalogue, storage);
  if (made === undefined) return undefined;
  const bandit = addon.banditCreate({ dimension });
  const known = made.ids.filter((_, i) => i % 10 === 0);
  for (const [i, id] of known.entries()) {
    const x = catalogue.queries.subarray((i % asked) * dimension, ((i % asked) + 1) * dimension);
    addon.banditUpdate(
      bandit,
      [id],
      x,
      Float32Array.of(0.5),
      Float32Array.of(i % 2),
      Float64Array.of(0),
    );
  }
  const query = (i) =>
    catalogue.queries.subarray((i % asked) * dimension, ((i % asked) + 1) * dimension);
  const ranking = addon.rankingCreate(50);
  const ruleOf = (threads) => addon.selectRuleCreate({ k: 50, mode: 'exact', threads }, rank);
  const rules = [ruleOf(1), ruleOf(2)];
  return {
    made,
    query,
    select: (vector, threads = 1) =>
      addon.selectInto(made.snapshot, bandit, vector, rules[threads - 1], rank.now, ranking.handle),
    close() {
      addon.banditClose(bandit);
      made.close();
    },
  };
}

async function select(context) {
  const { probe, plan, options, results, skip } = context;
  const threads = Math.max(...options.threads) > 1 ? 2 : 1;
  probe.pin(threads);
  const [count, dimension] = plan.shapes[0];
  const open = [];
  const contestants = [];
  for (const storage of ['f32', 'bf16', 'i8']) {
    const one = prepare(context, count, dimension, storage);
    if (one === undefined) {
      skip(`select ${storage}`, 'this build has no such storage');
      continue;
    }
    let i = 0;
    open.push(one);
    for (let t = 1; t <= threads; t++) {
      const name = t === 1 ? storage : `${storage}, 2 threads`;
      contestants.push({ name, run: () => one.select(one.query(i++), t), one });
    }
  }
  const budgetMs = options.mode === 'smoke' ? 100 : 3000;
  const timed = await roundRobin(contestants, { budgetMs, least: plan.least, sampleMs: 5 });
  results.select = { count, dimension, k: 50, us: {}, heapBytesPerCall: {} };
  for (const { name, one } of contestants) {
    results.select.us[name] = summary(timed.get(name).samples.map((ms) => ms * 1000));
    results.select.heapBytesPerCall[name] = heapPerCall(() => one.select(one.query(0)));
  }
  for (const each of open) each.close();
}

/** Bytes of JavaScript heap that a call takes, its result included: the least of several tries, as collections intervene. */
function heapPerCall(call) {
  const calls = 50;
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 20; attempt++) {
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < calls; i++) call();
    const used = process.memoryUsage().heapUsed - before;
    if (used >= 0) least = Math.min(least, used / calls);
  }
  return Math.round(least);
}

async function encodeAndSelect(context) {
  const { addon, probe, plan, options, results, skip } = context;
  probe.pin(1);
  const dimension = 384;
  let encoder;
  try {
    encoder = await openEncoder(addon);
  } catch (error) {
    skip('encode and select', String(error.message).split('\n')[0]);
    return;
  }
  const count = plan.shapes[0][0];
  const one = prepare(context, count, dimension, 'i8') ?? prepare(context, count, dimension, 'f32');
  const texts = Array.from(
    { length: plan.texts },
    (_, i) => `${requests[i % requests.length]} (${i})`,
  );
  let vector = one.query(0);
  const encode = async (after) => {
    for (const text of texts) {
      vector = await addon.encode(encoder, [text]);
      after();
    }
  };
  const contestants = [
    { name: 'encode', run: () => encode(() => {}) },
    { name: 'encode + select', run: () => encode(() => one.select(vector)) },
    { name: 'select', run: () => one.select(vector) },
  ];
  const budgetMs = { smoke: 200, normal: 14000, full: 55000 }[options.mode];
  const timed = await roundRobin(contestants, { budgetMs, least: 5 });
  const perText = ({ samples }) => summary(samples.map((ms) => ms / texts.length));
  results.encode = {
    count,
    dimension,
    texts: texts.length,
    encodeMs: perText(timed.get('encode')),
    encodeAndSelectMs: perText(timed.get('encode + select')),
    selectMs: summary(timed.get('select').samples),
    ratio: ratio(timed.get('encode + select'), timed.get('encode')),
  };
  one.close();
  addon.encoderClose(encoder);
}

async function openEncoder(addon) {
  const { findRuntime } = await import('../../dist/esm/lib/encode/runtime.js');
  const folder = path.join(root, 'models/toolfinch-retriever');
  const tokenizer = addon.tokenizerOpen({
    vocabPath: path.join(folder, 'vocab.txt'),
    lowercase: true,
    stripAccents: true,
    chineseCharacters: true,
  });
  return addon.encoderOpen({
    runtimePath: findRuntime({ from: [root] }),
    modelPath: path.join(folder, 'model.onnx'),
    tokenizer,
    outputName: 'sentence_embedding',
    dimension: 384,
    pooling: 'none',
  });
}

const requests = [
  'Find the cheapest direct flight from Lisbon to Oslo next Friday and book a seat at the window',
  'Summarise the last ten messages in the release channel',
  'Convert 250 euros to Japanese yen',
  'Open a ticket: the login page shows a blank screen on Safari',
  'Which meetings do I have tomorrow afternoon, and who will be there?',
  'Translate this paragraph into Portuguese and keep the formatting',
  'Delete the files in the temporary folder that are older than thirty days',
  'Play something calm for an hour',
];
