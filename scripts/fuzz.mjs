// libFuzzer over the C ABI: first the kept inputs of native/fuzz/corpus, once each, then new ones for a while.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const targets = ['index_file', 'c_abi', 'truncate', 'bandit_state'];
const usage = `node scripts/fuzz.mjs [options]
  --minutes N    how long each target looks for new inputs (default 10)
  --target X     ${targets.join(', ')}; may be given several times (default: all)
  --replay       only run the kept inputs once, without libFuzzer if there is no clang
  --short        the form for CI: the kept inputs, and 10 s each where clang is there
  --minimise     afterwards, put the inputs worth keeping into native/fuzz/corpus (50 KB a target at most)
  --seed N
  --keep FOLDER  where new inputs and crashes go (default build/fuzz-work)
Needs clang 14 or newer with compiler-rt (Debian: clang-14 libclang-rt-14-dev); CXX names another clang++.`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    target: { type: 'string', multiple: true, default: targets },
    replay: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    minimise: { type: 'boolean', default: false },
    seed: { type: 'string', default: '0' },
    keep: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const unknown = values.target.find((target) => !targets.includes(target));
const minutes = values.short ? 1 / 6 : Number(values.minutes);
if (unknown !== undefined || !(minutes >= 0)) {
  console.error(unknown === undefined ? '--minutes must be a number' : `no target ${unknown}`);
  console.error(usage);
  process.exit(2);
}

const root = fileURLToPath(new URL('..', import.meta.url));
const runs = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
const clang = [process.env.CXX, 'clang++-14', 'clang++'].find(
  (name) => name?.includes('clang') && runs(name),
);
const fuzzing = clang !== undefined && !values.replay;
if (clang === undefined && !values.replay && !values.short) {
  console.error(`no clang++ was found.\n${usage}`);
  process.exit(2);
}
// Without libFuzzer the targets share the objects of the sanitized C++ tests.
const folder = path.join(root, 'build', fuzzing ? 'fuzz' : 'native-address-undefined');
const work = path.resolve(values.keep ?? path.join(root, 'build/fuzz-work'));

function run(command, args, env = {}) {
  return spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
  });
}

function must(command, args) {
  const { status, error } = run(command, args);
  if (status === 0) return;
  console.error(`${command} failed: ${error?.message ?? `exit code ${status}`}`);
  process.exit(1);
}

const settings = ['-DTOOLFINCH_FUZZ=ON', '-DTOOLFINCH_SANITIZE=address,undefined'];
settings.push('-DTOOLFINCH_WERROR=OFF');
if (fuzzing) settings.push(`-DCMAKE_CXX_COMPILER=${clang}`);
else settings.push('-DTOOLFINCH_TESTS=ON');
must('cmake', ['-S', '.', '-B', folder, ...settings]);
const programs = values.target.map((target) => `fuzz_${target}`);
const jobs = String(availableParallelism());
must('cmake', ['--build', folder, '-j', jobs, '--target', ...programs]);

const scratch = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'finch-'));
const env = {
  TOOLFINCH_FUZZ_SCRATCH: scratch,
  // A size that cannot be had is FINCH_NO_MEMORY, not an end.
  ASAN_OPTIONS: 'allocator_may_return_null=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1',
};
const limits = ['-rss_limit_mb=3000', '-timeout=60', '-verbosity=0', '-print_final_stats=1'];

function fuzz(target) {
  const program = path.join(folder, `fuzz_${target}`);
  const kept = path.join(root, 'native/fuzz/corpus', target);
  console.log(`\nfuzz ${target}: ${readdirSync(kept).length} kept inputs`);
  // libFuzzer reads a folder, runs what is in it and, with no runs allowed, stops there.
  const once = fuzzing ? ['-runs=0'] : [];
  if (run(program, [...limits.slice(0, 3), ...once, kept], env).status !== 0)
    return 'a kept input fails';
  if (!fuzzing || minutes === 0) return undefined;
  const found = path.join(work, target);
  mkdirSync(found, { recursive: true });
  console.log(`fuzz ${target}: ${Math.round(minutes * 60)} s of new ones`);
  const time = `-max_total_time=${Math.round(minutes * 60)}`;
  const crash = `-artifact_prefix=${work}/${target}-`;
  const args = [...limits, time, `-seed=${values.seed}`, crash, found, kept];
  if (run(program, args, env).status !== 0) return `an input fails: see ${work}/${target}-*`;
  return values.minimise ? minimise(program, kept, found) : undefined;
}

/** The fewest inputs that reach what all do, the smallest first, into `kept`. */
function minimise(program, kept, found) {
  const merged = mkdtempSync(path.join(scratch, 'merged-'));
  const quiet = ['-merge=1', '-verbosity=0', ...limits.slice(0, 2)];
  if (run(program, [...quiet, merged, kept, found], env).status !== 0) return 'merging failed';
  for (const name of readdirSync(kept)) {
    if (/^[0-9a-f]{40}$/.test(name)) rmSync(path.join(kept, name));
  }
  const size = (name) => statSync(path.join(merged, name)).size;
  let left =
    50_000 - readdirSync(kept).reduce((sum, name) => sum + statSync(path.join(kept, name)).size, 0);
  let copied = 0;
  for (const name of readdirSync(merged).sort((a, b) => size(a) - size(b))) {
    left -= size(name);
    if (left < 0) break;
    copyFileSync(path.join(merged, name), path.join(kept, name));
    copied++;
  }
  console.log(`fuzz: ${copied} of ${readdirSync(merged).length} inputs kept`);
  return undefined;
}

const failed = [];
try {
  for (const target of values.target) {
    const fault = fuzz(target);
    if (fault !== undefined) failed.push(`${target}: ${fault}`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const how = fuzzing
  ? `kept inputs and ${Math.round(minutes * 60)} s of new ones each`
  : 'kept inputs once each, no libFuzzer';
for (const line of failed) console.error(line);
console.log(
  `\nfuzz (${values.target.join(', ')}; ${how}): ${failed.length === 0 ? 'no fault' : 'FAULTS'}`,
);
process.exit(failed.length === 0 ? 0 : 1);
