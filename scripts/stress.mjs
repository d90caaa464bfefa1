// All calls at once from many threads (native/stress), under a sanitizer; and exit() amid all that.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { onnxruntimeLibrary } from './onnxruntime.mjs';

const usage = `node scripts/stress.mjs [options]
  --sanitize LIST   thread (the default), address,undefined, or none
  --seconds N       how long all calls run at once (default 60; short form 5)
  --exits N         how often a process leaves amid work (default 50; short form 5)
  --threads N       calling threads (default 8)
  --pool N          threads of the pool (default 3)
  --seed N          (default: the time)
  --short           the form for CI`;

const { values } = parseArgs({
  options: {
    sanitize: { type: 'string', default: 'thread' },
    seconds: { type: 'string' },
    exits: { type: 'string' },
    threads: { type: 'string', default: '8' },
    pool: { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    short: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const seconds = Number(values.seconds ?? (values.short ? 5 : 60));
const exits = Number(values.exits ?? (values.short ? 5 : 50));
const root = fileURLToPath(new URL('..', import.meta.url));
const sanitize = values.sanitize === 'none' ? '' : values.sanitize;
const name = sanitize === '' ? 'native-test' : `native-${sanitize.replaceAll(',', '-')}`;
const folder = path.join(root, 'build', name);

function run(command, args, env = {}) {
  return spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...env },
    timeout: (seconds + 600) * 1000,
  });
}

function must(command, args) {
  const { status, signal, error } = run(command, args);
  if (status === 0) return;
  console.error(`${command} failed: ${error?.message ?? signal ?? `exit code ${status}`}`);
  process.exit(1);
}

const settings = ['-DTOOLFINCH_TESTS=ON'];
// Instrumented code makes gcc warn falsely; the plain build treats warnings as errors.
if (sanitize !== '') settings.push(`-DTOOLFINCH_SANITIZE=${sanitize}`, '-DTOOLFINCH_WERROR=OFF');
must('cmake', ['-S', '.', '-B', folder, ...settings]);
const jobs = String(availableParallelism());
must('cmake', ['--build', folder, '--target', 'toolfinch_stress', '-j', jobs]);

const scratch = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'finch-'));
const runtime = onnxruntimeLibrary(root);
const suppressions = (name) => `suppressions=${path.join(root, 'native/test', name)}`;
const env = {
  TMPDIR: scratch,
  TOOLFINCH_THREADS: values.pool,
  TSAN_OPTIONS: 'halt_on_error=1:second_deadlock_stack=1:exitcode=66',
  LSAN_OPTIONS: `${suppressions('lsan.supp')}:print_suppressions=0`,
  ASAN_OPTIONS: 'detect_leaks=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};
// Reranking needs the library, and the library its suppressions. Without it the program's last line says that nothing was.
const reranking = runtime.isThere
  ? {
      TOOLFINCH_ONNXRUNTIME: runtime.file,
      TSAN_OPTIONS: `${env.TSAN_OPTIONS}:${suppressions('tsan.supp')}`,
    }
  : {};
const program = path.join(folder, 'toolfinch_stress');
const common = ['--threads', values.threads];
let faults = 0;
try {
  console.log(`stress: ${seconds} s, ${values.threads} threads, seed ${values.seed}, ${name}`);
  const all = run(program, [...common, '--seconds', String(seconds), '--seed', values.seed], {
    ...env,
    ...reranking,
  });
  if (all.status !== 0) {
    faults++;
    console.error(`stress: ended with ${all.signal ?? `exit code ${all.status}`}`);
  }
  for (let i = 0; i < exits; i++) {
    const after = String((i * 37) % 400);
    const seed = String(Number(values.seed) + i);
    // A process that leaves amid work keeps what its threads hold; that is no leak. Half of them leave without the library,
    // so that nothing of our own end is suppressed.
    const left = run(program, [...common, '--exit-after', after, '--seed', seed, '--rows', '300'], {
      ...env,
      ...(i % 2 === 0 ? {} : reranking),
      ASAN_OPTIONS: `${env.ASAN_OPTIONS}:detect_leaks=0`,
    });
    if (left.status === 0) continue;
    faults++;
    console.error(`exit() after ${after} ms (seed ${seed}): ${left.signal ?? left.status}`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(
  `stress (${name}): ${seconds} s of all calls at once, ${exits} exits amid work: ` +
    (faults === 0 ? 'no fault' : `${faults} FAULTS`),
);
process.exit(faults === 0 ? 0 : 1);
