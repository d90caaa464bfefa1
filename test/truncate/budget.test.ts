import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FinchError } from '../../lib/errors.js';
import { checkBudget, withinBudget } from '../../lib/truncate/budget.js';

const tool = fc.record({ id: fc.string(), tokens: fc.integer({ min: 0, max: 500 }) });

describe('withinBudget', () => {
  it('never exceeds either limit, keeps order and drops nothing silently', () => {
    fc.assert(
      fc.property(
        fc.array(tool),
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 2000 }),
        (ranked, maxTools, maxTokens) => {
          const { kept, overBudget } = withinBudget([], ranked, { maxTools, maxTokens });
          expect(kept.length).toBeLessThanOrEqual(maxTools);
          expect(kept.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(maxTokens);
          expect(kept).toEqual(ranked.filter((each) => kept.includes(each)));
          expect(kept.length + overBudget.length).toBe(ranked.length);
        },
      ),
    );
  });

  it('gives a smaller tool its chance when a larger one does not fit', () => {
    const ranked = [
      { id: 'huge', tokens: 900 },
      { id: 'small', tokens: 100 },
    ];
    const { kept, overBudget } = withinBudget([], ranked, { maxTokens: 500 });
    expect(kept.map(({ id }) => id)).toEqual(['small']);
    expect(overBudget.map(({ id }) => id)).toEqual(['huge']);
  });

  it('charges pinned tools first, and never drops them', () => {
    const pinned = [{ id: 'pinned', tokens: 450 }];
    const ranked = [{ id: 'a', tokens: 100 }];
    expect(withinBudget(pinned, ranked, { maxTokens: 500 }).kept).toEqual([]);
    expect(withinBudget(pinned, ranked, { maxTokens: 550 }).kept).toEqual(ranked);
    expect(withinBudget(pinned, ranked, { maxTools: 1 }).kept).toEqual([]);
  });

  it.each([
    { maxTools: 0 },
    { maxTools: 1.5 },
    { maxTools: Number.NaN },
    { maxTokens: 0 },
    { maxTokens: Number.NaN },
  ])('refuses %j', (budget) => {
    expect(() => checkBudget(budget)).toThrow(FinchError);
  });
});
