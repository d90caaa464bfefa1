import { FinchError } from '../../errors.js';
import { checkId } from '../check-feedback.js';

/**
 * The keys of one catalogue. What is in the braces is the hash tag: a cluster keeps all of them in one slot, so that one
 * script may touch several.
 */
export interface CatalogueKeys {
  /** `{tenant:catalogue}` behind the prefix: what all keys begin with. */
  readonly base: string;
  readonly state: string;
  readonly stream: string;
  readonly origins: string;
  readonly snapshot: string;
  readonly snapshotLock: string;
  readonly decisions: string;
  readonly decisionOrder: string;
  /** A snapshot being written. */
  draft(token: string): string;
  /** Which opening of an origin's folder delivers. */
  session(origin: string): string;
}

const maxNameBytes = 512;

/** The Redis type of a catalogue's key; what lies there with another was not put there by a replica. */
export function typeOfKey(key: string): string {
  const [, name] = /}:([a-z-]+)(?::[^}]*)?$/.exec(key) ?? [];
  switch (name) {
    case 'stream':
      return 'stream';
    case 'decision-order':
      return 'list';
    case 'session':
    case 'snapshot-lock':
      return 'string';
    default:
      return 'hash';
  }
}

export function catalogueKeys(prefix: string, tenant: string, catalogue: string): CatalogueKeys {
  const base = `${part(prefix, 'prefix')}:{${part(tenant, 'tenant')}:${part(catalogue, 'catalogue')}}`;
  return {
    base,
    state: `${base}:state`,
    stream: `${base}:stream`,
    origins: `${base}:origins`,
    snapshot: `${base}:snapshot`,
    snapshotLock: `${base}:snapshot-lock`,
    decisions: `${base}:decisions`,
    decisionOrder: `${base}:decision-order`,
    draft: (token) => `${base}:draft:${token}`,
    session: (origin) => `${base}:session:${origin}`,
  };
}

/** A name with what means something in keys and in ACL patterns percent-encoded, so that no two names share a key. */
function part(name: unknown, what: string): string {
  checkId(name, what);
  if (Buffer.byteLength(name) > maxNameBytes) {
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${what} has ${Buffer.byteLength(name)} bytes; expected at most ${maxNameBytes}`,
    );
  }
  return encodeURIComponent(name).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
