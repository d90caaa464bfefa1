// Builds and runs the C++ tests (GoogleTest) with what they need from node_modules.
//   node scripts/native-tests.mjs [--sanitize address,undefined|thread] [--filter GTEST_FILTER]
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { sanitize: { type: 'string' }, filter: { type: 'string' } },
});
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = path.join(
  root,
  'build',
  values.sanitize === undefined ? 'native-test' : `native-${values.sanitize.replaceAll(',', '-')}`,
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
run('cmake', ['--build', folder, '-j', String(availableParallelism())]);

const runtime =
  process.env.TOOLFINCH_ONNXRUNTIME ??
  path.join(
    root,
    'node_modules/onnxruntime-node/bin/napi-v6',
    process.platform,
    process.arch,
    'libonnxruntime.so.1',
  );
if (!existsSync(runtime)) console.error(`without ${runtime} the tests of the runtime are skipped`);
run(
  path.join(folder, 'toolfinch_tests'),
  values.filter === undefined ? [] : [`--gtest_filter=${values.filter}`],
  {
    ...(existsSync(runtime) ? { TOOLFINCH_ONNXRUNTIME: runtime } : {}),
    LSAN_OPTIONS: `suppressions=${path.join(root, 'native/test/lsan.supp')}:print_suppressions=0`,
  },
);
