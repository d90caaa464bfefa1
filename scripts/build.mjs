// Builds everything a checkout needs: the native addon (prebuilds/), then the TypeScript (dist/).
//
//   node scripts/build.mjs            both; the native part is skipped when its sources and flags are unchanged
//   node scripts/build.mjs --native   the addon alone
//   node scripts/build.mjs --ts       the TypeScript alone
//   node scripts/build.mjs --gyp      the addon through node-gyp and binding.gyp instead of cmake-js
//   node scripts/build.mjs --force    the addon even when unchanged
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const flags = new Set(process.argv.slice(2));
const known = ['--native', '--ts', '--gyp', '--force'];
const build = path.join(root, 'build');
const jobs = String(availableParallelism());

try {
  await main();
} catch (error) {
  console.error(`\nbuild: ${error.message}`);
  process.exitCode = 1;
}

async function main() {
  for (const flag of flags) {
    if (!known.includes(flag))
      throw new Error(`unknown option ${flag}; there are ${known.join(', ')}`);
  }
  requireNode();
  requirePackages();
  const native = !flags.has('--ts') || flags.has('--native') || flags.has('--gyp');
  const ts = !(flags.has('--native') || flags.has('--gyp')) || flags.has('--ts');
  if (native) await buildNative();
  if (ts) await buildTypeScript();
}

// --- What must be there ----------------------------------------------------------------------------------------

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 15)) return;
  throw new Error(
    `Node ${process.versions.node} is too old: Toolfinch needs 20.15 or newer (https://nodejs.org, or your version ` +
      'manager: nvm install 20).',
  );
}

function requirePackages() {
  if (existsSync(path.join(root, 'node_modules/typescript'))) return;
  throw new Error('the development packages are not installed. Run: npm ci');
}

/** First line that `command --version` prints, or undefined when there is no such command. */
function versionOf(command) {
  try {
    return execFileSync(command, ['--version'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).split('\n')[0];
  } catch {
    return undefined;
  }
}

function requireCmake() {
  const line = versionOf('cmake');
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(line ?? '') ?? []).slice(1).map(Number);
  if (line !== undefined && (major > 3 || (major === 3 && minor >= 20))) return line;
  throw new Error(
    `${line === undefined ? 'CMake is missing' : `${line} is too old`}: the native addon needs CMake 3.20 or newer.\n` +
      '  Debian, Ubuntu: sudo apt-get install cmake\n' +
      '  Fedora:         sudo dnf install cmake\n' +
      '  macOS:          brew install cmake\n' +
      '  any system with Python: pip install cmake',
  );
}

