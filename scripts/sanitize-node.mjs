// The TypeScript tests with an addon built for AddressSanitizer and UndefinedBehaviorSanitizer, preloaded into Node; at
// the end of each process LeakSanitizer looks for what nobody holds any more.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `node scripts/sanitize-node.mjs [options] [test files...]
  --short       the form for CI: test/native without the tests that end processes and workers hundreds of times
  --tries N     TOOLFINCH_TRIES of the tests that look for races (default 4)
  --no-leaks    without LeakSanitizer
Runs every test of the package without names. Needs gcc's libasan, and dist/ (npm run build).`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    tries: { type: 'string', default: '4' },
    'no-leaks': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const root = fileURLToPath(new URL('..', import.meta.url));
if (!existsSync(path.join(root, 'dist/esm/lib/native.js'))) {
  console.error('dist/ is missing: run `npm run build` first');
  process.exit(2);
}
const library = (name) =>
  execFileSync('g++', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim();
const asan = library('libasan.so');
if (!path.isAbsolute(asan)) {
  console.error('gcc has no libasan.so here');
  process.exit(2);
}

function must(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status === 0) return;
  console.error(`${command} failed: ${error?.message ?? `exit code ${status}`}`);
  process.exit(1);
}
// The folder of the sanitized C++ tests: the core is compiled once for both.
const folder = path.join(root, 'build/native-address-undefined');
const settings = ['-DTOOLFINCH_TESTS=ON', '-DTOOLFINCH_ADDON=ON', '-DTOOLFINCH_WERROR=OFF'];
must('cmake', ['-S', '.', '-B', folder, ...settings, '-DTOOLFINCH_SANITIZE=address,undefined']);
must('cmake', ['--build', folder, '--target', 'toolfinch', '-j', String(availableParallelism())]);

const reports = mkdtempSync(path.join(tmpdir(), 'finch-sanitize-'));
const options = [
  `log_path=${reports}/asan`,
  `detect_leaks=${values['no-leaks'] ? 0 : 1}`,
  // What a test asks for in vain is FINCH_NO_MEMORY, not an end.
  'allocator_may_return_null=1',
  // Node maps code for its compiler at runtime; its own handlers are kept.
  'handle_segv=0',
  'fast_unwind_on_malloc=1',
  // Freed memory is kept back for a while, but not so much that tests of memory see it.
  'quarantine_size_mb=8',
];
const suppressions = path.join(root, 'native/test/lsan-node.supp');
const files = positionals.length > 0 ? positionals : values.short ? ['test/native/'] : [];
// Which addon is loaded and what it is built of is not the question here: TOOLFINCH_BINDING says it.
const apart = ['loader', 'sources', ...(values.short ? ['exit', 'workers', 'event-loop'] : [])];
const without = ['--exclude', `test/native/{${apart.join(',')}}.test.ts`];
const { status } = spawnSync(
  process.execPath,
  [path.join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...files, ...without],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      TOOLFINCH_BINDING: path.join(folder, 'toolfinch.node'),
      TOOLFINCH_TRIES: values.tries,
      LD_PRELOAD: asan,
      ASAN_OPTIONS: options.join(':'),
      UBSAN_OPTIONS: `print_stacktrace=1:halt_on_error=1:log_path=${reports}/ubsan`,
      LSAN_OPTIONS: `suppressions=${suppressions}:print_suppressions=0`,
    },
  },
);
let reported = 0;
for (const name of readdirSync(reports)) {
  const text = readFileSync(path.join(reports, name), 'utf8');
  if (!/ERROR|runtime error/.test(text)) continue;
  reported++;
  console.error(`\n${name}:\n${text.slice(0, 6000)}`);
}
rmSync(reports, { recursive: true });
const fine = status === 0 && reported === 0;
console.log(
  `sanitize-node: tests ${status === 0 ? 'passed' : 'FAILED'}, ${reported} reports of a sanitizer: ` +
    (fine ? 'no fault' : 'FAULT'),
);
process.exit(fine ? 0 : 1);
