import { randomUUID } from 'node:crypto';
import type { CatalogueKeys } from './keys.js';
import { type RedisLink, text, texts } from './redis-link.js';
import { Diverged } from './replicated-state.js';

const chunkBytes = 512 * 1024;
// For how long a draft whose writer died stays.
const draftMs = '600000';

/** Writes a state under a key of its own, in pieces; a script then puts it in its place. @returns its token. */
export async function uploadDraft(
  link: RedisLink,
  keys: CatalogueKeys,
  parts: readonly Buffer[],
  onChunk?: () => Promise<void>,
): Promise<string> {
  const token = randomUUID();
  const draft = keys.draft(token);
  let chunks = 0;
  for (const part of parts) {
    for (let from = 0; from < part.length; from += chunkBytes) {
      const chunk = part.subarray(from, from + chunkBytes);
      await link.command(['HSET', draft, String(chunks++), chunk]);
      await link.command(['PEXPIRE', draft, draftMs]);
      await onChunk?.();
    }
  }
  await link.command(['HSET', draft, 'token', token, 'chunks', String(chunks)]);
  return token;
}

/** Reads the snapshot. @throws Diverged when it was replaced meanwhile, or is not there. */
export async function downloadSnapshot(
  link: RedisLink,
  keys: CatalogueKeys,
): Promise<{ token: string; bytes: Buffer }> {
  const [token, chunks] = texts(await link.command(['HMGET', keys.snapshot, 'token', 'chunks']));
  if (token === undefined || token === '') {
    throw new Diverged(
      `the snapshot ${keys.snapshot} is gone from Redis, though the stream begins behind it; a replica that still ` +
        'follows the stream will write another',
    );
  }
  const parts: Buffer[] = [];
  for (let i = 0; i < Number(chunks); i++) {
    const reply = await link.command(['HMGET', keys.snapshot, 'token', String(i)]);
    const [now, chunk] = Array.isArray(reply) ? reply : [];
    if (text(now) !== token || !Buffer.isBuffer(chunk)) {
      throw new Diverged('the snapshot was replaced while it was read');
    }
    parts.push(chunk);
  }
  return { token, bytes: Buffer.concat(parts) };
}
