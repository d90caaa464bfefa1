import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { aList, aString, fields, optional } from '../check.js';
import { FinchError } from '../errors.js';
import { packageRoot } from '../package-root.js';

export interface RuntimeOptions {
  /** The onnxruntime library itself. Wins over everything else. */
  runtimePath?: string | undefined;
  /** Folders from which `onnxruntime-node` is resolved, first match wins. Default: the working directory, then this package's. */
  from?: readonly string[] | undefined;
  /** Default `process.platform`. */
  platform?: string | undefined;
  /** Default `process.arch`. */
  arch?: string | undefined;
  /** Default `process.env`. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
}

const libraryNames: Readonly<Record<string, readonly string[]>> = {
  linux: ['libonnxruntime.so.1', 'libonnxruntime.so'],
  darwin: ['libonnxruntime.1.dylib', 'libonnxruntime.dylib'],
  win32: ['onnxruntime.dll'],
};

const installHint =
  'Run `npm install onnxruntime-node`. Its install script downloads GPU files and can fail behind a proxy; only the ' +
  'files already in the package are needed, so `ONNXRUNTIME_NODE_INSTALL=skip npm install onnxruntime-node` is enough. ' +
  'Or give the path of an onnxruntime library by the option runtimePath or the variable TOOLFINCH_ONNXRUNTIME';

function resolvePackage(from: readonly string[]): string | undefined {
  for (const folder of from) {
    const require = createRequire(path.join(path.resolve(folder), 'resolve.js'));
    try {
      return path.dirname(require.resolve('onnxruntime-node/package.json'));
    } catch {
      // Not installed here; the next folder may have it.
    }
  }
  return undefined;
}

const anOptions = fields({
  runtimePath: optional(aString),
  from: optional(aList(aString)),
  platform: optional(aString),
  arch: optional(aString),
  env: optional(fields({ TOOLFINCH_ONNXRUNTIME: optional(aString) })),
});

/**
 * Finds the onnxruntime library that runs encoders: `runtimePath`, else the variable TOOLFINCH_ONNXRUNTIME, else the
 * one that the optional peer `onnxruntime-node` carries for this system.
 *
 * @returns an absolute path to a file that exists.
 * @throws FinchError FINCH_DEVICE, which says what was looked for and what to install.
 */
export function findRuntime(options: RuntimeOptions = {}): string {
  anOptions(options, 'options');
  const { platform = process.platform, arch = process.arch, env = process.env } = options;
  const named: ReadonlyArray<readonly [string, string | undefined]> = [
    ['the option runtimePath', options.runtimePath],
    ['the variable TOOLFINCH_ONNXRUNTIME', env.TOOLFINCH_ONNXRUNTIME],
  ];
  for (const [source, file] of named) {
    if (file === undefined || file === '') continue;
    if (!existsSync(file)) {
      throw new FinchError(
        'FINCH_DEVICE',
        `${source} names ${file}, which does not exist; expected the path of an onnxruntime shared library`,
      );
    }
    return path.resolve(file);
  }

  const from = options.from ?? [process.cwd(), packageRoot()];
  const root = resolvePackage(from);
  if (root === undefined) {
    throw new FinchError(
      'FINCH_DEVICE',
      `the package onnxruntime-node, which carries the library that runs ONNX encoders, is not installed (looked from ` +
        `${from.map((folder) => path.resolve(folder)).join(', ')}). ${installHint}`,
    );
  }
  const bin = path.join(root, 'bin');
  const layouts = existsSync(bin)
    ? readdirSync(bin)
        .filter((name) => /^napi-v\d+$/.test(name))
        .sort((a, b) => Number(b.slice(6)) - Number(a.slice(6)))
    : [];
  for (const layout of layouts) {
    for (const name of libraryNames[platform] ?? []) {
      const file = path.join(bin, layout, platform, arch, name);
      if (existsSync(file)) return file;
    }
  }
  const carried = layouts.flatMap((layout) =>
    readdirSync(path.join(bin, layout)).flatMap((os) =>
      readdirSync(path.join(bin, layout, os)).map((cpu) => `${os}/${cpu}`),
    ),
  );
  throw new FinchError(
    'FINCH_DEVICE',
    `onnxruntime-node at ${root} has no library for ${platform}/${arch} (it has: ${carried.join(', ') || 'none'}). ` +
      installHint,
  );
}
