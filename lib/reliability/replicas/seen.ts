import type { CatalogueKeys } from './keys.js';
import { type RedisLink, texts } from './redis-link.js';
import { look } from './scripts.js';

/** What Redis has of a catalogue. */
export interface Seen {
  epoch: string;
  version: string;
  meta: string;
  count: number;
  chain: string;
  snapshot: number;
  token: string;
  /** The number of the stream's first record; undefined when it is empty. */
  first: number | undefined;
  /** The last of this origin's records that is in. */
  last: number;
}

/** All of it as of one moment. `origin`: whose last record is asked for. */
export async function lookAt(link: RedisLink, keys: CatalogueKeys, origin: string): Promise<Seen> {
  const reply = await link.script(look, [keys.state, keys.stream, keys.origins], [origin]);
  const [epoch, version, meta, count, chain, snapshot, token, first, last] = texts(reply);
  return {
    epoch: epoch ?? '',
    version: version ?? '',
    meta: meta ?? '',
    count: Number(count),
    chain: chain ?? '',
    snapshot: Number(snapshot),
    token: token ?? '',
    first: first === '' ? undefined : Number.parseInt(first ?? '', 10),
    last: Number(last),
  };
}
