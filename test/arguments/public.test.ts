// Every public function, method and constructor, called with arguments of the wrong kind: it returns or fails with a
// FinchError, never with an error of the engine's.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import * as evaluation from '../../dist/esm/lib/evaluate/index.js';
import * as toolfinch from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';
import { cutTargets } from './cut-targets.js';
import { evaluateTargets } from './evaluate-targets.js';
import { complaints, type Target } from './hostile.js';

const {
  AllowSet,
  Bandit,
  CachedEncoder,
  FeedbackStore,
  HealthChecks,
  HttpEncoder,
  HttpReranker,
  LexicalIndex,
  OnnxEncoder,
  OnnxReranker,
  ReplicatedFeedback,
  Selector,
  ToolIndex,
  VectorCache,
  VectorIndex,
} = toolfinch;

const folder = mkdtempSync(path.join(tmpdir(), 'toolfinch-arguments-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const file = (ending: string) => path.join(folder, `${files++}.${ending}`);
const models = path.resolve('models');
const rerankerFolder = path.resolve('native/test/fixtures/reranker');
const { signal } = new AbortController();
// Relative paths lead here, whatever they are.
process.chdir(folder);

const tool = toolfinch.defineTool({
  name: 'set_alarm',
  description: 'Rings.',
  inputSchema: { type: 'object', properties: { at: { type: 'string' } } },
});
const mcp = JSON.stringify({ tools: [{ name: 'set_alarm', inputSchema: { type: 'object' } }] });
const encoder = new WordEncoder(8);
const index = await ToolIndex.build([tool], { encoder });
const vectors = VectorIndex.create(2);
await vectors.upsert(['a', 'b'], Float32Array.of(1, 0, 0, 1));
const snapshot = vectors.snapshot();
const bandit = new Bandit({ dimension: 2 });
const store = FeedbackStore.memory({ bandit: { dimension: 8 } });
const selector = new Selector({ index, feedback: store });
const cached = new CachedEncoder(new WordEncoder(8));
const http = await HttpEncoder.open({
  baseUrl: 'http://127.0.0.1:9/v1',
  model: 'm',
  dimension: 4,
  retries: 0,
});
const onnx = await toolfinch.defaultEncoder();
const httpReranker = new HttpReranker({ baseUrl: 'http://127.0.0.1:9', model: 'm', retries: 0 });
const reranker = await OnnxReranker.open(rerankerFolder);
const lexical = new LexicalIndex();
const cache = new VectorCache();
cache.write('key', Float32Array.of(1, 0));
const allow = new AllowSet(['a']);
afterAll(() => onnx.close());

const one = Float32Array.of(1, 0);
const half = Float32Array.of(0.5);
const key = Float64Array.of(1);
const rank = {
  now: 0,
  explore: true,
  minAvailability: 0.5,
  cut: { minK: 1, maxK: 2, signals: ['score'] },
};
const search = {
  k: 1,
  mode: 'exact',
  allow: ['a'],
  threads: 1,
  overfetch: 2,
  expansion: 3,
  signal,
};
let decisions = 0;
store.decide({
  id: 'reported',
  x: new Float32Array(8).fill(1),
  toolIds: ['set_alarm'],
  priors: half,
});

const targets: Record<string, Target> = {};
function add(name: string, call: unknown, args: Target['args'], fails = false): void {
  targets[name] = { call: call as Target['call'], args, fails };
}
function method<T extends object>(
  name: string,
  self: T,
  key: keyof T & string,
  args: Target['args'],
): void {
  add(
    `${name}#${key}`,
    (...given: unknown[]) => (self[key] as (...a: unknown[]) => unknown)(...given),
    args,
  );
}

// --- Catalogue
add('contentHash', toolfinch.contentHash, () => [tool, 'text', 'model', 'recipe']);
add('defineTool', toolfinch.defineTool, () => [
  { name: 'a', description: 'b', inputSchema: { type: 'object' } },
  { group: 'g', source: 's', id: 'i' },
]);
const server = { type: 'stdio', command: '/no/such', args: ['a'], env: { A: 'b' }, cwd: '.' };
const waiting = { timeoutMs: 5000, environment: { A: 'b' }, source: 's', signal };
add(
  'importMcpServers',
  toolfinch.importMcpServers,
  () => [
    { servers: new Map([['a', server]]), disabled: [] },
    { ...waiting, strict: true, keepOpen: false },
  ],
  true,
);
add('connectMcp', toolfinch.connectMcp, () => ['a', server, waiting], true);
add('expandMcpServer', toolfinch.expandMcpServer, () => ['a', server, { A: 'b' }]);
const variable = ['$', '{A}'].join('');
add('expandMcpServer, http', toolfinch.expandMcpServer, () => [
  'a',
  { type: 'http', url: `http://${variable}`, headers: { x: variable } },
  { A: 'b' },
]);
add('detectFormat', toolfinch.detectFormat, () => [mcp, 'origin']);
add('importTools', toolfinch.importTools, () => [
  mcp,
  { format: 'mcp', group: 'g', source: 's', origin: 'o', allowEmpty: true },
]);
add('indexText', toolfinch.indexText, () => [tool, {}]);
add('indexTextRecipe', toolfinch.indexTextRecipe, () => [{}]);
add('lexicalFields', toolfinch.lexicalFields, () => [tool]);
add('splitToolName', toolfinch.splitToolName, () => ['setAlarm']);
add('splitWords', toolfinch.splitWords, () => ['setAlarm']);
add('readMcpConfig', toolfinch.readMcpConfig, () => ['{"mcpServers":{"a":{"command":"b"}}}']);
add('mergeTools', toolfinch.mergeTools, () => [[{ origin: 'o', tools: [tool] }]]);
add('metadataPriors', toolfinch.metadataPriors, () => [
  [tool],
  half,
  { sourceWeights: { official: 1 }, otherWeight: 0.5 },
]);
add('countTokens', toolfinch.countTokens, () => ['text']);
add('estimateTokens', toolfinch.estimateTokens, () => [tool, toolfinch.countTokens]);

// --- Encode
add(
  'CachedEncoder',
  (...a: [never]) => new CachedEncoder(...a),
  () => [encoder, { maxBytes: 1000 }],
);
add(
  'CachedEncoder, shared',
  (...a: [never]) => new CachedEncoder(...a),
  () => [encoder, { cache }],
);
method('CachedEncoder', cached, 'encode', () => [['text'], { kind: 'query', signal }]);
add(
  'HttpEncoder.open',
  (o: never) => HttpEncoder.open(o),
  () => [
    {
      baseUrl: 'http://127.0.0.1:9/v1',
      model: 'm',
      apiKey: 'key',
      revision: '1',
      dimension: 4,
      encodingFormat: 'float',
      batchSize: 2,
      retries: 0,
      backoffMs: 0,
      timeoutMs: 1000,
      headers: { a: 'b' },
      relevanceFloor: 0.2,
      queryPrefix: 'q: ',
      toolPrefix: 't: ',
      signal,
    },
  ],
);
method('HttpEncoder', http, 'encode', () => [[], { kind: 'query', signal }]);
const onnxOptions = { verify: false, batchSize: 1, signal };
add(
  'OnnxEncoder.open',
  async (...a: [never]) => (await OnnxEncoder.open(...a)).close(),
  () => [path.join(models, toolfinch.defaultModel), onnxOptions],
);
method('OnnxEncoder', onnx, 'encode', () => [['text'], { kind: 'query', signal }]);
method('OnnxEncoder', onnx, 'countTokens', () => ['text', { kind: 'query', signal }]);
const rerankOptions = { budgetMs: 1000, signal };
add(
  'HttpReranker',
  (o: never) => new HttpReranker(o),
  () => [
    {
      baseUrl: 'http://127.0.0.1:9/v1',
      model: 'm',
      apiKey: 'key',
      revision: '1',
      scoreKind: 'logit',
      batchSize: 2,
      retries: 0,
      budgetMs: 100,
      headers: { a: 'b' },
      relevanceFloor: 0.2,
      fetch,
    },
  ],
);
method('HttpReranker', httpReranker, 'rerank', () => ['query', [], rerankOptions]);
add(
  'OnnxReranker.open',
  async (...a: [never]) => (await OnnxReranker.open(...a)).close(),
  () => [
    rerankerFolder,
    {
      verify: false,
      maxTokens: 32,
      truncation: 'document-first',
      provider: 'cpu',
      batchSize: 1,
      budgetMs: 100,
      cacheBytes: 1000,
      signal,
    },
  ],
);
method('OnnxReranker', reranker, 'rerank', () => ['query', ['text'], rerankOptions]);
method('OnnxReranker', reranker, 'countTokens', () => ['query', 'text']);
add('readRerankerFolder', toolfinch.readRerankerFolder, () => [rerankerFolder, { verify: false }]);
add('sigmoid', toolfinch.sigmoid, () => [1]);
add(
  'defaultEncoder',
  async (o: never) => (await toolfinch.defaultEncoder(o)).close(),
  () => [{ models }],
);
add('readModelFolder', toolfinch.readModelFolder, () => [
  path.join(models, toolfinch.defaultModel),
  { verify: false, signal },
]);
add('findRuntime', toolfinch.findRuntime, () => [
  { runtimePath: process.execPath, from: ['.'], platform: 'linux', arch: 'x64', env: { A: 'b' } },
]);
add(
  'VectorCache',
  (n: never) => new VectorCache(n),
  () => [1000],
);
method('VectorCache', cache, 'read', () => ['key', new Float32Array(2), 0]);
method('VectorCache', cache, 'write', () => ['key', one]);
method('VectorCache', cache, 'delete', () => ['key']);

// --- Reliability
const banditOptions = { dimension: 2, form: 'calibrated', lambda: 1, gamma: 0.9, alpha: 1 };
add(
  'Bandit',
  (o: never) => new Bandit(o).close(),
  () => [banditOptions],
);
add(
  'Bandit.fromShared',
  (s: never) => Bandit.fromShared(s).close(),
  () => [{ ...bandit.share(), options: banditOptions }],
);
method('Bandit', bandit, 'score', () => [['a'], half, one, 0, false]);
method('Bandit', bandit, 'update', () => [['a'], one, half, half, Float64Array.of(0)]);
method('Bandit', bandit, 'drop', () => [['a']]);
method('Bandit', bandit, 'deserialize', () => [bandit.serialize()]);
const feedbackOptions = {
  bandit: { dimension: 2 },
  model: 'm',
  sync: { intervalMs: 50 },
  maxDecisions: 10,
  maxReports: 10,
  reportAgeMs: 1000,
  compactBytes: 100,
  retryMs: 0,
  onCorruption: 'cut',
  now: () => 5,
};
add(
  'FeedbackStore.open',
  async (...a: [never, never]) => (await FeedbackStore.open(...a)).close(),
  () => [file('feedback'), feedbackOptions],
);
add(
  'FeedbackStore.memory',
  (o: never) => FeedbackStore.memory(o).close(),
  () => [feedbackOptions],
);
method('FeedbackStore', store, 'decide', () => [
  {
    id: `d${decisions++}`,
    x: new Float32Array(8).fill(1),
    toolIds: ['set_alarm'],
    priors: half,
    time: 1,
  },
]);
method('FeedbackStore', store, 'reportHealth', () => ['set_alarm', 'success']);
add(
  'HealthChecks',
  (o: never) => new HealthChecks(o).stop(),
  () => [
    {
      feedback: store,
      toolIds: () => ['set_alarm'],
      probe: () => true,
      intervalMs: 1000,
      maxIntervalMs: 2000,
      timeoutMs: 10,
      concurrency: 1,
    },
  ],
);
method('FeedbackStore', store, 'decision', () => ['d0']);
method('FeedbackStore', store, 'report', () => [
  { decisionId: 'reported', toolId: 'set_alarm', outcome: 'success', at: 1 },
]);
method('FeedbackStore', store, 'drop', () => [['a']]);
// Nothing listens there: a replica is of use without Redis.
const replicaOptions = {
  ...feedbackOptions,
  sync: 'none',
  redis: { url: 'redis://127.0.0.1:9', database: 0, socket: { connectTimeout: 100 } },
  tenant: 't',
  catalogue: 'c',
  prefix: 'p',
  maxWaiting: 1000,
  snapshotEvery: 10,
  keepRecords: 1,
  sharedDecisions: 1,
  decisionTtlMs: 1000,
  retainMs: 1,
  commandTimeoutMs: 100,
  openWaitMs: 0,
  closeWaitMs: 0,
};
const openReplica = () => ReplicatedFeedback.open(file('replica'), replicaOptions as never);
add(
  'ReplicatedFeedback.open',
  async (...a: [never, never, never]) => (await ReplicatedFeedback.open(...a)).close(),
  () => [file('replica'), replicaOptions, { signal }],
);
const replica = await openReplica();
afterAll(() => replica.close());
const two = Float32Array.of(1, 1);
replica.decide({ id: 'reported', x: two, toolIds: ['set_alarm'], priors: half });
method('ReplicatedFeedback', replica, 'decide', () => [
  { id: `d${decisions++}`, x: two, toolIds: ['set_alarm'], priors: half, time: 1 },
]);
method('ReplicatedFeedback', replica, 'decision', () => ['d0']);
method('ReplicatedFeedback', replica, 'report', () => [
  { decisionId: 'reported', toolId: 'set_alarm', outcome: 'success', at: 1 },
]);
method('ReplicatedFeedback', replica, 'drop', () => [['a']]);
method('ReplicatedFeedback', replica, 'reportHealth', () => ['set_alarm', 'success']);
for (const name of ['flush', 'catchUp'] as const) {
  add(
    `ReplicatedFeedback#${name}`,
    // They would wait for Redis: closing ends them.
    async (options: never) => {
      const own = await openReplica();
      await own.drop(['a']);
      const waiting = own[name](options);
      waiting.catch(() => undefined);
      await own.close();
      return waiting;
    },
    () => [{ signal }],
    true,
  );
}
add('rewardOf', toolfinch.rewardOf, () => ['success']);

// --- Retrieve
add('setSearchWait', toolfinch.setSearchWait, () => [0]);
add(
  'AllowSet',
  (ids: never) => new AllowSet(ids),
  () => [['a']],
);
method('AllowSet', allow, 'has', () => ['a']);
method('LexicalIndex', lexical, 'upsert', () => ['a', toolfinch.lexicalFields(tool)]);
method('LexicalIndex', lexical, 'remove', () => ['a']);
method('LexicalIndex', lexical, 'search', () => ['ring']);
method('LexicalIndex', lexical, 'named', () => ['ring']);
method('LexicalIndex', lexical, 'match', () => ['ring']);
method('Snapshot', snapshot, 'find', () => [['a']]);
for (const name of ['ids', 'vectors', 'priors'] as const)
  method('Snapshot', snapshot, name, () => [key]);
method('Snapshot', snapshot, 'eligible', () => [['a']]);
method('Snapshot', snapshot, 'search', () => [one, search]);
method('Snapshot', snapshot, 'searchMany', () => [one, search]);
method('Snapshot', snapshot, 'searchSync', () => [one, search]);
method('Snapshot', snapshot, 'select', () => [bandit.handle, one, search, rank]);
method('Snapshot', snapshot, 'selectSync', () => [bandit.handle, one, search, rank]);
method('Snapshot', snapshot, 'rank', () => [bandit.handle, key, half, one, rank]);
add(
  'VectorIndex.create',
  (...a: [never]) => VectorIndex.create(...a).close(),
  () => [2, { storage: 'f32' }],
);
add(
  'VectorIndex.fromShared',
  (t: never) => VectorIndex.fromShared(t).close(),
  () => [vectors.share()],
);
const saved = file('finch');
await vectors.save(saved);
add(
  'VectorIndex.open',
  async (...a: [never]) => (await VectorIndex.open(...a)).close(),
  () => [saved, { map: false, verify: true }],
);
method('VectorIndex', vectors, 'upsert', () => [['a'], one, half]);
method('VectorIndex', vectors, 'setPriors', () => [['a'], half]);
add(
  'VectorIndex#remove',
  (ids: never) => {
    const own = VectorIndex.create(2);
    return own.upsert(['a'], one).then(() => own.remove(ids));
  },
  () => [['a']],
);
method('VectorIndex', vectors, 'buildAnn', () => [
  { connectivity: 4, expansionAdd: 8, expansionSearch: 8, signal },
]);
method('VectorIndex', vectors, 'save', () => [saved, [{ name: 'n', data: new Uint8Array(1) }]]);
method('VectorIndex', vectors, 'section', () => ['n']);
method('VectorIndex', vectors, 'search', () => [one, search]);
method('VectorIndex', vectors, 'searchMany', () => [one, search]);
const indexOptions = {
  encoder,
  indexText: { parts: ['name'], maxCharacters: 100, maxDepth: 1, maxParameters: 2 },
  prior: 'none',
  storage: 'f32',
  annThreshold: 10,
  ann: { connectivity: 4, expansionAdd: 8, expansionSearch: 8 },
};
const change = { onProgress: () => undefined, signal, feedback: { drop: async () => undefined } };
const savedTools = file('finch');
await index.save(savedTools);
add(
  'ToolIndex.build',
  async (...a: [never, never]) => (await ToolIndex.build(...a)).close(),
  () => [[tool], { ...indexOptions, onProgress: () => undefined, signal }],
);
const { indexText: _, prior: __, storage: ___, ...openOptions } = indexOptions;
add(
  'ToolIndex.open',
  async (...a: [never, never]) => (await ToolIndex.open(...a)).close(),
  () => [savedTools, openOptions],
);
add(
  'ToolIndex.inspect',
  (p: never) => ToolIndex.inspect(p),
  () => [savedTools],
);
for (const name of ['get', 'tool', 'resolve', 'tokens'] as const) {
  method('ToolIndex', index, name, () => ['set_alarm']);
}
method('ToolIndex', index, 'upsert', () => [[tool], change]);
method('ToolIndex', index, 'sync', () => [[tool], change]);
add(
  'ToolIndex#remove',
  async (...a: [never, never]) => (await ToolIndex.build([tool], { encoder })).remove(...a),
  () => [['set_alarm'], change],
);
method('ToolIndex', index, 'save', () => [savedTools]);
add(
  'retrieve',
  async (...a: [never, never, never, never]) => {
    await index.upsert([tool]);
    return toolfinch.retrieve(...a);
  },
  () => [
    index,
    index.snapshot(),
    { text: 'ring', vector: new Float32Array(8).fill(1) },
    { n: 3, method: 'hybrid', mode: 'exact', allow: ['set_alarm'], signal },
  ],
);

// --- Select
const settings = {
  maxTools: 3,
  maxTokens: 1000,
  method: 'hybrid',
  shortlist: 5,
  cut: { rule: 'dynamic', minK: 1, maxK: 3, signals: ['score'], boundary: 'before' },
  weights: { semantic: 0.8, bandit: 0.1, prior: 0.1, outage: 0.5 },
  explore: false,
  relevanceFloor: 0,
  pin: ['set_alarm'],
  order: 'stable',
};
add(
  'Selector',
  (o: never) => new Selector(o),
  () => [{ index, feedback: store, now: () => 5, ...settings }],
);
method('Selector', selector, 'select', () => [
  'ring',
  { ...settings, allow: ['set_alarm'], exclude: ['b'], groups: [], signal },
]);
const state = { instruction: 'ring', actions: ['a'], observation: 'b' };
add(
  'Selector#select, state',
  (...a: [never]) => selector.select(...a),
  () => [state],
);
method('Selector', selector, 'report', () => ['reported', 'set_alarm', true]);
add('stateText', toolfinch.stateText, () => [state]);

// --- Truncate, evaluate
for (const [name, call, args] of cutTargets(index, selector)) add(name, call, args);

for (const [name, call, args, fails] of evaluateTargets({ tool, folder, file }))
  add(name, call, args, fails);

describe('arguments of the wrong kind', () => {
  test.each(Object.keys(targets))('%s', async (name) => {
    expect(await complaints(targets[name] as Target)).toEqual([]);
  });
});

test('every public function, method and constructor is among them', () => {
  // They take nothing, are the package's own business, or, FinchError, make an error of whatever is given.
  const exempt = new Set(
    (
      'AllowSet#bind Bandit#share Bandit#serialize Bandit#close CachedEncoder#close FinchError LexicalIndex FeedbackStore#now FeedbackStore#latestDecision ' +
      'HealthChecks#start HealthChecks#stop HealthChecks#run HealthChecks#failing ' +
      'FeedbackStore#compact FeedbackStore#flush FeedbackStore#health FeedbackStore#close HttpEncoder#close HttpReranker#close OnnxReranker#close ' +
      'OnnxEncoder#close ReplicatedFeedback#now ReplicatedFeedback#health ReplicatedFeedback#checksum ' +
      'ReplicatedFeedback#close Snapshot Snapshot#keys Snapshot#close ToolIndex#ids ToolIndex#tools ToolIndex#info ' +
      'ToolIndex#snapshot ToolIndex#close VectorCache#clear VectorIndex#share VectorIndex#dropAnn VectorIndex#info VectorIndex#snapshot ' +
      'VectorIndex#close'
    ).split(' '),
  );
  // Their constructors are private.
  const opened = new Set([
    FeedbackStore,
    HttpEncoder,
    OnnxEncoder,
    OnnxReranker,
    ReplicatedFeedback,
    ToolIndex,
    VectorIndex,
  ] as unknown[]);
  const wanted: string[] = [];
  for (const [name, value] of Object.entries({ ...toolfinch, ...evaluation })) {
    if (typeof value !== 'function') continue;
    if (!opened.has(value)) wanted.push(name);
    if (!/^class/.test(String(value))) continue;
    for (const own of Object.getOwnPropertyNames(value)) {
      const isMethod = typeof (value as never)[own] === 'function';
      if (isMethod) wanted.push(`${name}.${own}`);
    }
    const { prototype } = value as { prototype: object };
    for (const own of Object.getOwnPropertyNames(prototype)) {
      const { value: method } = Object.getOwnPropertyDescriptor(prototype, own) ?? {};
      if (own !== 'constructor' && typeof method === 'function') wanted.push(`${name}#${own}`);
    }
  }
  expect(wanted.filter((name) => !exempt.has(name) && !(name in targets))).toEqual([]);
});
