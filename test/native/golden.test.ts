// The golden vectors (test/golden), read as any other language would, through the addon.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type {
  CutSignal,
  NativeBanditOptions,
  NativeCutOptions,
} from '../../dist/esm/lib/native.js';
import { addon, failure, root } from './addon.js';

type Numbers = (number | string)[];
const floats = (values: Numbers) => Float32Array.from(values, Number);

async function golden<T>(name: string): Promise<T & { tolerance: number }> {
  return JSON.parse(await readFile(path.join(root, 'test/golden', `${name}.json`), 'utf8'));
}

function expectNear(got: number, wanted: number, tolerance: number, what: string): void {
  const bound = tolerance * Math.max(1, Math.abs(wanted));
  expect(Math.abs(got - wanted), `${what}: ${got} for ${wanted}`).toBeLessThanOrEqual(bound);
}

function expectAllNear(got: Float32Array, wanted: number[], tolerance: number, what: string): void {
  expect(got.length, what).toBe(wanted.length);
  got.forEach((value, i) => {
    expectNear(value, wanted[i] as number, tolerance, `${what}[${i}]`);
  });
}

interface CutCase {
  name: string;
  scores: Numbers;
  dimension: number;
  embeddings: Numbers;
  options?: { min_k?: number; max_k?: number; signals?: number; after?: number };
  expected: Record<
    'k' | 'k_score' | 'k_similarity' | 'signal' | 'gap_score' | 'gap_similarity',
    number
  >;
  similarities: number[];
}

const boundaries = ['before', 'after'] as const;
const names = [[], ['score'], ['similarity'], ['score', 'similarity']] as const;

function cutOptions({ options = {} }: Pick<CutCase, 'options'>): NativeCutOptions {
  const { min_k, max_k, signals, after } = options;
  return {
    ...(min_k === undefined ? {} : { minK: min_k }),
    ...(max_k === undefined ? {} : { maxK: max_k }),
    ...(signals === undefined
      ? {}
      : { signals: names[signals] ?? (['unknown'] as unknown as CutSignal[]) }),
    ...(after === undefined ? {} : { boundary: boundaries[after] ?? ('beyond' as 'after') }),
  };
}

