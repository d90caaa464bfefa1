import { metadataPriors } from '../catalog/prior.js';
import type { Entry } from './tool-index.js';

/** How reliability priors are made: from catalogue fields (RATED), or 0.5 for all. */
export type PriorRule = 'metadata' | 'none';

/** Cosine of a tool's name and description; null when the prior rule does not ask for it. */
export type Consistency = number | null;

/** RATED's metadata prior of every entry, float32, in [0, 1]. */
export function priorsOf(entries: readonly Entry[]): Float32Array {
  return metadataPriors(
    entries.map(({ tool }) => tool),
    Float32Array.from(entries, ({ consistency }) => consistency ?? 0),
  );
}
