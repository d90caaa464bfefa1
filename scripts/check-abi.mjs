// Compares the C header with what follows it: every function of toolfinch.h is called by native/node, has its entry in
// lib/native.ts and is told of in docs/c-abi.md. Fails with the list of what is missing, and of what is told of but gone.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file) => readFileSync(path.join(root, file), 'utf8');

/** Functions that the addon has no use for, and why. */
const notCalled = {
  finch_index_retain: 'handles are counted by shared_ptr in the addon',
  finch_snapshot_retain: 'handles are counted by shared_ptr in the addon',
  finch_bandit_retain: 'handles are counted by shared_ptr in the addon',
  finch_cancel_retain: 'handles are counted by shared_ptr in the addon',
  finch_tokenizer_retain: 'handles are counted by shared_ptr in the addon',
  finch_encoder_retain: 'handles are counted by shared_ptr in the addon',
  finch_reranker_retain: 'handles are counted by shared_ptr in the addon',
  finch_rerank:
    'JavaScript scores through finch_rerank_submit, which never blocks a thread of its own',
  finch_encode:
    'JavaScript encodes through finch_encode_submit, which never blocks a thread of its own',
};

/** Functions that are called but have no entry of their own name in lib/native.ts: the entries that stand for them. */
const entries = {
  finch_isa_reason: ['isa'],
  finch_status_name: [],
  finch_last_error: [],
  finch_pool_run: [],
  finch_index_release: ['indexClose'],
  finch_snapshot_release: ['snapshotClose'],
  finch_snapshot_rows: ['snapshotIds', 'snapshotVectors', 'snapshotPriors'],
  finch_allow_release: [],
  finch_bandit_release: ['banditClose'],
  finch_cancel_release: [],
  finch_tokenizer_release: [],
  finch_encoder_release: ['encoderClose'],
  finch_reranker_release: ['rerankerClose'],
  finch_reranker_provider_reason: ['rerankerProvider'],
  finch_rerank_submit: ['rerank'],
  finch_index_upsert: ['indexUpsert', 'indexUpsertSync'],
  finch_search: ['searchSync'],
  finch_search_submit: ['search'],
  finch_select: ['select', 'selectSync'],
  finch_encode_submit: ['encode'],
};

const withoutComments = (text) => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*/g, '');
const header = withoutComments(read('native/include/toolfinch.h'));
const functions = [...header.matchAll(/^FINCH_API\s[^;(]*?\b(finch_\w+)\s*\(/gm)].map(
  (match) => match[1],
);
const addon = readdirSync(path.join(root, 'native/node'))
  .filter((file) => /\.(cpp|hpp)$/.test(file))
  .map((file) => withoutComments(read(`native/node/${file}`)))
  .join('\n');
const face = read('lib/native.ts');
const docs = read('docs/c-abi.md');
const camel = (name) =>
  name.replace(/^finch_/, '').replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

const faults = [];
if (functions.length < 50)
  faults.push(`only ${functions.length} functions found in toolfinch.h: the header's form changed`);
for (const name of functions) {
  const called = new RegExp(`\\b${name}\\b`).test(addon);
  if (!called && !(name in notCalled)) faults.push(`${name}: not called in native/node`);
  if (called && name in notCalled)
    faults.push(`${name}: called in native/node, but listed as not called`);
  if (called) {
    for (const entry of entries[name] ?? [camel(name)]) {
      if (!new RegExp(`^  ${entry}\\(`, 'm').test(face))
        faults.push(`${name}: no entry ${entry}() in lib/native.ts`);
      if (!addon.includes(`{"${entry}",`))
        faults.push(`${name}: ${entry} is not exported by native/node`);
    }
  }
  if (!docs.includes(`| \`${name}\` |`)) faults.push(`${name}: not in docs/c-abi.md`);
}
const there = new Set(functions);
for (const name of [...docs.matchAll(/^\| `(finch_\w+)`/gm)].map((match) => match[1])) {
  if (!there.has(name)) faults.push(`${name}: in docs/c-abi.md but not in toolfinch.h`);
}
for (const name of [...Object.keys(notCalled), ...Object.keys(entries)]) {
  if (!there.has(name)) faults.push(`${name}: listed in check-abi.mjs but not in toolfinch.h`);
}
const exported = [...addon.matchAll(/\{"(\w+)", (?:a?sync)_entry</g)].map((match) => match[1]);
for (const name of exported) {
  if (name !== 'initialize' && !new RegExp(`^  ${name}\\(`, 'm').test(face))
    faults.push(`${name}: exported by native/node, missing in lib/native.ts`);
}
const declared = face.slice(face.indexOf('export interface Binding {')).split('\n}\n')[0] ?? '';
for (const [, name] of declared.matchAll(/^ {2}(\w+)\(/gm)) {
  if (!exported.includes(name))
    faults.push(`${name}: in lib/native.ts, not exported by native/node`);
}
const codes = [...header.matchAll(/^\s*(FINCH_[A-Z_]+) = (\d+),?\s*$/gm)]
  .filter(
    ([, name, value]) =>
      Number(value) >= 1 && !/^FINCH_(SEARCH|CUT|BANDIT|POOL|TRUNCATE|PROVIDER)_/.test(name),
  )
  .map(([, name]) => name);
const listed = [...read('lib/errors.ts').matchAll(/^ {2}'(FINCH_\w+)',$/gm)].map(
  (match) => match[1],
);
if (codes.join() !== listed.join())
  faults.push(
    `error codes differ: ${codes.join(' ')} in toolfinch.h, ${listed.join(' ')} in lib/errors.ts`,
  );

if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exitCode = 1;
} else {
  console.log(
    `${functions.length} functions of toolfinch.h, ${exported.length} exports of the addon, ${codes.length} error codes: all agree`,
  );
}
