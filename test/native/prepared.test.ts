// The hot path with what is prepared once: the same bits as the calls that take plain values.
import { MessageChannel } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';

import type { NativeArmScores } from '../../dist/esm/lib/native.js';
import { addon, failure, loose, randomNumbers } from './addon.js';

const dimension = 33;
const names = Array.from({ length: 300 }, (_, i) => `tool ${i}`);

function catalogue() {
  const index = addon.indexCreate(dimension);
  const priors = Float32Array.from(names, (_, i) => (i % 11) / 10);
  addon.indexUpsertSync(index, names, randomNumbers(names.length * dimension, 1), priors);
  const bandit = addon.banditCreate({ dimension });
  for (let i = 0; i < 200; i++) {
    addon.banditUpdate(
      bandit,
      [names[(i * 7) % 90] as string],
      randomNumbers(dimension, 50 + i),
      new Float32Array([0.5]),
      new Float32Array([i % 3 === 0 ? 0 : 1]),
      new Float64Array([i * 1000]),
    );
  }
  return { index, bandit, snapshot: addon.indexSnapshot(index) };
}

const columns = ['mean', 'bonus', 'availability', 'lastOutcome', 'evidence', 'updates'] as const;

function expectScores(got: NativeArmScores, wanted: NativeArmScores, count: number) {
  for (const column of columns) {
    expect([...got[column].subarray(0, count)], column).toEqual([...wanted[column]]);
  }
}

describe('banditScoreInto', () => {
  test('the bits of banditScore, call after call', () => {
    const { bandit } = catalogue();
    const out = addon.armScoresCreate(40);
    for (const count of [0, 1, 2, 17, 40]) {
      const ids = names.slice(60, 60 + count);
      const priors = Float32Array.from(ids, (_, i) => (i % 5) / 4);
      const list = addon.idListCreate(ids, priors);
      for (let seed = 1; seed < 4; seed++) {
        const x = randomNumbers(dimension, seed);
        const explore = seed % 2 === 0;
        expect(addon.banditScoreInto(bandit, list, x, 3e5, explore, out.handle)).toBe(count);
        expectScores(out, addon.banditScore(bandit, ids, priors, x, 3e5, explore), count);
      }
    }
  });

  test('without priors a half is taken', () => {
    const { bandit } = catalogue();
    const out = addon.armScoresCreate(1);
    const x = randomNumbers(dimension, 1);
    addon.banditScoreInto(bandit, addon.idListCreate(['unknown']), x, 0, false, out.handle);
    expect(out.mean[0]).toBe(0.5);
  });

  test('too little room, a wrong dimension, closed and detached are errors', async () => {
    const { bandit, snapshot } = catalogue();
    const list = addon.idListCreate(['a', 'b']);
    const x = randomNumbers(dimension, 1);
    const score = (...change: unknown[]) => {
      const given = [bandit, list, x, 0, false, addon.armScoresCreate(2).handle];
      for (let i = 0; i < change.length; i += 2)
        given[change[i] as number] = change[i + 1] as never;
      return failure(() => loose.banditScoreInto(...given));
    };
    expect((await score(5, addon.armScoresCreate(1).handle)).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await score(5, addon.rankingCreate(2).handle)).message).toContain('armScoresCreate');
    expect((await score(5, addon.armScoresCreate(2))).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await score(2, new Float32Array(5))).code).toBe('FINCH_DIMENSION');
    expect((await score(2, new Float32Array(dimension))).code).toBe('FINCH_ZERO_VECTOR');
    expect((await score(1, snapshot)).message).toContain('id list');
    expect((await score(3, Number.NaN)).code).toBe('FINCH_NOT_FINITE');
    const detached = addon.armScoresCreate(2);
    const { port1 } = new MessageChannel();
    port1.postMessage(detached.mean.buffer, [detached.mean.buffer as ArrayBuffer]);
    port1.close();
    expect((await score(5, detached.handle)).message).toContain('detached');
    addon.banditClose(bandit);
    expect((await score()).code).toBe('FINCH_CLOSED');
    expect((await failure(() => loose.idListCreate('abc'))).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await failure(() => loose.armScoresCreate(0))).code).toBe('FINCH_INVALID_ARGUMENT');
  });
});

describe('banditScoreBatch', () => {
  test('each list as banditScore has it', async () => {
    const { bandit } = catalogue();
    const lengths = [3, 0, 20, 1];
    const offsets = new Float64Array(lengths.length + 1);
    lengths.forEach((length, i) => {
      offsets[i + 1] = (offsets[i] as number) + length;
    });
    const ids = names.slice(70, 94);
    const priors = new Float32Array(ids.length).fill(0.25);
    const contexts = randomNumbers(lengths.length * dimension, 9);
    const all = addon.banditScoreBatch(bandit, ids, priors, offsets, contexts, 4e5, true);
    lengths.forEach((length, j) => {
      const from = offsets[j] as number;
      const x = contexts.subarray(j * dimension, (j + 1) * dimension);
      const alone = addon.banditScore(
        bandit,
        ids.slice(from, from + length),
        priors.subarray(from, from + length),
        x,
        4e5,
        true,
      );
      for (const column of columns) {
        expect([...all[column].subarray(from, from + length)]).toEqual([...alone[column]]);
      }
    });
    const bad = (given: Float64Array, xs = contexts) =>
      failure(() => addon.banditScoreBatch(bandit, ids, priors, given, xs, 0, false));
    expect((await bad(new Float64Array([1, 24]))).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await bad(new Float64Array([0, 23]))).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await bad(new Float64Array([0, 20, 10, 20, 24]))).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await bad(offsets, contexts.subarray(1))).code).toBe('FINCH_DIMENSION');
  });
});

