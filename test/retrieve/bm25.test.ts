import MiniSearch from 'minisearch';
import { describe, expect, it } from 'vitest';
import { Bm25, type FieldTerms } from '../../lib/retrieve/bm25.js';

/** Numbers from 0 up to and without 1, the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const vocabulary = Array.from({ length: 60 }, (_, i) => `w${i}`);

function terms(text: string): FieldTerms {
  const words = text.split(' ').filter((word) => word !== '');
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { counts, length: new Set(words).size };
}

/** The same documents in both; MiniSearch is the reference. */
class Both {
  readonly texts = new Map<string, [string, string]>();
  readonly bm25 = new Bm25([2, 1]);
  readonly reference = new MiniSearch<{ id: string; a: string; b: string }>({
    fields: ['a', 'b'],
    tokenize: (text) => text.split(' ').filter((word) => word !== ''),
    processTerm: (word) => word,
  });

  add(id: string, a: string, b: string): void {
    this.texts.set(id, [a, b]);
    this.bm25.add(id, [terms(a), terms(b)]);
    this.reference.add({ id, a, b });
  }

  remove(id: string): void {
    const [a, b] = this.texts.get(id) as [string, string];
    this.texts.delete(id);
    this.bm25.remove(id, [terms(a), terms(b)]);
    this.reference.remove({ id, a, b });
  }

  expectAgreement(words: readonly string[]): void {
    const scores = this.bm25.score(words);
    const hits = scores.best(Number.POSITIVE_INFINITY);
    const wanted = this.reference.search(words.join(' '), { boost: { a: 2 } });
    expect(new Set(hits.map(({ id }) => id))).toEqual(new Set(wanted.map(({ id }) => id)));
    for (const { id, score } of wanted) {
      expect(Math.abs(scores.of(id) - score)).toBeLessThan(1e-9 * score);
    }
  }
}

describe('Bm25', () => {
  it('scores as MiniSearch does, through any history of documents', () => {
    const next = random(11);
    const text = (most: number) =>
      Array.from(
        { length: Math.floor(next() * most) },
        () => vocabulary[Math.floor(next() ** 2 * vocabulary.length)] as string,
      ).join(' ');
    const both = new Both();
    let made = 0;
    for (let step = 0; step < 4000; step++) {
      const ids = [...both.texts.keys()];
      // Grows, shrinks to little and grows again: numbers are closed up on the way.
      const grows = step < 1500 || step > 3000;
      if (ids.length === 0 || next() < (grows ? 0.8 : 0.15)) {
        both.add(`d${made++}`, text(4), text(12));
      } else {
        both.remove(ids[Math.floor(next() * ids.length)] as string);
      }
      if (step % 97 === 0) both.expectAgreement(text(6).split(' '));
    }
    expect(made).toBeGreaterThan(1024);
    both.expectAgreement(vocabulary);
    both.expectAgreement(['w1', 'w1', 'w3']);
    both.expectAgreement(['never there']);
  });

  it('gives the best first, ties in order of insertion, any depth a beginning of the whole', () => {
    const next = random(5);
    const bm25 = new Bm25([1]);
    for (let i = 0; i < 300; i++) {
      bm25.add(`d${i}`, [terms(`w0 ${vocabulary[Math.floor(next() * 4)]}`)]);
    }
    const scores = bm25.score(['w0', 'w1', 'w2']);
    const all = scores.best(Number.POSITIVE_INFINITY);
    expect(all).toHaveLength(300);
    const place = ({ id }: { id: string }) => Number(id.slice(1));
    expect(all).toEqual([...all].sort((x, y) => y.score - x.score || place(x) - place(y)));
    for (const depth of [0, 1, 7, 64, 299, 300]) {
      expect(scores.best(depth)).toEqual(all.slice(0, depth));
    }
    const even = (id: string) => Number(id.slice(1)) % 2 === 0;
    expect(scores.best(20, even)).toEqual(all.filter(({ id }) => even(id)).slice(0, 20));
  });

  it('tells that its scores are of before a change', () => {
    const bm25 = new Bm25([1]);
    bm25.add('a', [terms('w1')]);
    const scores = bm25.score(['w1']);
    expect(scores.current).toBe(true);
    expect(scores.of('b')).toBe(0);
    bm25.add('b', [terms('w1')]);
    expect(scores.current).toBe(false);
  });
});
