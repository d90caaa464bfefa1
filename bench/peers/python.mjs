// Python's libraries in a process of their own that does one timed call at a time, when told to.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('python_peers.py', import.meta.url));

export class PythonProcess {
  #child;
  #waiting = [];
  #ended;

  /** @param threads how many threads its libraries may use; the CPUs are this process's at this moment */
  constructor(interpreter, threads, env = {}) {
    const count = String(threads);
    this.#child = spawn(interpreter, [script], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        ...process.env,
        OMP_NUM_THREADS: count,
        OPENBLAS_NUM_THREADS: count,
        MKL_NUM_THREADS: count,
        ...env,
      },
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const answer = JSON.parse(line);
      const { resolve, reject } = this.#waiting.shift();
      if (answer.error) reject(new Error(answer.error));
      else resolve(answer);
    });
    this.#child.on('error', (error) => this.#end(error));
    this.#child.on('exit', (code) => this.#end(new Error(`the Python process ended (${code})`)));
  }

  ask(request) {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    });
  }

  close() {
    this.#child.stdin.end();
  }

  #end(error) {
    this.#ended = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}

/** What OpenBLAS must be told to use AVX-512 on machines it does not know. */
export function pythonEnvironment(levels) {
  if (process.env.OPENBLAS_CORETYPE || levels.read !== 'avx512') return {};
  return { OPENBLAS_CORETYPE: 'SkylakeX' };
}

/** Peers that share one process; where there is a matrix unit, bf16 is measured with and without it. */
export function pythonPeers(interpreter, levels) {
  const base = pythonEnvironment(levels);
  const groups = [{ names: ['numpy', 'faiss IndexFlatIP', 'torch f32', 'torch bf16'], env: base }];
  if (levels.tile) {
    groups.push({
      names: ['torch bf16 without AMX'],
      env: { ...base, ONEDNN_MAX_CPU_ISA: 'AVX512_CORE_BF16' },
    });
  }
  return groups.map(({ names, env }) => ({
    names,
    async prepare({ count, dimension, threads, matrixFile, queriesFile }) {
      const child = new PythonProcess(interpreter, threads, env);
      await child.ask({
        do: 'load',
        matrix: matrixFile(),
        queries: queriesFile(),
        count,
        dimension,
        threads,
        peers: names,
      });
      return {
        contestants: (asked) =>
          names.map((peer) => ({
            name: peer,
            queries: asked,
            settleMs: 5,
            timed: async (times) => (await child.ask({ do: 'time', peer, asked, times })).seconds,
            found: () => child.ask({ do: 'found', peer, asked }),
          })),
        close: () => child.close(),
      };
    },
  }));
}
