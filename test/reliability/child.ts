import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import ts from 'typescript';

/**
 * The sources that a store and the fake bandit need, as plain JavaScript in `folder`, so that a child process runs what
 * is under test and not an older build. The addon is left out: children use the fake bandit.
 */
export function compileStore(folder: string): void {
  const put = (name: string, text: string) => {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  const sources = [
    'lib/check.ts',
    'lib/describe-value.ts',
    'lib/errors.ts',
    'lib/eviction-queue.ts',
    ...readdirSync('lib/reliability')
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `lib/reliability/${name}`),
    'test/reliability/fake-bandit.ts',
  ];
  for (const source of sources) {
    const { outputText } = ts.transpileModule(readFileSync(source, 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
      fileName: source,
    });
    put(source.replace(/\.ts$/, '.js'), outputText);
  }
  put('package.json', '{ "type": "module" }');
  put('lib/native.js', 'export function binding() { throw new Error("no addon here"); }\n');
}

/** What a child's script can use: `store` on `process.argv[2]`, `say(value)`, and a way to decide. */
const prelude = `
import { FeedbackStore } from './lib/reliability/feedback-store.js';
import { FakeBandit } from './test/reliability/fake-bandit.js';
const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n');
const open = (more = {}) => FeedbackStore.open(process.argv[2], {
  bandit: { dimension: 4 }, createBandit: (options) => new FakeBandit(options), ...more,
});
const decide = (store, id, padding = 0) => store.decide({
  id, x: Float32Array.of(1, 2, 3, 4),
  toolIds: ['tool', ...Array.from({ length: padding }, (_, i) => 'padding-' + i + 'x'.repeat(200))],
  priors: new Float32Array(1 + padding).fill(0.5),
});
`;

export interface Child {
  process: ChildProcess;
  /** The next line the child said, parsed; rejects when it ends without one. */
  next(): Promise<unknown>;
  /** Exit code or signal, once it has ended. */
  ended: Promise<number | NodeJS.Signals | null>;
  errors(): string;
}

/** Runs `script` (with the prelude before it) beside the compiled sources; `shell` may set limits first. */
export function startChild(sources: string, folder: string, script: string, shell = ''): Child {
  const name = path.join(sources, `child-${process.pid}-${count++}.mjs`);
  writeFileSync(name, prelude + script);
  const child = spawn(
    'sh',
    ['-c', `${shell} exec "$0" "$1" "$2"`, process.execPath, name, folder],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  );
  const lines: string[] = [];
  const waiting: Array<{ resolve: (value: unknown) => void; reject: (error: Error) => void }> = [];
  let rest = '';
  let stderr = '';
  let over = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      const first = waiting.shift();
      if (first === undefined) lines.push(line);
      else first.resolve(JSON.parse(line));
    }
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => {
      over = true;
      for (const { reject } of waiting) reject(new Error(`the child ended: ${stderr}`));
      resolve(signal ?? code);
    });
  });
  return {
    process: child,
    ended,
    errors: () => stderr,
    next: () => {
      const line = lines.shift();
      if (line !== undefined) return Promise.resolve(JSON.parse(line));
      if (over) return Promise.reject(new Error(`the child ended: ${stderr}`));
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
  };
}

/** Runs `script` like {@link startChild}, in a thread of this process; what it says are messages. */
export function startWorker(sources: string, folder: string, script: string): Worker {
  const name = path.join(sources, `worker-${process.pid}-${count++}.mjs`);
  const say = "import { parentPort } from 'node:worker_threads';\n";
  writeFileSync(
    name,
    say +
      prelude.replace(/const say = .*/, 'const say = (value) => parentPort.postMessage(value);') +
      script,
  );
  return new Worker(name, { argv: [folder], execArgv: [] });
}

let count = 0;
