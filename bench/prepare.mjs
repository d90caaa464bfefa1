// What the suite needs before it can measure: the probe, peers' packages, a Python environment. Made once and kept.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const scratch = path.join(root, '.cache', 'bench');
const folder = path.join(root, 'bench');

/** Builds (or brings up to date) and loads native/bench's addon. TOOLFINCH_PROBE names one that is there already. */
export function loadProbe(log) {
  const require = createRequire(import.meta.url);
  if (process.env.TOOLFINCH_PROBE) return require(path.resolve(process.env.TOOLFINCH_PROBE));
  return require(buildProbe(log));
}

function buildProbe(log) {
  // The folder of `npm run build` has the core compiled already; without one, or where it is of another place, our own.
  const folders = [path.join(root, 'build', 'cmake'), path.join(root, 'build', 'bench')];
  if (!existsSync(path.join(folders[0], 'CMakeCache.txt'))) folders.shift();
  log(`building native/bench in ${path.relative(root, folders[0])}`);
  for (const folder of folders) {
    try {
      const options = ['-DTOOLFINCH_BENCH=ON', '-DCMAKE_BUILD_TYPE=Release'];
      run('cmake', ['-S', root, '-B', folder, ...options]);
      const jobs = String(os.availableParallelism());
      run('cmake', ['--build', folder, '-j', jobs, '--target', 'toolfinch_probe']);
      return path.join(folder, 'native', 'bench', 'probe.node');
    } catch (error) {
      if (folder === folders.at(-1)) throw error;
    }
  }
  throw new Error('there is no folder to build in');
}

/** Installs bench/package.json's peers when they are missing and that is allowed; false when they are not there after. */
export function installPeers(log, offline) {
  if (
    existsSync(path.join(folder, 'node_modules', 'hnswlib-node', 'build', 'Release', 'addon.node'))
  )
    return true;
  if (offline) return false;
  log('installing the peers of bench/package.json');
  // hnswlib-node is compiled here; Node's own installation brings the headers nearly everywhere.
  const prefix = path.resolve(path.dirname(process.execPath), '..');
  const headers = [prefix, '/usr'].find((at) =>
    existsSync(path.join(at, 'include/node/node_api.h')),
  );
  const env = { ...process.env, ...(headers && { npm_config_nodedir: headers }) };
  const args = ['ci', '--no-audit', '--no-fund', '--silent'];
  const { status } = spawnSync('npm', args, {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return status === 0;
}

const pythonPackages = ['numpy==2.4.6', 'faiss-cpu==1.15.1', 'torch==2.13.0'];

/** The interpreter of the peers' virtual environment, made when missing; undefined when that fails or may not be. */
export function pythonInterpreter(log, offline) {
  if (process.env.TOOLFINCH_BENCH_PYTHON) return process.env.TOOLFINCH_BENCH_PYTHON;
  const venv = path.join(root, '.cache', 'bench-python');
  const python = path.join(venv, 'bin', 'python');
  const works = () =>
    spawnSync(python, ['-c', 'import numpy, faiss, torch'], { stdio: 'ignore' }).status === 0;
  if (existsSync(python) && works()) return python;
  if (offline) return undefined;
  log(`making ${path.relative(root, venv)} with ${pythonPackages.join(', ')}`);
  mkdirSync(path.dirname(venv), { recursive: true });
  const quiet = { stdio: ['ignore', 'ignore', 'inherit'] };
  if (spawnSync('python3', ['-m', 'venv', venv], quiet).status !== 0) return undefined;
  if (spawnSync(python, ['-m', 'pip', 'install', '-q', ...pythonPackages], quiet).status !== 0)
    return undefined;
  return works() ? python : undefined;
}

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(
    `${command} ${args.join(' ')} failed: the benchmarks need CMake and a C++ compiler for their probe.\n` +
      `${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`,
  );
}
