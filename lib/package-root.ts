/**
 * Where this package lies, and how its addon is loaded from there or from elsewhere.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { here, prebuilt } from './prebuilt.js';

/** The platforms that binaries are made for. */
export type PrebuiltTarget = keyof typeof prebuilt;

export const prebuiltTargets = Object.keys(prebuilt) as readonly PrebuiltTarget[];

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
  return createRequire(join(here, 'package-root.js'))(path);
}

/** Loads the addon of a platform. */
export function requirePrebuilt(target: PrebuiltTarget): unknown {
  return prebuilt[target]();
}
