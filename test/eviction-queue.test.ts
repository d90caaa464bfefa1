import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EvictionQueue, type Place } from '../lib/eviction-queue.js';

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('push'), at: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('shift'), at: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('touch'), at: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove'), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear'), at: fc.nat() }) },
);

it('keeps the order that an array keeps', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9)), fc.array(step, { size: 'large' }), (first, steps) => {
      const queue = new EvictionQueue<number>(first);
      // Keys of the constructor have no place to touch them by: they are taken out first.
      const model: Array<{ key: number; place?: Place<number> }> = first.map((key) => ({ key }));
      let next = 100;
      for (const { kind, at } of steps) {
        const held = model.filter(({ place }) => place !== undefined);
        const chosen = held[at % Math.max(1, held.length)];
        if (kind === 'push') {
          model.push({ key: next, place: queue.push(next) });
          next++;
        } else if (kind === 'shift') {
          expect(queue.shift()).toBe(model.shift()?.key);
        } else if (kind === 'clear') {
          if (at % 4 === 0) model.length = 0;
          if (at % 4 === 0) queue.clear();
        } else if (chosen?.place !== undefined) {
          model.splice(model.indexOf(chosen), 1);
          if (kind === 'touch') {
            queue.touch(chosen.place);
            model.push(chosen);
          } else {
            queue.remove(chosen.place);
          }
        }
        expect(queue.size).toBe(model.length);
        expect(queue.oldest).toBe(model[0]?.key);
      }
      for (const { key } of model) expect(queue.shift()).toBe(key);
      expect([queue.shift(), queue.oldest, queue.size]).toEqual([undefined, undefined, 0]);
    }),
  );
});

it('looks at the key it evicts and its neighbours alone', () => {
  // Places that count how often they are looked at: the work of a step, whatever the machine's speed.
  let looks = 0;
  const counted = (place: Place<number>): void => {
    for (const name of ['older', 'newer'] as const) {
      let value = place[name];
      Object.defineProperty(place, name, {
        get: () => {
          looks++;
          return value;
        },
        set: (to: Place<number> | undefined) => {
          value = to;
        },
      });
    }
  };
  const most: number[] = [];
  for (const size of [10, 10_000]) {
    const queue = new EvictionQueue<number>();
    const places: Array<Place<number>> = [];
    const add = (key: number) => {
      const place = queue.push(key);
      counted(place);
      places.push(place);
    };
    for (let key = 0; key < size; key++) add(key);
    let worst = 0;
    const measure = (work: () => void) => {
      looks = 0;
      work();
      worst = Math.max(worst, looks);
    };
    for (let key = size; key < size * 3; key++) {
      measure(() => add(key));
      measure(() => queue.touch(places[key - 1] as Place<number>));
      measure(() => queue.shift());
    }
    expect(queue.size).toBe(size);
    most.push(worst);
  }
  expect(most[1]).toBe(most[0]);
});
