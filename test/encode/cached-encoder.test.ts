import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CachedEncoder } from '../../lib/encode/cached-encoder.js';
import { VectorCache, vectorKey } from '../../lib/encode/vector-cache.js';
import { expectCode } from './expect-code.js';
import { FakeEncoder, failure, vectorOf } from './fake-encoder.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a cached encoder', () => {
  it('encodes each text once, whatever the order and repetition', async () => {
    const inner = new FakeEncoder();
    const encoder = new CachedEncoder(inner);
    const first = await encoder.encode(['a', 'b', 'a', 'c']);
    const second = await encoder.encode(['c', 'd', 'a']);
    expect(inner.calls).toEqual([['a', 'b', 'c'], ['d']]);
    for (const [i, text] of ['a', 'b', 'a', 'c'].entries()) {
      expect(first.subarray(i * 8, i * 8 + 8)).toEqual(vectorOf(text, 8));
    }
    for (const [i, text] of ['c', 'd', 'a'].entries()) {
      expect(second.subarray(i * 8, i * 8 + 8)).toEqual(vectorOf(text, 8));
    }
    expect(encoder.statistics).toMatchObject({ hits: 2, misses: 4, joined: 1, entries: 4 });
    expect(await encoder.encode([])).toEqual(new Float32Array(0));
  });

  it('keeps queries and tools apart, and models in a shared cache', async () => {
    const cache = new VectorCache();
    const inner = new FakeEncoder();
    const encoder = new CachedEncoder(inner, { cache });
    const query = await encoder.encode(['a'], { kind: 'query' });
    const tool = await encoder.encode(['a'], { kind: 'tool' });
    expect(query).toEqual(vectorOf('a', 8, 'query'));
    expect(tool).toEqual(vectorOf('a', 8, 'tool'));
    const other = new CachedEncoder(new FakeEncoder(16), { cache });
    expect(await other.encode(['a'])).toEqual(vectorOf('a', 16));
    const again = new CachedEncoder(new FakeEncoder(), { cache });
    await again.encode(['a']);
    expect(again.statistics).toMatchObject({ hits: 1, misses: 0 });
  });

  it('shares one encoding among those who ask at the same time', async () => {
    const inner = new FakeEncoder();
    inner.held = true;
    const encoder = new CachedEncoder(inner);
    const results = Array.from({ length: 50 }, (_, i) => encoder.encode(['shared', `own-${i}`]));
    await turn();
    inner.release();
    for (const [i, rows] of (await Promise.all(results)).entries()) {
      expect(rows.subarray(0, 8)).toEqual(vectorOf('shared', 8));
      expect(rows.subarray(8)).toEqual(vectorOf(`own-${i}`, 8));
    }
    expect(inner.calls.flat().filter((text) => text === 'shared')).toHaveLength(1);
    expect(inner.calls.flat()).toHaveLength(51);
  });

  it('never hands out what it keeps, nor keeps what it was handed', async () => {
    const encoder = new CachedEncoder(new FakeEncoder());
    const first = await encoder.encode(['a', 'a']);
    first.fill(7);
    const second = await encoder.encode(['a']);
    expect(second).toEqual(vectorOf('a', 8));
    second.fill(9);
    expect(await encoder.encode(['a'])).toEqual(vectorOf('a', 8));
    const texts = ['x'];
    const pending = encoder.encode(texts);
    texts[0] = 'y';
    expect(await pending).toEqual(vectorOf('x', 8));
  });

  it('lets one waiter abort without the others noticing', async () => {
    const inner = new FakeEncoder();
    inner.held = true;
    const encoder = new CachedEncoder(inner);
    const owner = new AbortController();
    const joiner = new AbortController();
    const results = [
      encoder.encode(['a'], { signal: owner.signal }),
      encoder.encode(['a'], { signal: joiner.signal }),
      encoder.encode(['a']),
    ];
    const settled = Promise.allSettled(results);
    await turn();
    const reason = new Error('no longer needed');
    owner.abort(reason);
    joiner.abort();
    const error = await expectCode(results[0] as Promise<Float32Array>, 'FINCH_ABORTED');
    expect(error.cause).toBe(reason);
    expect(inner.aborts).toBe(0);
    inner.release();
    expect((await settled).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
    ]);
    expect(await results[2]).toEqual(vectorOf('a', 8));
  });

  it('stops an encoding that nobody waits for any more, and does not join it again', async () => {
    const inner = new FakeEncoder();
    inner.held = true;
    const encoder = new CachedEncoder(inner);
    const controllers = [new AbortController(), new AbortController()];
    const results = controllers.map(({ signal }) => encoder.encode(['a'], { signal }));
    const settled = Promise.allSettled(results);
    await turn();
    for (const controller of controllers) controller.abort();
    const later = encoder.encode(['a']);
    await settled;
    expect(inner.aborts).toBe(1);
    await turn();
    inner.release();
    expect(await later).toEqual(vectorOf('a', 8));
    expect(inner.calls).toEqual([['a'], ['a']]);
  });

  it('does not remember failures', async () => {
    const inner = new FakeEncoder();
    const encoder = new CachedEncoder(inner);
    inner.fault = () => failure;
    await expectCode(encoder.encode(['a']), 'FINCH_IO');
    inner.fault = undefined;
    expect(await encoder.encode(['a'])).toEqual(vectorOf('a', 8));
    expect(encoder.statistics.entries).toBe(1);
  });

  it('does not let another call fail for a text that is none of its', async () => {
    const inner = new FakeEncoder();
    inner.held = true;
    inner.fault = (texts) => (texts.includes('bad') ? failure : undefined);
    const encoder = new CachedEncoder(inner);
    const withBad = encoder.encode(['good', 'bad']);
    const good = encoder.encode(['good', 'fine']);
    const settled = Promise.allSettled([withBad, good]);
    await turn();
    inner.held = false;
    inner.release();
    const [first, second] = await settled;
    expect(first?.status).toBe('rejected');
    expect(second?.status).toBe('fulfilled');
    expect((await good).subarray(0, 8)).toEqual(vectorOf('good', 8));
  });

  it('is FINCH_CLOSED after close, which waits for calls in flight and closes the inner one once', async () => {
    const inner = new FakeEncoder();
    inner.held = true;
    const encoder = new CachedEncoder(inner);
    const inFlight = encoder.encode(['a']);
    await turn();
    const closing = [encoder.close(), encoder.close()];
    await expectCode(encoder.encode(['b']), 'FINCH_CLOSED');
    await turn();
    expect(inner.closed).toBe(0);
    inner.release();
    expect(await inFlight).toEqual(vectorOf('a', 8));
    await Promise.all(closing);
    expect(inner.closed).toBe(1);
  });

  it('refuses what is not text, before the inner encoder sees it', async () => {
    const inner = new FakeEncoder();
    const encoder = new CachedEncoder(inner);
    for (const texts of [null, 'text', [1], ['a', undefined]] as unknown as string[][]) {
      await expectCode(encoder.encode(texts), 'FINCH_INVALID_ARGUMENT');
    }
    await expectCode(encoder.encode(['a'], { kind: 'doc' as 'tool' }), 'FINCH_INVALID_ARGUMENT');
    await expectCode(encoder.encode(['a'], { signal: AbortSignal.abort() }), 'FINCH_ABORTED');
    expect(inner.calls).toEqual([]);
    await expectCode(
      () => new CachedEncoder(inner, { cache: new VectorCache(), maxBytes: 5 }),
      'FINCH_INVALID_ARGUMENT',
    );
    await expectCode(() => new VectorCache(-1), 'FINCH_INVALID_ARGUMENT');
  });

  it('gives what the inner one gives, for any requests at any time', async () => {
    const word = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ texts: fc.array(word), abort: fc.boolean(), wait: fc.boolean() })),
        fc.integer({ min: 0, max: 1500 }),
        async (requests, maxBytes) => {
          const inner = new FakeEncoder();
          const encoder = new CachedEncoder(inner, { maxBytes });
          const results: Promise<unknown>[] = [];
          for (const { texts, abort, wait } of requests) {
            const controller = new AbortController();
            const result = encoder.encode(texts, { signal: controller.signal }).then(
              (rows) => {
                for (const [i, text] of texts.entries()) {
                  expect(rows.subarray(i * 8, i * 8 + 8)).toEqual(vectorOf(text, 8));
                }
              },
              (error: unknown) => {
                expect(abort).toBe(true);
                expect(error).toMatchObject({ code: 'FINCH_ABORTED' });
              },
            );
            results.push(result);
            if (abort) controller.abort();
            if (wait) await turn();
          }
          await Promise.all(results);
          expect(encoder.statistics.bytes).toBeLessThanOrEqual(maxBytes);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('the vector cache', () => {
  it('drops the least recently used, and keeps within its bytes', () => {
    const probe = new VectorCache();
    probe.write('k0', new Float32Array(4));
    const cache = new VectorCache(probe.bytes * 3);
    const out = new Float32Array(4);
    for (const key of ['k0', 'k1', 'k2']) cache.write(key, Float32Array.of(1, 2, 3, 4));
    expect(cache.read('k0', out, 0)).toBe(true);
    cache.write('k3', out);
    expect(cache.read('k1', out, 0)).toBe(false);
    expect(cache.read('k0', out, 0)).toBe(true);
    expect([cache.size, cache.evictions, cache.bytes]).toEqual([3, 1, probe.bytes * 3]);
    cache.write('k3', new Float32Array(4));
    expect(cache.bytes).toBe(probe.bytes * 3);
    cache.write('large', new Float32Array(10_000));
    expect(cache.size).toBe(3);
    cache.clear();
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  it('tells keys apart and keeps long ones short', () => {
    const base = { model: 'm@1', dimension: 8, kind: 'query' as const, text: 'a' };
    const long = 'x'.repeat(10_000);
    const keys = [
      base,
      { ...base, model: 'm@2' },
      { ...base, dimension: 16 },
      { ...base, kind: 'tool' as const },
      { ...base, text: 'b' },
      { ...base, text: '' },
      { ...base, text: long },
      { ...base, text: `${long}y` },
    ].map(vectorKey);
    expect(new Set(keys).size).toBe(keys.length);
    expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(100);
  });
});
