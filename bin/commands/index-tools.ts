import { access } from 'node:fs/promises';
import { FinchError, mergeTools, ToolIndex, type ToolIndexOptions } from '../../lib/index.js';
import { type Command, given, numberOption, parse, UsageError } from '../arguments.js';
import { encoderOptions, encoderUsage, openEncoder } from '../encoder-options.js';
import { checkOutput } from '../output-file.js';
import { printable } from '../printable.js';
import { ProgressLine } from '../progress.js';
import { readSources } from '../sources.js';

const storages = ['f32', 'bf16', 'f16', 'i8'] as const satisfies ReadonlyArray<
  NonNullable<ToolIndexOptions['storage']>
>;

const usage = `usage: toolfinch index SOURCE… --out FILE

Builds one index file from tools. A SOURCE is a file: a saved MCP tools/list, OpenAI or Anthropic tools, an OpenAPI 3
document (JSON or YAML), JSONL, or an mcpServers config, whose servers are then started and asked. The kind is told
from the content. NAME=SOURCE puts a file's tools into a group, which keeps equal names apart. When FILE exists, it is brought up to date: only texts that changed are embedded again.

  --out FILE                 the index file (default: tools.finch)
  --mcp NAME=COMMAND|URL     a live MCP server; may be given several times
  --group NAME               the group (namespace) of the files' tools, and the prefix of their ids
  --strict                   fail when one server of a config cannot be read
  --fresh                    build anew even when FILE exists
  --no-prior                 no metadata prior: about twice as fast
  --storage FORMAT           what vectors are scanned in: f32 (default, exact), bf16, f16 or i8; all are rescored in f32
  --ann-threshold N          from N tools on, search an HNSW graph (default 50000)
${encoderUsage}
  --json                     a JSON summary on stdout`;

export const index: Command = {
  name: 'index',
  summary: 'build an index file from MCP servers, tool lists or OpenAPI documents',
  usage,
  async run(args) {
    const { values, positionals: files } = parse(args, {
      out: { type: 'string', default: 'tools.finch' },
      mcp: { type: 'string', multiple: true, default: [] },
      group: { type: 'string' },
      strict: { type: 'boolean', default: false },
      fresh: { type: 'boolean', default: false },
      'no-prior': { type: 'boolean', default: false },
      storage: { type: 'string' },
      'ann-threshold': { type: 'string' },
      json: { type: 'boolean', default: false },
      ...encoderOptions,
    });
    if (files.length === 0 && values.mcp.length === 0) throw new UsageError('no source is given');

    const annThreshold = numberOption('ann-threshold', values['ann-threshold']);
    const storage = values.storage as ToolIndexOptions['storage'];
    if (storage !== undefined && !storages.includes(storage)) {
      throw new UsageError(
        `--storage is ${JSON.stringify(storage)}; expected one of ${storages.join(', ')}`,
      );
    }
    await checkOutput('--out', values.out);
    const start = performance.now();
    const tools = mergeTools(
      await readSources({
        files,
        servers: values.mcp,
        group: values.group,
        strict: values.strict,
        warn: (message) => process.stderr.write(printable(`warning: ${message}\n`)),
      }),
    );
    const encoder = await openEncoder(values);
    const progress = new ProgressLine('encoding', 'texts');
    const options = { encoder, ...given({ annThreshold }) };
    const known = !values.fresh && (await exists(values.out));
    const toolIndex = known
      ? await openKnown(values.out, options, { storage, noPrior: values['no-prior'] })
      : await ToolIndex.build([], {
          ...options,
          ...given({ storage }),
          prior: values['no-prior'] ? 'none' : 'metadata',
        });
    const summary = await toolIndex.sync(tools, {
      onProgress: ({ done, total }) => progress.update(done, total),
    });
    progress.end();
    await toolIndex.save(values.out);
    const seconds = (performance.now() - start) / 1000;
    const { storage: format, vectorBytes, annBytes } = toolIndex.info();
    const result = {
      file: values.out,
      tools: toolIndex.count,
      ...summary,
      seconds,
      toolsPerSecond: (summary.added + summary.replaced) / seconds,
      storage: format,
      vectorBytes,
      annBytes,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      model: encoder.model,
    };
    toolIndex.close();
    await encoder.close();
    if (values.json) {
      process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
      return;
    }
    process.stdout.write(
      `${values.out}: ${result.tools} tools (${result.added} added, ${result.replaced} replaced, ${result.unchanged} unchanged, ${result.removed} removed); ${result.encoded} texts encoded in ${seconds.toFixed(1)} s, peak memory ${(result.peakMemoryBytes / 2 ** 20).toFixed(0)} MiB\n`,
    );
  },
};

async function openKnown(
  file: string,
  options: Parameters<typeof ToolIndex.open>[1],
  asked: { storage: ToolIndexOptions['storage']; noPrior: boolean },
): Promise<ToolIndex> {
  const index = await ToolIndex.open(file, options).catch((error: unknown) => {
    if (!(error instanceof FinchError) || error.code === 'FINCH_IO') throw error;
    throw new FinchError(error.code, `${error.message} With --fresh it is built anew.`, {
      cause: error,
    });
  });
  if (asked.noPrior && index.prior !== 'none') {
    index.close();
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${file} was built with the metadata prior, and --no-prior cannot take it out. With --fresh it is built anew.`,
    );
  }
  const { storage } = index.info();
  if (asked.storage !== undefined && asked.storage !== storage) {
    index.close();
    throw new FinchError(
      'FINCH_INVALID_ARGUMENT',
      `${file} was built with --storage ${storage}, which stays. With --fresh it is built anew.`,
    );
  }
  return index;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
