import { describe, expect, it } from 'vitest';
import { stateText, type TaskState } from '../../lib/select/task-state.js';

describe('stateText', () => {
  it('holds instruction, recent actions and observation, in this order', () => {
    const text = stateText({
      instruction: 'plan the trip',
      actions: ['one', 'two', 'three', 'four'],
      observation: 'hotel   booked\n',
    });
    expect(text).toBe('plan the trip\nDone: two; three; four.\nNow: hotel booked');
  });

  it('is the instruction alone when nothing has happened', () => {
    expect(stateText({ instruction: ' plan  it ' })).toBe('plan it');
  });

  it('changes with the state, so that later steps find other tools', () => {
    const instruction = 'plan the trip';
    expect(stateText({ instruction, observation: 'a' })).not.toBe(
      stateText({ instruction, observation: 'b' }),
    );
  });

  it('never lets a long log push out the instruction', () => {
    const text = stateText({
      instruction: 'find the invoice',
      actions: Array.from({ length: 1000 }, (_, i) => `action ${i} ${'x'.repeat(1000)}`),
      observation: 'y'.repeat(100_000),
    });
    expect(text.startsWith('find the invoice\n')).toBe(true);
    expect(text.length).toBeLessThan(1200);
  });

  it.each([
    {},
    { instruction: '' },
    { instruction: 7 },
    { instruction: 'x', actions: 'y' },
    { instruction: 'x', actions: [1] },
    { instruction: 'x', observation: {} },
  ])('refuses %j', (state) => {
    expect(() => stateText(state as unknown as TaskState)).toThrow(/FinchError|task state's/);
  });
});
