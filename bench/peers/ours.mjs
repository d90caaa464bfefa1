// Toolfinch, called as directly as JavaScript can: the addon's own functions.
import { k } from '../catalogue.mjs';

export const storages = ['f32', 'bf16', 'f16', 'i8'];

/** An index of that storage with a snapshot of it, or undefined where this build has no such storage. */
export function makeIndex(addon, { matrix, count, dimension }, storage) {
  const index = addon.indexCreate(dimension, { storage });
  const has = addon.indexInspect(index).storage ?? 'f32';
  if (has !== storage) {
    addon.indexClose(index);
    return undefined;
  }
  const ids = Array.from({ length: count }, (_, i) => `tool ${i}`);
  const keys = addon.indexUpsertSync(index, ids, matrix);
  const snapshot = addon.indexSnapshot(index);
  return {
    index,
    snapshot,
    ids,
    firstKey: keys[0],
    close() {
      addon.snapshotClose(snapshot);
      addon.indexClose(index);
    },
  };
}

/** Contestant for one batch of an exact search. */
export function exactContestant(addon, made, storage, catalogue, batch, threads) {
  const queries = catalogue.queries.subarray(0, batch * catalogue.dimension);
  const options = { k, mode: 'exact', threads };
  return {
    name: `toolfinch ${storage}`,
    storage,
    ours: true,
    queries: batch,
    settleMs: threads > 1 ? 2 : 0,
    run: () => addon.searchSync(made.snapshot, queries, options),
    found: () => rowsOf(addon.searchSync(made.snapshot, queries, options), made.firstKey),
  };
}

/** Keys count up from the first row's. */
export function rowsOf({ keys, scores }, firstKey) {
  return { rows: Array.from(keys, (key) => key - firstKey), scores };
}
