/**
 * Which binary this machine needs, and, when it does not load, why and what to do about it.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { type PrebuiltTarget, prebuiltTargets } from './package-root.js';

/** The binary for a machine, or undefined when there is none. Of this process's machine when nothing is given. */
export function prebuiltTarget(
  platform: string = process.platform,
  arch: string = process.arch,
  musl: boolean = platform === 'linux' && usesMusl(),
): PrebuiltTarget | undefined {
  const name = `${platform}-${arch}${musl ? '-musl' : ''}`;
  return prebuiltTargets.find((target) => target === name);
}

/** Whether this process runs on musl (Alpine) rather than glibc: what is mapped decides, not what is installed. */
function usesMusl(): boolean {
  try {
    return readFileSync('/proc/self/maps', 'latin1').includes('/ld-musl-');
  } catch {
    return existsSync('/etc/alpine-release');
  }
}

/** Whether `require` found no such file; a file that is there and broken is another matter. */
export function isMissingModule(error: unknown): boolean {
  return codeOf(error) === 'MODULE_NOT_FOUND';
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

export interface LoadAttempt {
  /** undefined: no binary is made for this machine. */
  target: PrebuiltTarget | undefined;
  /** The path that the user gave. */
  file?: string | undefined;
  /** packageRoot(). */
  root: string;
}

/** One message: what failed, the most likely cause, the mend. */
export function explainLoadFailure(error: unknown, attempt: LoadAttempt): string {
  const machine = attempt.target ?? `${process.platform}-${process.arch}`;
  const { cause, mend } = diagnose(error, attempt, machine);
  return `Toolfinch's native addon could not be loaded: ${cause} ${mend}`;
}

interface Diagnosis {
  cause: string;
  mend: string;
}

function diagnose(error: unknown, attempt: LoadAttempt, machine: string): Diagnosis {
  const message = error instanceof Error ? error.message : String(error);
  const checkout = existsSync(path.join(attempt.root, 'native', 'sources.json'));
  const rebuild = checkout
    ? 'Build it here: npm run build (needs a C++20 compiler and CMake 3.20).'
    : 'Build it on this machine from a checkout of the same release (npm run build), and name it in TOOLFINCH_BINDING.';

  if (codeOf(error) === 'ERR_DLOPEN_DISABLED') {
    return {
      cause: 'this Node process may not load native addons.',
      mend:
        'Start Node without --no-addons; under the permission model, add --allow-addons. In a Worker, check its ' +
        'execArgv too.',
    };
  }
  if (codeOf(error) === 'ERR_ACCESS_DENIED') {
    return {
      cause: `Node's permission model denied it (${message}).`,
      mend: `Allow reading ${attempt.root} (--allow-fs-read) and, where Node has it, --allow-addons.`,
    };
  }
  if (attempt.file === undefined && attempt.target === undefined) {
    return {
      cause: `there is no binary for ${machine}. Binaries exist for ${prebuiltTargets.join(', ')}.`,
      mend: rebuild,
    };
  }
  if (isMissingModule(error)) return diagnoseMissing(attempt, machine, checkout);
  if (/ld-musl-|libc\.musl-/.test(message)) {
    return {
      cause: `the binary is for musl (Alpine Linux) but this process runs on glibc (${message}).`,
      mend: `Use the binary of this machine (${machine}): reinstall here instead of copying node_modules. ${rebuild}`,
    };
  }
  if (
    /ld-linux-|libc\.so\.6/.test(message) &&
    /no such file|not found|loading shared library/i.test(message)
  ) {
    if (!/version [`'"]/.test(message)) {
      return {
        cause: `the binary is for glibc but this process runs on musl, as on Alpine Linux (${message}).`,
        mend: `Reinstall on this machine instead of copying node_modules, or use a glibc image. ${rebuild}`,
      };
    }
  }
  const version = /version [`'"]((?:GLIBC|GLIBCXX|CXXABI)_[\w.]+)['"`] not found/.exec(
    message,
  )?.[1];
  if (version !== undefined) {
    const library = version.startsWith('GLIBC_') ? 'C library (glibc)' : 'C++ library (libstdc++)';
    return {
      cause: `this system's ${library} is too old: the binary needs ${version}.`,
      mend: `Use a newer system or container image. ${rebuild}`,
    };
  }
  if (
    /incompatible architecture|wrong ELF class|need '|Exec format error|not a valid Win32 application/i.test(
      message,
    )
  ) {
    return {
      cause: `the binary is for another processor than ${process.arch} (${message}).`,
      mend:
        'node_modules or the checkout was copied from another machine, or Node runs translated (Rosetta, qemu): ' +
        `install with the Node you run. ${rebuild}`,
    };
  }
  if (
    /invalid ELF header|file too short|not a mach-o file|slice is not valid|truncated/i.test(
      message,
    )
  ) {
    return {
      cause: `the file is no binary of this system, or it is damaged (${message}).`,
      mend: `Reinstall toolfinch; node_modules copied from another operating system does this too. ${rebuild}`,
    };
  }
  if (
    /cannot open shared object file|Library not loaded|specified module could not be found/i.test(
      message,
    )
  ) {
    return {
      cause: `a library that it needs is missing (${message}).`,
      mend: `Install the library named there with the system's package manager. ${rebuild}`,
    };
  }
  return { cause: `it is there but loading it failed (${message}).`, mend: rebuild };
}

function diagnoseMissing(attempt: LoadAttempt, machine: string, checkout: boolean): Diagnosis {
  if (attempt.file !== undefined) {
    return {
      cause: `there is no file ${attempt.file}.`,
      mend: 'It was named by TOOLFINCH_BINDING or setNativeBinding(): correct the path, or leave it out.',
    };
  }
  if (checkout) {
    return {
      cause: `this checkout was not built yet (no prebuilds/${machine}/toolfinch.node).`,
      mend: 'Run: npm run build',
    };
  }
  return {
    cause: `the binary for ${machine} is not where it belongs (prebuilds/${machine}/toolfinch.node in ${attempt.root}).`,
    mend:
      'The package was installed incompletely, or a bundler left it behind: reinstall toolfinch; in a bundle, mark it ' +
      `external, or copy the file and call setNativeBinding(require('toolfinch/native/${machine}')) first.`,
  };
}
