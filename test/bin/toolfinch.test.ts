import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Decision, FeedbackStore } from '../../dist/esm/lib/index.js';
import { WordEncoder } from '../word-encoder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const command = path.join(root, 'dist/esm/bin/toolfinch.js');
let folder = '';

interface Run {
  code: number | null;
  stdout: string;
  stderr: string;
}

function toolfinch(...args: string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [command, ...args], { cwd: folder });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

const mcp = (...tools: [name: string, description: string][]) =>
  JSON.stringify({
    tools: tools.map(([name, description]) => ({
      name,
      description,
      inputSchema: { type: 'object' },
    })),
  });

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'toolfinch-bin-'));
  const write = (name: string, text: string) => writeFile(path.join(folder, name), text);
  await write(
    'clock.json',
    mcp(['set_alarm', 'Rings at a time of day.'], ['set_timer', 'Counts down.']),
  );
  await write('mail.json', mcp(['send_mail', 'Sends an email to someone.']));
  await write('twice.json', mcp(['set_alarm', 'Another alarm.']));
  await write(
    'openai.json',
    JSON.stringify([
      { type: 'function', function: { name: 'play_song', description: 'Plays music.' } },
    ]),
  );
  await write('shape.json', '{"hello": "world"}');
  await write('empty.json', '{"tools": []}');
  await write('broken.json', '{"tools": [');
  await write(
    'state.json',
    JSON.stringify({ instruction: 'wake me up', observation: 'now set an alarm' }),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('toolfinch', () => {
  it('tells its commands and its version', async () => {
    const help = await toolfinch();
    expect(help.code).toBe(0);
    for (const name of ['index', 'select', 'report', 'evaluate', 'simulate', 'demo'])
      expect(help.stdout).toContain(name);
    const version = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')).version;
    expect((await toolfinch('--version')).stdout.trim()).toBe(version);
    expect((await toolfinch('select', '--help')).stdout).toContain('--max-tokens');
  });

  it('indexes, brings up to date, selects, learns', async () => {
    const first = await toolfinch('index', 'clock.json', 'openai.json', '--out', 't.finch');
    expect([first.code, first.stderr.includes('encoding')]).toEqual([0, true]);
    expect(first.stdout).toContain('3 tools (3 added');
    const second = await toolfinch(
      'index',
      'clock.json',
      'mail.json',
      '--out',
      't.finch',
      '--json',
    );
    expect(JSON.parse(second.stdout)).toMatchObject({
      tools: 3,
      added: 1,
      unchanged: 2,
      removed: 1,
    });

    const ask = async (...args: string[]): Promise<Decision> => {
      const { code, stdout, stderr } = await toolfinch(
        'select',
        ...args,
        '--index',
        't.finch',
        '--json',
      );
      expect([code, stderr]).toEqual([0, '']);
      return JSON.parse(stdout) as Decision;
    };
    const before = await ask('set an alarm for six');
    expect(before.candidates[0]?.id).toBe('set_alarm');
    expect((await ask('--state', 'state.json')).candidates[0]?.id).toBe('set_alarm');
    for (let i = 0; i < 3; i += 1) {
      const { id } = await ask('set an alarm for six');
      const { code, stdout } = await toolfinch(
        'report',
        id,
        'set_alarm',
        'error',
        '--index',
        't.finch',
      );
      expect([code, stdout.trim()]).toEqual([0, 'set_alarm: error, applied']);
    }
    const after = await ask('set an alarm for six');
    expect(after.tools.map(({ id }) => id)).not.toContain('set_alarm');
    expect(after.candidates.find(({ id }) => id === 'set_alarm')?.reliability.reports).toBe(3);
    const again = await toolfinch(
      'report',
      before.id,
      'set_alarm',
      'success',
      '--index',
      't.finch',
      '--json',
    );
    expect(JSON.parse(again.stdout)).toMatchObject({ status: 'applied', durable: true });
    const repeated = await toolfinch(
      'report',
      before.id,
      'set_alarm',
      'success',
      '--index',
      't.finch',
      '--json',
    );
    expect(JSON.parse(repeated.stdout)).toMatchObject({ status: 'duplicate' });

    const chart = await toolfinch('select', 'send an email', '--index', 't.finch');
    expect(chart.stdout).toMatch(/send_mail\s+█/);
    expect(chart.stdout).toContain('cut after');
    const plotted = await toolfinch(
      'select',
      'send an email',
      '--index',
      't.finch',
      '--plot',
      'cut.svg',
    );
    expect(plotted.code).toBe(0);
    expect(await readFile(path.join(folder, 'cut.svg'), 'utf8')).toMatch(/<svg[\s\S]*send_mail/);
    const none = await toolfinch(
      'select',
      'hello there',
      '--index',
      't.finch',
      '--floor',
      '0.99',
      '--no-feedback',
    );
    expect([none.code, none.stdout.includes('no tool: no tool is relevant enough')]).toEqual([
      0,
      true,
    ]);
  });

  it('names sources that give the same id, and keeps the old file', async () => {
    await toolfinch('index', 'clock.json', '--out', 'kept.finch');
    const bytes = await readFile(path.join(folder, 'kept.finch'));
    const { code, stderr } = await toolfinch(
      'index',
      'clock.json',
      'twice.json',
      '--out',
      'kept.finch',
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/FINCH_DUPLICATE_ID.*set_alarm.*clock\.json.*twice\.json/s);
    expect(await readFile(path.join(folder, 'kept.finch'))).toEqual(bytes);
    const grouped = await toolfinch(
      'index',
      'clock.json',
      'other=twice.json',
      '--out',
      'grouped.finch',
      '--json',
    );
    expect(JSON.parse(grouped.stdout)).toMatchObject({ tools: 3 });
  });

  it('keeps the storage that an index was made with', async () => {
    const index = (...args: string[]) =>
      toolfinch('index', 'clock.json', '--out', 'small.finch', '--json', ...args);
    const made = await index('--storage', 'i8');
    expect(JSON.parse(made.stdout)).toMatchObject({ tools: 2, storage: 'i8' });
    const again = await index();
    expect(JSON.parse(again.stdout)).toMatchObject({ unchanged: 2, storage: 'i8' });
    const other = await index('--storage', 'f32');
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('--fresh')]);
    const fresh = await index('--storage', 'f32', '--fresh');
    expect(JSON.parse(fresh.stdout)).toMatchObject({ storage: 'f32' });
    expect((await index('--storage', 'i4')).code).toBe(2);
  });

  it('tells a tools file from a config by its top level, and prints no control characters', async () => {
    const tools = [
      {
        name: 'deploy',
        description: 'To \u001b[2Jservers',
        inputSchema: { type: 'object', properties: { servers: { type: 'object' } } },
      },
    ];
    await writeFile(path.join(folder, 'servers.json'), JSON.stringify({ tools }));
    const { code } = await toolfinch('index', 'servers.json', '--out', 'servers.finch');
    expect(code).toBe(0);
    const { stdout } = await toolfinch(
      'select',
      'deploy',
      '--index',
      'servers.finch',
      '--no-feedback',
    );
    expect(stdout).toContain('deploy');
    expect(stdout).not.toContain('\u001b');
  });

  it('simulates failures: tables, JSON and a picture', async () => {
    const names = ['ring a bell', 'send a mail', 'play a song', 'read the news', 'book a room'];
    const data = path.join(folder, 'failing');
    await mkdir(data);
    const tools = names.map((name, i) => ({ id: `t${i}`, name, description: `${name} for you` }));
    const queries = names.flatMap((name, i) =>
      Array.from({ length: 6 }, (_, j) => ({
        id: `q${i}-${j}`,
        text: `${name} ${j}`,
        tool: `t${i}`,
      })),
    );
    const lines = (rows: string[]) => `${rows.join('\n')}\n`;
    await writeFile(
      path.join(data, 'tools.jsonl'),
      lines(tools.map((each) => JSON.stringify(each))),
    );
    await writeFile(
      path.join(data, 'queries.jsonl'),
      lines(queries.map(({ id, text }) => JSON.stringify({ id, text }))),
    );
    await writeFile(
      path.join(data, 'qrels.tsv'),
      lines(queries.map(({ id, tool }) => `${id}\t${tool}`)),
    );
    const common = ['simulate', 'failures', '--data', 'failing', '--steps', '400', '--seeds', '1'];
    const tables = await toolfinch(
      ...[...common, '--rate', '0.4', '--scenario', 'persistent,recovery'],
      ...['--plot', 'failing.svg', '--out', 'failing.json'],
    );
    expect(tables.stderr).toContain('choosing settings');
    expect(tables.code).toBe(0);
    expect(tables.stdout).toMatch(
      /persistent: 2 tools.*\| ours \(default\) \|.*steps to catch up/s,
    );
    expect(await readFile(path.join(folder, 'failing.svg'), 'utf8')).toContain('tools fail');
    const kept = JSON.parse(await readFile(path.join(folder, 'failing.json'), 'utf8'));
    const json = await toolfinch(
      ...[...common, '--rate', '0.4', '--scenario', 'persistent,recovery', '--json'],
    );
    expect(JSON.parse(json.stdout)).toEqual(kept);
    const sweep = await toolfinch(...common, '--sweep', 'memory');
    expect(sweep.stdout).toContain('| ours, alpha 0.1 | 0.95 |');
  });

  it('selects without feedback while another process holds the folder', async () => {
    await toolfinch('index', 'clock.json', '--out', 'held.finch');
    const encoder = new WordEncoder(384);
    const store = await FeedbackStore.open(path.join(folder, 'held.finch.feedback'), {
      bandit: { dimension: encoder.dimension },
    });
    const { code, stdout, stderr } = await toolfinch(
      'select',
      'set an alarm',
      '--index',
      'held.finch',
    );
    await store.close();
    expect([code, stdout.includes('set_alarm')]).toEqual([0, true]);
    expect(stderr).toMatch(/warning: selecting without feedback/);
  });

  it.each<[string, string[], number, RegExp]>([
    ['an unknown command', ['pick'], 2, /no command 'pick'/],
    ['an unknown option', ['select', 'x', '--colour'], 2, /--colour/],
    ['index without a source', ['index'], 2, /no source/],
    ['a missing source', ['index', 'nowhere.json'], 1, /FINCH_IO.*nowhere\.json/],
    [
      'an unknown shape',
      ['index', 'shape.json'],
      1,
      /FINCH_INVALID_ARGUMENT.*shape\.json.*Known shapes/s,
    ],
    ['an empty catalogue', ['index', 'empty.json'], 1, /FINCH_INVALID_ARGUMENT.*no tools/s],
    ['broken JSON', ['index', 'broken.json'], 1, /FINCH_INVALID_ARGUMENT.*broken\.json/s],
    ['a bad server', ['index', '--mcp', 'nothing'], 1, /FINCH_INVALID_ARGUMENT.*NAME=URL/s],
    [
      'a number that is none',
      ['index', 'mail.json', '--ann-threshold', 'many'],
      1,
      /--ann-threshold is 'many'/,
    ],
    ['no query', ['select'], 2, /no query/],
    ['two queries', ['select', 'a', 'b'], 2, /quotes/],
    ['a query and a state', ['select', 'a', '--state', 'state.json'], 2, /not both/],
    ['a missing index', ['select', 'a', '--index', 'none.finch'], 1, /FINCH_IO.*none\.finch/],
    ['a file that is no index', ['select', 'a', '--index', 'mail.json'], 1, /FINCH_CORRUPT/],
    [
      'a state that is no JSON',
      ['select', '--state', 'broken.json', '--index', 't.finch'],
      1,
      /FINCH_INVALID_ARGUMENT.*instruction/s,
    ],
    [
      'an unknown method',
      ['select', 'a', '--method', 'magic', '--index', 't.finch'],
      1,
      /method is "magic"/,
    ],
    ['too few report arguments', ['report', 'last'], 2, /a decision, a tool and an outcome/],
    ['an unknown outcome', ['report', 'last', 'set_alarm', 'meh'], 2, /meh/],
    [
      'an unknown decision',
      ['report', 'no-such', 'set_alarm', 'error', '--index', 't.finch'],
      1,
      /FINCH_UNKNOWN_ID/,
    ],
    [
      'an --out in no folder, before a source is read',
      ['index', 'nowhere.json', '--out', 'none/t.finch'],
      1,
      /FINCH_IO: --out.*none.*there is no folder/,
    ],
    ['an --out that is a folder', ['index', 'nowhere.json', '--out', '.'], 1, /--out.*is a folder/],
    [
      'a --plot of no picture, before an index is read',
      ['select', 'a', '--index', 'none.finch', '--plot', 'cut.gif'],
      1,
      /FINCH_INVALID_ARGUMENT: cut\.gif/,
    ],
    [
      'a --plot in no folder, before an index is read',
      ['select', 'a', '--index', 'none.finch', '--plot', 'none/cut.svg'],
      1,
      /FINCH_IO: --plot.*there is no folder/,
    ],
    [
      'a --plot of evaluate, before the data is read',
      ['evaluate', '--data', 'nowhere', '--plot', 'mail.json/x.svg'],
      1,
      /FINCH_IO: --plot/,
    ],
    ['evaluate without data', ['evaluate'], 2, /--data/],
    ['evaluate of nothing', ['evaluate', '--data', 'nowhere'], 1, /FINCH_IO/],
    ['simulate of nothing named', ['simulate', '--data', '.'], 2, /failures/],
    ['simulate without data', ['simulate', 'failures'], 2, /--data/],
    [
      'a rate above 0.8',
      ['simulate', 'failures', '--data', '.', '--rate', '1.5'],
      1,
      /--rate is 1.5/,
    ],
    ['half a seed', ['simulate', 'failures', '--data', '.', '--seeds', '0.5'], 1, /whole number/],
    ['a short stream', ['simulate', 'failures', '--data', '.', '--steps', '10'], 1, /400/],
    [
      'an unknown scenario',
      ['simulate', 'failures', '--data', '.', '--scenario', 'drift,flood'],
      1,
      /'flood'.*persistent/,
    ],
    ['an unknown sweep', ['simulate', 'failures', '--data', '.', '--sweep', 'all'], 1, /trade-off/],
    ['simulate of nothing', ['simulate', 'failures', '--data', 'nowhere'], 1, /FINCH_IO/],
    [
      'an endpoint without a model',
      ['select', 'a', '--embeddings-url', 'http://localhost:1'],
      1,
      /--embeddings-model/,
    ],
  ])('refuses %s', async (_, args, code, message) => {
    const run = await toolfinch(...args);
    expect(run.stderr).toMatch(message);
    expect(run.code).toBe(code);
    expect(run.stdout).toBe('');
  });
});
