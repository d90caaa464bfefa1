import type { Tool } from '../catalog/tool.js';
import { type Encoder, encodeChecked } from '../encode/encoder.js';
import { binding } from '../native.js';
import type { Consistency, PriorRule } from './index-priors.js';

export interface Progress {
  /** Texts encoded so far, of `total`. */
  readonly done: number;
  readonly total: number;
}

/** Texts per call of the encoder: large enough to keep its threads busy, small enough for progress and abort. */
const chunk = 128;

/** Embeds index texts and, for the metadata prior, compares each tool's name with its description. */
export async function encodeAll(
  encoder: Encoder,
  tools: readonly { tool: Tool; text: string }[],
  prior: PriorRule,
  options: { signal?: AbortSignal | undefined; onProgress?: (progress: Progress) => void },
): Promise<{ vectors: Float32Array; consistency: Consistency[]; texts: number }> {
  const { dimension } = encoder;
  const vectors = new Float32Array(tools.length * dimension);
  const consistency: Consistency[] = [];
  const described =
    prior === 'none' ? 0 : tools.filter(({ tool }) => tool.description !== '').length;
  const total = tools.length + 2 * described;
  let done = 0;
  const encode = async (texts: string[]): Promise<Float32Array> => {
    if (texts.length === 0) return new Float32Array(0);
    const encoded = await encodeChecked(encoder, texts, {
      kind: 'tool',
      signal: options.signal,
    });
    done += texts.length;
    options.onProgress?.({ done, total });
    return encoded;
  };
  for (let start = 0; start < tools.length; start += chunk) {
    const part = tools.slice(start, start + chunk);
    vectors.set(await encode(part.map(({ text }) => text)), start * dimension);
    if (prior === 'none') {
      consistency.push(...part.map(() => null));
      continue;
    }
    const pairs = part.filter(({ tool }) => tool.description !== '');
    const names = await encode(pairs.map(({ tool }) => tool.name));
    const descriptions = await encode(pairs.map(({ tool }) => tool.description));
    const cosines = binding().cosine(names, descriptions, dimension);
    let next = 0;
    for (const { tool } of part) {
      consistency.push(tool.description === '' ? 0 : (cosines[next++] as number));
    }
  }
  return { vectors, consistency, texts: total };
}