describe('truncateInto', () => {
  test('the numbers of truncate', async () => {
    const cut = new Float64Array(7);
    for (const options of [
      {},
      { signals: ['score'] as const },
      { minK: 4, boundary: 'after' as const },
    ]) {
      const rule = addon.cutRuleCreate(options);
      for (const count of [0, 1, 2, 3, 50, 200]) {
        const scores = randomNumbers(count, count + 1)
          .sort()
          .reverse();
        const embeddings = randomNumbers(count * dimension, count + 2);
        const { cut: wanted } = addon.truncate(scores, embeddings, options);
        expect(addon.truncateInto(scores, embeddings, rule, cut)).toBe(wanted.k);
        const signal =
          (wanted.signals.includes('score') ? 1 : 0) +
          (wanted.signals.includes('similarity') ? 2 : 0);
        expect([...cut]).toEqual([
          wanted.k,
          wanted.kScore,
          wanted.kSimilarity,
          signal,
          wanted.gapScore,
          wanted.gapSimilarity,
          wanted.n,
        ]);
      }
    }
    const rule = addon.cutRuleCreate();
    const bad = (...given: unknown[]) => failure(() => loose.truncateInto(...given));
    const scores = new Float32Array([2, 1]);
    expect((await bad(scores, null, rule, cut)).code).toBe('FINCH_INVALID_ARGUMENT');
    expect((await bad(scores, new Float32Array(3), rule, cut)).code).toBe('FINCH_DIMENSION');
    expect((await bad(scores, new Float32Array(4), rule, cut)).code).toBe('FINCH_ZERO_VECTOR');
    expect((await bad(scores, null, rule, new Float64Array(6))).code).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
    expect((await bad(scores, null, {}, cut)).code).toBe('FINCH_INVALID_ARGUMENT');
  });
});

describe('selectInto and rankInto', () => {
  test('the bits of selectSync and rank', () => {
    const { bandit, snapshot } = catalogue();
    const weights = { semantic: 0.6, bandit: 0.3, prior: 0.1, outage: 0.5, clamp: true };
    for (const k of [1, 2, 10, 64, 65, 300]) {
      const search = { k };
      const options = { now: 0, explore: true, weights, minAvailability: 0.5, cut: { minK: 2 } };
      const rule = addon.selectRuleCreate(search, options);
      const out = addon.rankingCreate(k);
      for (const handle of [bandit, null]) {
        const query = randomNumbers(dimension, k);
        const wanted = addon.selectSync(snapshot, handle, query, search, {
          ...options,
          now: 2.5e5,
        });
        const check = (count: number) => {
          expect(count).toBe(wanted.ids.length);
          expectScores(out, wanted, count);
          for (const column of ['keys', 'semantic', 'prior', 'score', 'semanticRank'] as const) {
            expect([...out[column].subarray(0, count)], column).toEqual([...wanted[column]]);
          }
          expect([...out.similarities.subarray(0, wanted.similarities.length)]).toEqual([
            ...wanted.similarities,
          ]);
          expect([out.cut[0], out.cut[6]]).toEqual([wanted.cut.k, wanted.cut.n]);
          expect(addon.snapshotIds(snapshot, out.keys.subarray(0, count))).toEqual(wanted.ids);
        };
        check(addon.selectInto(snapshot, handle, query, rule, 2.5e5, out.handle));
        out.mean.fill(-1);
        out.keys.fill(-1);
        const { keys, semantic } = wanted;
        check(addon.rankInto(snapshot, handle, keys, semantic, query, rule, 2.5e5, out.handle));
      }
    }
  });

  test('bad arguments are errors', async () => {
    const { bandit, snapshot } = catalogue();
    const rule = addon.selectRuleCreate({ k: 3 }, { now: 0 });
    const out = addon.rankingCreate(3).handle;
    const query = randomNumbers(dimension, 1);
    const select = (...given: unknown[]) => failure(() => loose.selectInto(...given));
    expect((await select(snapshot, bandit, query, rule, Number.NaN, out)).code).toBe(
      'FINCH_NOT_FINITE',
    );
    expect((await select(snapshot, bandit, query.subarray(1), rule, 0, out)).code).toBe(
      'FINCH_DIMENSION',
    );
    const small = addon.rankingCreate(2).handle;
    expect((await select(snapshot, bandit, query, rule, 0, small)).message).toContain('capacity');
    const scores = addon.armScoresCreate(3).handle;
    expect((await select(snapshot, bandit, query, rule, 0, scores)).message).toContain(
      'rankingCreate',
    );
    expect((await select(snapshot, bandit, query, {}, 0, out)).message).toContain('select rule');
    const other = addon.banditCreate({ dimension: 2 });
    expect((await select(snapshot, other, query, rule, 0, out)).code).toBe('FINCH_DIMENSION');
    const rank = (keys: number[]) =>
      failure(() =>
        addon.rankInto(
          snapshot,
          null,
          Float64Array.from(keys),
          new Float32Array(keys.length),
          query,
          rule,
          0,
          out,
        ),
      );
    expect((await rank([1, 1])).code).toBe('FINCH_DUPLICATE_ID');
    expect((await rank([1, 9999])).code).toBe('FINCH_UNKNOWN_ID');
    for (const key of [0.5, -1, 2 ** 53, Number.NaN]) {
      expect((await rank([key])).code).toBe('FINCH_INVALID_ARGUMENT');
    }
    addon.snapshotClose(snapshot);
    expect((await select(snapshot, null, query, rule, 0, out)).code).toBe('FINCH_CLOSED');
    expect((await failure(() => loose.selectRuleCreate({}, { now: 0 }))).code).toBe(
      'FINCH_INVALID_ARGUMENT',
    );
  });
});
