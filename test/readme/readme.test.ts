import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

interface Snippet {
  language: string;
  info: string;
  line: number;
  code: string;
}

function snippets(markdown: string): Snippet[] {
  const found: Snippet[] = [];
  for (const match of markdown.matchAll(/^```(\w+)([^\n]*)\n([\s\S]*?)^```/gm)) {
    const line = markdown.slice(0, match.index).split('\n').length;
    found.push({ language: match[1] ?? '', info: match[2] ?? '', line, code: match[3] ?? '' });
  }
  return found;
}

const readme = await readFile(path.join(root, 'README.md'), 'utf8');
const all = snippets(readme);
let folder = '';

beforeAll(async () => {
  // Inside the package, so that `toolfinch` resolves to it; with its own working files, as a user's folder would be.
  await mkdir(path.join(root, '.cache'), { recursive: true });
  folder = await mkdtemp(path.join(root, '.cache', 'readme-'));
  await cp(path.join(root, 'demo'), path.join(folder, 'demo'), { recursive: true });
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('README', () => {
  it('has the snippets this test means to run', () => {
    expect(all.filter(({ language }) => language === 'ts').length).toBeGreaterThanOrEqual(3);
    expect(all.filter(({ language }) => language === 'sh').length).toBeGreaterThanOrEqual(2);
    expect(all.every(({ language }) => ['ts', 'cjs', 'sh'].includes(language))).toBe(true);
  });

  for (const { language, line, code } of all.filter((s) => s.language !== 'sh')) {
    it(`runs the ${language} snippet of line ${line}`, async () => {
      const esm = language === 'ts';
      const script = path.join(folder, `snippet-${line}.${esm ? 'mjs' : 'cjs'}`);
      const output = esm
        ? ts.transpileModule(code, {
            compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
          }).outputText
        : code;
      await writeFile(script, output);
      const { stdout } = await run(process.execPath, [script], { cwd: folder });
      // A comment after console.log says what it prints.
      for (const [, wanted] of code.matchAll(/console\.log\(.*\); \/\/ (\d+)$/gm)) {
        expect(stdout.trim().split('\n')).toContain(wanted);
      }
    }, 120_000);
  }

  for (const { info, line, code } of all.filter((s) => s.language === 'sh')) {
    if (info.includes('no-run')) continue;
    it(`runs the commands of line ${line}`, async () => {
      const toolfinch = `toolfinch() { "${process.execPath}" "${path.join(root, 'dist/esm/bin/toolfinch.js')}" "$@"; }`;
      const { stdout } = await run('bash', ['-euc', `${toolfinch}\n${code}`], { cwd: folder });
      expect(stdout).toContain('249 tools');
      expect(stdout).toContain('send_money: error, applied');
      expect(stdout).toContain('NDCG@10');
    }, 240_000);
  }

  it('type-checks its TypeScript', async () => {
    const files: string[] = [];
    for (const { line, code } of all.filter((s) => s.language === 'ts')) {
      const file = path.join(folder, `types-${line}.mts`);
      await writeFile(file, code);
      files.push(file);
    }
    const program = ts.createProgram(files, {
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    });
    const messages = ts
      .getPreEmitDiagnostics(program)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
    expect(messages).toEqual([]);
  }, 120_000);
});
