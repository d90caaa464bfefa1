import type { IndexTextOptions } from '../catalog/index-text.js';
import { makeTool } from '../catalog/tool.js';
import { FinchError } from '../errors.js';
import { inTurns } from '../in-turns.js';
import type { PriorRule } from './index-priors.js';
import type { Entry } from './tool-index.js';
import type { FileSection, VectorIndex } from './vector-index.js';

/** Raised when the sections change in a way that older releases cannot read. */
const format = 1;

/** Settings an index was built with; see docs/index-format.md. */
export interface IndexMeta {
  readonly model: string;
  readonly indexText: IndexTextOptions;
  readonly prior: PriorRule;
}

/** The sections `meta` (JSON) and `tools` (a JSON line a tool, in insertion order). */
export async function writeToolSections(
  meta: IndexMeta,
  entries: readonly Entry[],
): Promise<FileSection[]> {
  const lines: string[] = [];
  await inTurns(entries, (entry) => lines.push(`${JSON.stringify(entry)}\n`));
  return [
    { name: 'meta', data: Buffer.from(JSON.stringify({ format, ...meta })) },
    { name: 'tools', data: Buffer.from(lines.join('')) },
  ];
}

/** @throws FinchError FINCH_CORRUPT, FINCH_VERSION */
export async function readToolSections(
  path: string,
  vectors: VectorIndex,
): Promise<{ meta: IndexMeta; entries: Entry[] }> {
  const metaBytes = vectors.section('meta');
  const toolBytes = vectors.section('tools');
  if (metaBytes === undefined || toolBytes === undefined) {
    throw new FinchError(
      'FINCH_CORRUPT',
      `${path} holds vectors but no tools: it was not written by ToolIndex.save or \`toolfinch index\`.`,
    );
  }
  try {
    const meta = JSON.parse(text(metaBytes)) as IndexMeta & { format: number };
    if (meta.format !== format) {
      throw new FinchError(
        'FINCH_VERSION',
        `${path} has tool sections of format ${meta.format}, this release reads ${format}. Index the tools again.`,
      );
    }
    const lines = text(toolBytes)
      .split('\n')
      .filter((line) => line !== '');
    const entries: Entry[] = [];
    await inTurns(lines, (line, i) => {
      const { tool, hash, consistency, tokens } = JSON.parse(line) as Entry;
      entries.push({ tool: makeTool(tool, `${path}, tool ${i + 1}`), hash, consistency, tokens });
    });
    const snapshot = vectors.snapshot();
    const same =
      snapshot.count === entries.length &&
      snapshot.find(entries.map(({ tool }) => tool.id)).every((key) => key !== 0);
    snapshot.close();
    if (!same) throw new Error(`${entries.length} tools do not match the vectors`);
    return { meta, entries };
  } catch (error) {
    if (error instanceof FinchError && error.code === 'FINCH_VERSION') throw error;
    throw new FinchError(
      'FINCH_CORRUPT',
      `${path}: the tool sections cannot be read (${(error as Error).message}). Index the tools again.`,
      { cause: error },
    );
  }
}

function text(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
}
