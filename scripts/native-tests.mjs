// Builds and runs the C++ tests (GoogleTest) with what they need from node_modules.
//   node scripts/native-tests.mjs [--sanitize address,undefined|thread] [--filter GTEST_FILTER] [--every-isa] [--valgrind]
// --every-isa: once for each instruction set that this machine has, TOOLFINCH_ISA naming it. --valgrind: under memcheck,
// which knows no AVX-512, so with TOOLFINCH_ISA=avx2 (and with little patience without a --filter).
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { onnxruntimeLibrary } from './onnxruntime.mjs';

const { values } = parseArgs({
  options: {
    sanitize: { type: 'string' },
    filter: { type: 'string' },
    'every-isa': { type: 'boolean', default: false },
    valgrind: { type: 'boolean', default: false },
  },
});
const root = fileURLToPath(new URL('..', import.meta.url));
// Where the addon was built, the core need not be compiled again.
const plain = existsSync(path.join(root, 'build/cmake/CMakeCache.txt')) ? 'cmake' : 'native-test';
const folder = path.join(
  root,
  'build',
  values.sanitize === undefined ? plain : `native-${values.sanitize.replaceAll(',', '-')}`,
);

const run = (command, args, env = {}) => {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (error !== undefined || status !== 0) {
    console.error(`${command} ${args[0] ?? ''} failed: ${error?.message ?? `exit code ${status}`}`);
    process.exit(1);
  }
};

run('cmake', [
  '-S',
  '.',
  '-B',
  folder,
  '-DTOOLFINCH_TESTS=ON',
  // Instrumented code makes gcc warn falsely; the plain build treats warnings as errors.
  ...(values.sanitize === undefined
    ? []
    : [`-DTOOLFINCH_SANITIZE=${values.sanitize}`, '-DTOOLFINCH_WERROR=OFF']),
]);
const programs = ['toolfinch_tests', 'toolfinch_stress'];
const jobs = String(availableParallelism());
run('cmake', ['--build', folder, '-j', jobs, '--target', ...programs]);

const runtime = onnxruntimeLibrary(root);
if (!runtime.isThere) console.error(`without ${runtime.file} the tests of the runtime are skipped`);
const program = path.join(folder, 'toolfinch_tests');
const filter = values.filter === undefined ? [] : [`--gtest_filter=${values.filter}`];
const env = {
  ...(runtime.isThere ? { TOOLFINCH_ONNXRUNTIME: runtime.file } : {}),
  LSAN_OPTIONS: `suppressions=${path.join(root, 'native/test/lsan.supp')}:print_suppressions=0`,
};
if (values.valgrind) {
  const options = ['--error-exitcode=9', '--leak-check=full', '--errors-for-leak-kinds=definite'];
  run('valgrind', [...options, '-q', program, ...filter], { ...env, TOOLFINCH_ISA: 'avx2' });
} else if (values['every-isa']) {
  const listed = execFileSync(path.join(folder, 'toolfinch_stress'), ['--levels']).toString();
  for (const level of listed.trim().split('\n')) {
    console.log(`\nTOOLFINCH_ISA=${level}`);
    run(program, [...filter, '--gtest_brief=1'], { ...env, TOOLFINCH_ISA: level });
  }
} else {
  run(program, filter, env);
}
