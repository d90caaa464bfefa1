// Encoding with the embedded model: off the event loop, cancellable, safe to close meanwhile.
import { describe, expect, test } from 'vitest';

import { addon, cosine64, failure, model, openEncoder } from './addon.js';

const texts = Array.from(
  { length: 64 },
  (_, i) => `Send the report number ${i} to everyone in the meeting`,
);

describe('encode', () => {
  test('gives unit vectors in order, near for near meanings, the same bits in any company', async () => {
    const encoder = await openEncoder();
    expect(addon.encoderRuntime(encoder)).toMatch(/^\d+\.\d+/);
    const words = ['Play some jazz', 'Put on music', 'Pay the electricity bill'];
    const vectors = await addon.encode(encoder, words);
    expect(vectors.length).toBe(3 * model.dimension);
    const rows = words.map((_, i) =>
      vectors.subarray(i * model.dimension, (i + 1) * model.dimension),
    );
    for (const row of rows)
      expect(row.reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 5);
    const [jazz, music, bill] = rows as [Float32Array, Float32Array, Float32Array];
    expect(cosine64(jazz, music)).toBeGreaterThan(cosine64(jazz, bill));
    const [alone, crowd] = await Promise.all([
      addon.encode(encoder, ['Put on music']),
      addon.encode(encoder, [...texts.slice(0, 8), 'Put on music']),
    ]);
    expect(alone).toEqual(music);
    expect(crowd.slice(8 * model.dimension)).toEqual(music);
    expect((await addon.encode(encoder, [])).length).toBe(0);
    addon.encoderClose(encoder);
    addon.encoderClose(encoder);
    expect((await failure(() => addon.encode(encoder, ['late']))).code).toBe('FINCH_CLOSED');
  });

  test('closing while it runs lets it finish', async () => {
    const encoder = await openEncoder();
    const promise = addon.encode(encoder, texts);
    addon.encoderClose(encoder);
    expect((await promise).length).toBe(texts.length * model.dimension);
  });

  test('a signalled cancel rejects it', async () => {
    const encoder = await openEncoder();
    const cancel = addon.cancelCreate();
    const promise = addon.encode(encoder, texts, cancel);
    addon.cancelSignal(cancel);
    expect((await failure(() => promise)).code).toBe('FINCH_ABORTED');
    expect((await addon.encode(encoder, ['still fine'])).length).toBe(model.dimension);
  });
});