describe('golden vectors', () => {
  it('cosine and search', async () => {
    const { cosine, search, errors, tolerance } = await golden<{
      cosine: { name: string; a: Numbers; b: Numbers; expected: number }[];
      search: {
        name: string;
        dimension: number;
        rows: Numbers;
        query: Numbers;
        k: number;
        expected: { rows: number[]; scores: number[] };
      }[];
      errors: { name: string; a: Numbers; b: Numbers; code: string }[];
    }>('cosine');
    for (const { name, a, b, expected } of cosine) {
      const [got] = addon.cosine(floats(a), floats(b), a.length);
      expectNear(got as number, expected, tolerance, name);
    }
    for (const { name, a, b, code } of errors) {
      expect((await failure(() => addon.cosine(floats(a), floats(b), a.length))).code, name).toBe(
        code,
      );
    }
    for (const { name, dimension, rows, query, k, expected } of search) {
      const index = addon.indexCreate(dimension);
      const vectors = floats(rows);
      const ids = Array.from({ length: vectors.length / dimension }, (_, i) => `row ${i}`);
      const keys = addon.indexUpsertSync(index, ids, vectors);
      const snapshot = addon.indexSnapshot(index);
      const found = addon.searchSync(snapshot, floats(query), { k, mode: 'exact' });
      const count = found.counts[0] as number;
      const wanted = expected.rows.map((row) => keys[row]);
      expect([...found.keys.subarray(0, count)], name).toEqual(wanted);
      expectAllNear(found.scores.subarray(0, count), expected.scores, tolerance, name);
      addon.snapshotClose(snapshot);
      addon.indexClose(index);
    }
  });

  it('truncate, one by one and as a batch', async () => {
    const { cases, batch, errors, tolerance } = await golden<{
      cases: CutCase[];
      batch: { lists: CutCase[] };
      errors: (Omit<CutCase, 'expected'> & { code: string })[];
    }>('truncate');
    const check = (cut: ReturnType<typeof addon.truncate>['cut'], { name, expected }: CutCase) => {
      expect([cut.k, cut.kScore, cut.kSimilarity], name).toEqual([
        expected.k,
        expected.k_score,
        expected.k_similarity,
      ]);
      expect(cut.signals, name).toEqual(names[expected.signal]);
      expectNear(cut.gapScore, expected.gap_score, tolerance, name);
      expectNear(cut.gapSimilarity, expected.gap_similarity, tolerance, name);
    };
    for (const each of cases) {
      const options = cutOptions(each);
      const embeddings =
        each.embeddings.length === 0 && each.scores.length > 0 ? null : floats(each.embeddings);
      const { cut, similarities } = addon.truncate(floats(each.scores), embeddings, options);
      check(cut, each);
      if (embeddings !== null) expectAllNear(similarities, each.similarities, tolerance, each.name);
    }
    const offsets = [0];
    for (const { scores } of batch.lists) offsets.push((offsets.at(-1) as number) + scores.length);
    const all = addon.truncateBatch(
      floats(batch.lists.flatMap(({ scores }) => scores)),
      floats(batch.lists.flatMap(({ embeddings }) => embeddings)),
      Float64Array.from(offsets),
    );
    batch.lists.forEach((each, i) => {
      check(all[i] as (typeof all)[number], each);
    });
    for (const each of errors) {
      const error = await failure(() =>
        addon.truncate(floats(each.scores), floats(each.embeddings), cutOptions(each)),
      );
      expect(error.code, each.name).toBe(each.code);
    }
  });

  it('bandit, in every form', async () => {
    interface Step {
      do: 'update' | 'drop' | 'score';
      id: string;
      ids: string[];
      priors: Numbers;
      prior: number;
      x: Numbers;
      y: number;
      explore: number;
      expected: {
        mean: number;
        bonus: number;
        evidence: number;
        updates: number;
        last_outcome: number | null;
      }[];
    }
    const { cases, tolerance } = await golden<{
      cases: { name: string; options: NativeBanditOptions; steps: Step[] }[];
    }>('bandit');
    let scored = 0;
    for (const { name, options, steps } of cases) {
      const bandit = addon.banditCreate(options);
      for (const step of steps) {
        if (step.do === 'update') {
          addon.banditUpdate(
            bandit,
            [step.id],
            floats(step.x),
            Float32Array.of(step.prior),
            Float32Array.of(step.y),
            Float64Array.of(0),
          );
        } else if (step.do === 'drop') {
          addon.banditDrop(bandit, step.ids);
        } else {
          const got = addon.banditScore(
            bandit,
            step.ids,
            floats(step.priors),
            floats(step.x),
            0,
            step.explore === 1,
          );
          step.expected.forEach(({ mean, bonus, evidence, updates, last_outcome }, i) => {
            scored += 1;
            expectNear(got.mean[i] as number, mean, tolerance, `${name} mean`);
            expectNear(got.bonus[i] as number, bonus, tolerance, `${name} bonus`);
            expectNear(got.evidence[i] as number, evidence, tolerance, `${name} evidence`);
            expect(got.updates[i], name).toBe(updates);
            const last = got.lastOutcome[i] as number;
            if (last_outcome === null) expect(last, name).toBeNaN();
            else expectNear(last, last_outcome, tolerance, name);
          });
        }
      }
      addon.banditClose(bandit);
    }
    expect(scored).toBeGreaterThan(100);
  });

  it('availability over time', async () => {
    const { cases, tolerance } = await golden<{
      cases: {
        name: string;
        options: { gamma: number; half_life: number; half_life_max: number };
        steps: { now: number; y?: number; expected?: number }[];
      }[];
    }>('availability');
    for (const { name, options, steps } of cases) {
      const bandit = addon.banditCreate({
        dimension: 1,
        availabilityGamma: options.gamma,
        availabilityHalfLife: options.half_life,
        availabilityHalfLifeMax: options.half_life_max,
        freeTrials: true,
      });
      const one = Float32Array.of(1);
      for (const { now, y, expected } of steps) {
        if (y !== undefined)
          addon.banditUpdate(bandit, ['a'], one, one, Float32Array.of(y), Float64Array.of(now));
        if (expected !== undefined) {
          const { availability } = addon.banditScore(bandit, ['a'], one, one, now, false);
          expectNear(availability[0] as number, expected, tolerance, name);
        }
      }
      addon.banditClose(bandit);
    }
  });

  it('fusion', async () => {
    interface Weights {
      semantic?: number;
      bandit?: number;
      prior?: number;
      outage?: number;
      clamp?: number;
    }
    interface Case {
      name: string;
      weights?: Weights;
      semantic: Numbers;
      p?: Numbers;
      prior?: Numbers;
      availability?: Numbers;
    }
    const { cases, errors, tolerance } = await golden<{
      cases: (Case & { expected: number[] })[];
      errors: (Case & { code: string })[];
    }>('fuse');
    // In the C ABI three zeros mean the defaults; in JavaScript one leaves the weights out or gives them all.
    const fullWeights = ({
      semantic = 0,
      bandit = 0,
      prior = 0,
      outage = 0,
      clamp = 0,
    }: Weights) => ({
      ...(semantic === 0 && bandit === 0 && prior === 0
        ? { semantic: 0.75, bandit: 0.15, prior: 0.1 }
        : { semantic, bandit, prior }),
      outage,
      clamp: clamp === 1,
    });
    const fuse = ({ weights, semantic, p, prior, availability }: Case) => {
      const column = (values: Numbers | undefined) =>
        values === undefined ? null : floats(values);
      const given = weights === undefined ? null : fullWeights(weights);
      return addon.fuse(floats(semantic), column(p), column(prior), column(availability), given);
    };
    for (const each of cases) expectAllNear(fuse(each), each.expected, tolerance, each.name);
    // A clamp other than 0 and 1 cannot be said in JavaScript.
    for (const each of errors.filter(({ weights }) => (weights?.clamp ?? 0) <= 1))
      expect((await failure(() => fuse(each))).code, each.name).toBe(each.code);
  });
});