/** The compiler that CMake and make will take, tried on a C++20 program; Windows finds its own. */
function requireCompiler() {
  if (process.platform === 'win32') return 'msvc';
  const candidates = process.env.CXX ? [process.env.CXX] : ['c++', 'g++', 'clang++'];
  const program =
    '#include <span>\n#include <version>\nint main() { static_assert(__cplusplus > 201703L); int a[2] = {}; return static_cast<int>(std::span<int>(a).size()) - 2; }\n';
  let found;
  for (const candidate of candidates) {
    const line = versionOf(candidate.split(' ')[0]);
    if (line === undefined) continue;
    found ??= line;
    try {
      const [command, ...rest] = candidate.split(' ');
      execFileSync(command, [...rest, '-std=c++20', '-x', 'c++', '-fsyntax-only', '-'], {
        input: program,
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      return line;
    } catch {
      // Too old: try the next one.
    }
  }
  throw new Error(
    `${found === undefined ? 'a C++ compiler is missing' : `${found} cannot compile C++20`}: the native addon needs ` +
      'gcc 11, clang 14 or newer.\n' +
      '  Debian, Ubuntu: sudo apt-get install g++ make\n' +
      '  Fedora:         sudo dnf install gcc-c++ make\n' +
      '  macOS:          xcode-select --install',
  );
}

// --- The addon -------------------------------------------------------------------------------------------------

function target() {
  const musl =
    process.platform === 'linux' && readFileSync('/proc/self/maps', 'latin1').includes('/ld-musl-');
  return `${process.platform}-${process.arch}${musl ? '-musl' : ''}`;
}

/** Everything the addon's bytes depend on: a changed hash means a build is due. */
function nativeHash(compiler, tool) {
  const hash = createHash('sha256');
  const add = (file) =>
    hash
      .update(file)
      .update('\0')
      .update(readFileSync(path.join(root, file)))
      .update('\0');
  hash.update(
    JSON.stringify([
      compiler,
      tool,
      target(),
      process.env.CXXFLAGS ?? '',
      process.env.LDFLAGS ?? '',
    ]),
  );
  for (const file of ['native/sources.json', tool === 'cmake' ? 'CMakeLists.txt' : 'binding.gyp'])
    add(file);
  const release = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).version;
  hash.update(release);
  for (const folder of ['core', 'include', 'kernels', 'node', 'onnx']) {
    for (const file of readdirSync(path.join(root, 'native', folder), { recursive: true }).sort()) {
      if (/\.(cpp|hpp|h|inc|map)$/.test(file))
        add(path.posix.join('native', folder, file.replaceAll('\\', '/')));
    }
  }
  return hash.digest('hex');
}

async function buildNative() {
  const tool = flags.has('--gyp') ? 'gyp' : 'cmake';
  const compiler = requireCompiler();
  if (tool === 'cmake') requireCmake();
  const output = path.join(root, 'prebuilds', target(), 'toolfinch.node');
  const stamp = path.join(build, 'native.stamp');
  const hash = nativeHash(compiler, tool);
  if (
    !flags.has('--force') &&
    existsSync(output) &&
    existsSync(stamp) &&
    readFileSync(stamp, 'utf8') === hash
  ) {
    console.log('build: the native addon is up to date');
    return;
  }
  console.log(`build: the native addon (${compiler})`);
  mkdirSync(build, { recursive: true });
  rmSync(stamp, { force: true });
  const built = tool === 'cmake' ? await runCmake() : await runGyp();
  mkdirSync(path.dirname(output), { recursive: true });
  // Beside and renamed: a running process keeps the file it has mapped.
  copyFileSync(built, `${output}.new`);
  chmodSync(`${output}.new`, 0o755);
  renameSync(`${output}.new`, output);
  writeFileSync(stamp, hash);
  console.log(`build: ${path.relative(root, output)}`);
}

async function runCmake() {
  const out = path.join(build, 'cmake');
  const cmakeJs = path.join(root, 'node_modules/cmake-js/bin/cmake-js');
  const args = [cmakeJs, 'compile', '--out', out, '--parallel', jobs, '--loglevel', 'warn'];
  await run(process.execPath, args);
  return path.join(out, 'Release', 'toolfinch.node');
}

async function runGyp() {
  const nodeGyp = path.join(root, 'node_modules/node-gyp/bin/node-gyp.js');
  const args = [nodeGyp, 'rebuild', '--release', '--jobs', jobs];
  // Node's own installation brings the headers nearly everywhere; only without them does node-gyp fetch them.
  const prefix = path.resolve(path.dirname(process.execPath), '..');
  if (existsSync(path.join(prefix, 'include/node/common.gypi'))) args.push(`--nodedir=${prefix}`);
  // gyp insists on build/: keep what is there from other builds out of its way.
  const kept = path.join(root, 'build-kept');
  if (existsSync(build)) renameSync(build, kept);
  try {
    await run(process.execPath, args);
    mkdirSync(kept, { recursive: true });
    copyFileSync(
      path.join(build, 'Release', 'toolfinch.node'),
      path.join(kept, 'toolfinch-gyp.node'),
    );
  } finally {
    rmSync(build, { recursive: true, force: true });
    if (existsSync(kept)) renameSync(kept, build);
  }
  return path.join(build, 'toolfinch-gyp.node');
}

// --- TypeScript ------------------------------------------------------------------------------------------------

async function buildTypeScript() {
  console.log('build: TypeScript (ESM and CommonJS)');
  // The CommonJS copy is compiled from the same sources under a package.json that says so.
  const cjs = path.join(build, 'cjs');
  rmSync(cjs, { recursive: true, force: true });
  mkdirSync(cjs, { recursive: true });
  cpSync(path.join(root, 'lib'), path.join(cjs, 'lib'), { recursive: true });
  copyFileSync(path.join(root, 'scripts/cjs/prebuilt.ts'), path.join(cjs, 'lib/prebuilt.ts'));
  writeFileSync(path.join(cjs, 'package.json'), '{ "type": "commonjs" }\n');
  writeFileSync(
    path.join(cjs, 'tsconfig.json'),
    JSON.stringify({
      extends: path.join(root, 'tsconfig.json'),
      compilerOptions: {
        rootDir: '.',
        outDir: path.join(root, 'dist/cjs'),
        // Maps would point into this folder, which is not shipped.
        declarationMap: false,
        sourceMap: false,
        // The ESM pass checks the same sources.
        noCheck: true,
      },
      include: ['lib'],
    }),
  );
  rmSync(path.join(root, 'dist'), { recursive: true, force: true });
  mkdirSync(path.join(root, 'dist/cjs'), { recursive: true });
  writeFileSync(path.join(root, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n');
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  await Promise.all([
    run(process.execPath, [tsc, '-p', path.join(root, 'tsconfig.json')]),
    run(process.execPath, [tsc, '-p', path.join(cjs, 'tsconfig.json')]),
  ]);
  const command = path.join(root, 'dist/esm/bin/toolfinch.js');
  if (existsSync(command)) chmodSync(command, 0o755);
}

// --- Running ---------------------------------------------------------------------------------------------------

/** Runs a command, showing its output; rejects with its name when it fails. */
function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new Error(
            `${path.basename(args[0] ?? command)} failed (${signal ?? `exit code ${code}`}); its output is above.`,
          ),
        );
    });
  });
}
