// What holds for every function of the addon, however it is called.
import { describe, expect, test } from 'vitest';

import { addon, failure, fill, loose } from '../addon.js';
import { dimension, index, snapshot, vector } from './fixture.js';

describe('any call', () => {
  test('functions that return a promise reject and never throw', async () => {
    const calls = [
      'indexOpen',
      'indexUpsert',
      'indexSetPriors',
      'indexRemove',
      'indexBuildAnn',
      'indexSave',
      'search',
      'select',
      'encoderOpen',
      'encode',
    ] as const;
    for (const name of calls) {
      const promise = loose[name]();
      expect(promise).toBeInstanceOf(Promise);
      expect((await failure(() => promise)).code).toBe('FINCH_INVALID_ARGUMENT');
    }
  });

  test('every function refuses having no arguments at all', async () => {
    const none = new Set([
      'abiVersion',
      'version',
      'isa',
      'poolThreads',
      'cancelCreate',
      'sharedCount',
      'cutRuleCreate',
    ]);
    for (const [name, call] of Object.entries(loose)) {
      // It takes none either, but ends encoding in this process: test/native/exit.test.ts runs it.
      if (name === 'shutdown') continue;
      if (none.has(name)) expect(call()).toBeDefined();
      else expect((await failure(() => call())).code).toBe('FINCH_INVALID_ARGUMENT');
    }
  });

  test('an exception in a getter passes through unchanged', async () => {
    const thrown = new RangeError('from the getter');
    const options = {
      get k(): number {
        throw thrown;
      },
    };
    expect(() => addon.searchSync(snapshot, vector, options)).toThrow(thrown);
    await expect(addon.search(snapshot, vector, options)).rejects.toBe(thrown);
  });

  test('a getter that closes the handle or detaches the vectors meanwhile does no harm', async () => {
    const own = fill(8, dimension);
    const query = new Float32Array([1, 1, 1, 1]);
    const options = {
      get k(): number {
        addon.snapshotClose(own.snapshot);
        structuredClone(query, { transfer: [query.buffer] });
        return 2;
      },
    };
    const error = await failure(() => addon.searchSync(own.snapshot, query, options));
    expect(error.message).toMatch(/detached/);
    const again = {
      get k(): number {
        addon.snapshotClose(other);
        return 2;
      },
    };
    const other = addon.indexSnapshot(own.index);
    expect(addon.searchSync(other, vector, again).counts[0]).toBe(2);
    expect((await failure(() => addon.snapshotCount(other))).code).toBe('FINCH_CLOSED');
  });

  test('errors carry the stack of their caller, also from promises', async () => {
    async function unmistakableCaller(): Promise<void> {
      await addon.indexRemove(index, ['nobody']);
    }
    const error = await failure(unmistakableCaller);
    expect(error.stack).toMatch(/^FinchError: .*nobody/);
    expect(error.stack).toMatch(/unmistakableCaller/);
  });
});
