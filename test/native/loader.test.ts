// What the loader says when the addon does not load, for each cause, and that it loads what it is told to.
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { explainLoadFailure, prebuiltTarget } from '../../dist/esm/lib/native-load.js';
import { type Ended, root, runNode } from './addon.js';

const target = prebuiltTarget() ?? 'none';
const binary = path.join(root, 'prebuilds', target, 'toolfinch.node');
const folder = mkdtempSync(path.join(tmpdir(), 'toolfinch-loader-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A copy of the built package without its binary, installed or as a checkout. */
function copyPackage(name: string, checkout: boolean): string {
  const copy = path.join(folder, name);
  mkdirSync(path.join(copy, 'prebuilds', target), { recursive: true });
  copyFileSync(path.join(root, 'package.json'), path.join(copy, 'package.json'));
  for (const form of ['esm', 'cjs']) {
    for (const file of [
      'native.js',
      'native-load.js',
      'package-root.js',
      'prebuilt.js',
      'errors.js',
    ]) {
      mkdirSync(path.join(copy, 'dist', form, 'lib'), { recursive: true });
      copyFileSync(
        path.join(root, 'dist', form, 'lib', file),
        path.join(copy, 'dist', form, 'lib', file),
      );
    }
  }
  copyFileSync(path.join(root, 'dist/cjs/package.json'), path.join(copy, 'dist/cjs/package.json'));
  if (checkout) {
    mkdirSync(path.join(copy, 'native'));
    writeFileSync(path.join(copy, 'native/sources.json'), '{}');
  }
  return copy;
}

const report = `
  try { const b = binding(); console.log(JSON.stringify({ version: b.version() })); }
  catch (e) { console.log(JSON.stringify({ finch: e instanceof FinchError, code: e.code, message: e.message, cause: e.cause?.message ?? null })); }
`;

interface Outcome {
  version?: string;
  finch?: boolean;
  code?: string;
  message?: string;
  cause?: string | null;
}

function outcome(ended: Ended): Outcome {
  expect(ended.stderr).toBe('');
  return JSON.parse(ended.stdout) as Outcome;
}

/** Loads the package at `place` in a process of its own, as an ES module. */
async function load(
  place: string,
  env: Record<string, string> = {},
  flags: string[] = [],
  before = '',
): Promise<Outcome> {
  const lib = path.join(place, 'dist/esm/lib');
  const text = `
    import { binding, setNativeBinding } from ${JSON.stringify(path.join(lib, 'native.js'))};
    import { FinchError } from ${JSON.stringify(path.join(lib, 'errors.js'))};
    ${before}
    ${report}`;
  return outcome(await runNode([...flags, '--input-type=module', '--eval', text], env));
}

async function requireIt(place: string, before = ''): Promise<Outcome> {
  const lib = path.join(place, 'dist/cjs/lib');
  const text = `
    const { binding, setNativeBinding } = require(${JSON.stringify(path.join(lib, 'native.js'))});
    const { FinchError } = require(${JSON.stringify(path.join(lib, 'errors.js'))});
    ${before}
    ${report}`;
  return outcome(await runNode(['--input-type=commonjs', '--eval', text]));
}

function expectFailure(result: Outcome, says: RegExp[]): void {
  expect(result).toMatchObject({ finch: true, code: 'FINCH_DEVICE' });
  for (const pattern of says) expect(result.message).toMatch(pattern);
}

let installed: string;
let checkout: string;
beforeAll(() => {
  installed = copyPackage('installed', false);
  checkout = copyPackage('checkout', true);
});

describe('loads', () => {
  test('the prebuilt binary, from ESM and CommonJS', async () => {
    expect((await load(root)).version).toMatch(/^\d/);
    expect((await requireIt(root)).version).toMatch(/^\d/);
  });

  test('the two copies of the package share one addon and one error brand', async () => {
    const text = `
      import { createRequire } from 'node:module';
      import { binding } from ${JSON.stringify(path.join(root, 'dist/esm/lib/native.js'))};
      import { FinchError } from ${JSON.stringify(path.join(root, 'dist/esm/lib/errors.js'))};
      const require = createRequire(${JSON.stringify(path.join(root, 'x.js'))});
      const other = require('./dist/cjs/lib/native.js');
      const { FinchError: OtherError } = require('./dist/cjs/lib/errors.js');
      const [a, b] = [binding(), other.binding()];
      const thrown = [a, b].map((addon) => { try { addon.indexCreate(0); } catch (error) { return error; } });
      console.log(a === b, thrown.every((e) => e instanceof FinchError && e instanceof OtherError));
      const index = a.indexCreate(3);
      console.log(b.indexInspect(index).dimension);
    `;
    expect((await runNode(['--input-type=module', '--eval', text])).stdout).toBe('true true\n3\n');
  });

  test('TOOLFINCH_BINDING, before the prebuilt one', async () => {
    const elsewhere = path.join(folder, 'else where.node');
    copyFileSync(binary, elsewhere);
    expect((await load(installed, { TOOLFINCH_BINDING: elsewhere })).version).toMatch(/^\d/);
    expect(
      (await load(installed, { TOOLFINCH_BINDING: path.relative(root, elsewhere) })).version,
    ).toMatch(/^\d/);
  });

  test('what setNativeBinding names: a path or the exports, before TOOLFINCH_BINDING', async () => {
    const path_ = JSON.stringify(binary);
    expect(
      (await load(installed, { TOOLFINCH_BINDING: '/no/such' }, [], `setNativeBinding(${path_});`))
        .version,
    ).toMatch(/^\d/);
    expect((await requireIt(installed, `setNativeBinding(require(${path_}));`)).version).toMatch(
      /^\d/,
    );
    const late = await load(
      root,
      {},
      [],
      `binding(); try { setNativeBinding(${path_}); } catch (e) { console.error = 0; if (e.code !== 'FINCH_INVALID_ARGUMENT') throw e; }`,
    );
    expect(late.version).toMatch(/^\d/);
  });

  test('through a link to the package, as package managers make', async () => {
    const link = path.join(folder, 'link');
    symlinkSync(root, link);
    expect((await load(link)).version).toMatch(/^\d/);
  });
});

describe('explains', () => {
  test('a checkout that was not built', async () => {
    for (const result of [await load(checkout), await requireIt(checkout)]) {
      expectFailure(result, [/not built yet/, /npm run build/]);
      expect(result.cause).toMatch(/Cannot find module/);
    }
  });

  test('a package without its binary', async () => {
    expectFailure(await load(installed), [
      /is not where it belongs/,
      /reinstall/,
      new RegExp(`toolfinch/native/${target}`),
    ]);
  });

  test('a path that leads nowhere', async () => {
    expectFailure(await load(root, { TOOLFINCH_BINDING: '/no/such.node' }), [
      /no file \/no\/such\.node/,
      /TOOLFINCH_BINDING/,
    ]);
  });

  test('a broken binary as broken, never as missing', async () => {
    const file = path.join(installed, 'prebuilds', target, 'toolfinch.node');
    for (const bytes of ['', 'not a binary at all', '\x7fELF but no more']) {
      writeFileSync(file, bytes);
      const result = await load(installed);
      expectFailure(result, [/damaged|another processor|loading it failed/]);
      expect(result.message).not.toMatch(/not built|not where it belongs/);
    }
    rmSync(file);
  });

  test('an addon of somebody else', async () => {
    const fake = path.join(folder, 'fake.cjs');
    writeFileSync(fake, 'module.exports = { hello() {} };');
    expectFailure(await load(root, { TOOLFINCH_BINDING: fake }), [/not Toolfinch's addon/]);
    expectFailure(await load(root, {}, [], 'setNativeBinding(null ?? {});'), [
      /not Toolfinch's addon/,
    ]);
  });

  test('an addon of another release', async () => {
    const fake = path.join(folder, 'old.cjs');
    writeFileSync(fake, 'module.exports = { abiVersion: () => 999, initialize() {} };');
    expectFailure(await load(root, { TOOLFINCH_BINDING: fake }), [
      /ABI version 999.*needs 1/,
      /different releases/,
    ]);
  });

  test('an addon whose loading throws, with the cause', async () => {
    const fake = path.join(folder, 'throws.cjs');
    writeFileSync(fake, "throw new Error('the disk is on fire');");
    const result = await load(root, { TOOLFINCH_BINDING: fake });
    expectFailure(result, [/the disk is on fire/]);
    expect(result.cause).toBe('the disk is on fire');
  });

  test('--no-addons', async () => {
    expectFailure(await load(root, {}, ['--no-addons']), [
      /may not load native addons/,
      /--no-addons/,
    ]);
  });

  // Causes that need another machine: the messages are those of the dynamic linkers.
  const dlopen = (message: string): string =>
    explainLoadFailure(Object.assign(new Error(message), { code: 'ERR_DLOPEN_FAILED' }), {
      target: 'linux-x64',
      root: installed,
    });

  test.each([
    [
      "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /a/toolfinch.node)",
      /C library \(glibc\) is too old.*GLIBC_2\.34/,
    ],
    [
      "/lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /a/toolfinch.node)",
      /libstdc\+\+.*too old.*GLIBCXX_3\.4\.30/,
    ],
    [
      'Error loading shared library ld-linux-x86-64.so.2: No such file or directory (needed by /a/toolfinch.node)',
      /for glibc but.*musl.*Alpine/,
    ],
    [
      'libc.musl-x86_64.so.1: cannot open shared object file: No such file or directory',
      /for musl.*runs on glibc/,
    ],
    [
      "dlopen(/a/toolfinch.node, 0x0001): tried: '/a/toolfinch.node' (mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64'))",
      /another processor/,
    ],
    ['/a/toolfinch.node: wrong ELF class: ELFCLASS32', /another processor/],
    ['/a/toolfinch.node is not a valid Win32 application.', /another processor/],
    ['/a/toolfinch.node: invalid ELF header', /no binary of this system/],
    ['/a/toolfinch.node: file too short', /damaged/],
    [
      'libatomic.so.1: cannot open shared object file: No such file or directory',
      /a library that it needs is missing.*libatomic/,
    ],
    ['/a/toolfinch.node: undefined symbol: napi_made_up', /loading it failed.*napi_made_up/],
  ])('%s', (message, says) => {
    const text = dlopen(message);
    expect(text).toMatch(says);
    expect(text).toMatch(/npm run build/);
  });

  test('a platform without a binary', () => {
    const text = explainLoadFailure(new Error('no binary'), { target: undefined, root: installed });
    expect(text).toMatch(/there is no binary for/);
    expect(text).toMatch(/linux-x64, linux-arm64, linux-x64-musl/);
  });
});

test('each machine gets its binary', () => {
  expect(prebuiltTarget('linux', 'x64', false)).toBe('linux-x64');
  expect(prebuiltTarget('linux', 'arm64', true)).toBe('linux-arm64-musl');
  expect(prebuiltTarget('darwin', 'arm64')).toBe('darwin-arm64');
  expect(prebuiltTarget('win32', 'x64')).toBe('win32-x64');
  expect(prebuiltTarget('win32', 'arm64')).toBeUndefined();
  expect(prebuiltTarget('freebsd', 'x64')).toBeUndefined();
  expect(prebuiltTarget('linux', 's390x', false)).toBeUndefined();
});

test('the two forms of prebuilt.ts differ in nothing but where they lie', () => {
  const binaries = (file: string): string =>
    /export const prebuilt[\s\S]*/.exec(readFileSync(path.join(root, file), 'utf8'))?.[0] ?? '';
  const esm = binaries('lib/prebuilt.ts');
  expect(esm.match(/require\('[^']+'\)/g)).toHaveLength(7);
  expect(binaries('scripts/cjs/prebuilt.ts')).toBe(esm);
  // What each platform loads is its own folder's file.
  const pairs = [...esm.matchAll(/'([^']+)': .*prebuilds\/([^/]+)\/toolfinch\.node/g)];
  expect(pairs.map(([, name]) => name)).toEqual(pairs.map(([, , folder]) => folder));
});
