/**
 * The CommonJS form of `lib/package-root.ts`: the same exports, without `import.meta`.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const here = __dirname;

/** The platforms that binaries are made for. */
export type PrebuiltTarget =
  | 'linux-x64'
  | 'linux-arm64'
  | 'linux-x64-musl'
  | 'linux-arm64-musl'
  | 'darwin-x64'
  | 'darwin-arm64'
  | 'win32-x64';

/** The folder of this package's package.json; where the compiled files lie when a bundler moved them away from it. */
export function packageRoot(): string {
  for (let folder = here; ; folder = dirname(folder)) {
    try {
      const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        name?: unknown;
      };
      if (name === 'toolfinch') return folder;
    } catch {
      // No package.json here: look further up.
    }
    if (folder === dirname(folder)) return here;
  }
}

/** Loads an addon from a path that only the user knows. */
export function requireAddon(path: string): unknown {
  return require(path);
}

/** Loads the addon of a platform. The paths are literal, so that a bundler finds and copies the files. */
export function requirePrebuilt(target: PrebuiltTarget): unknown {
  switch (target) {
    case 'linux-x64':
      return require('../../../prebuilds/linux-x64/toolfinch.node');
    case 'linux-arm64':
      return require('../../../prebuilds/linux-arm64/toolfinch.node');
    case 'linux-x64-musl':
      return require('../../../prebuilds/linux-x64-musl/toolfinch.node');
    case 'linux-arm64-musl':
      return require('../../../prebuilds/linux-arm64-musl/toolfinch.node');
    case 'darwin-x64':
      return require('../../../prebuilds/darwin-x64/toolfinch.node');
    case 'darwin-arm64':
      return require('../../../prebuilds/darwin-arm64/toolfinch.node');
    case 'win32-x64':
      return require('../../../prebuilds/win32-x64/toolfinch.node');
  }
}
