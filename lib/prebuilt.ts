/**
 * The binaries, each behind a require with a literal path, so that bundlers and file tracers find and copy the files. The
 * ESM form; the CommonJS build takes `scripts/cjs/prebuilt.ts` in its place: only one of the two may name `import.meta`,
 * and only a `require` of the file's own is followed.
 */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

/** The folder of this file. */
export const here = dirname(fileURLToPath(import.meta.url));

export const prebuilt = {
  'linux-x64': (): unknown => require('../../../prebuilds/linux-x64/toolfinch.node'),
  'linux-arm64': (): unknown => require('../../../prebuilds/linux-arm64/toolfinch.node'),
  'linux-x64-musl': (): unknown => require('../../../prebuilds/linux-x64-musl/toolfinch.node'),
  'linux-arm64-musl': (): unknown => require('../../../prebuilds/linux-arm64-musl/toolfinch.node'),
  'darwin-x64': (): unknown => require('../../../prebuilds/darwin-x64/toolfinch.node'),
  'darwin-arm64': (): unknown => require('../../../prebuilds/darwin-arm64/toolfinch.node'),
  'win32-x64': (): unknown => require('../../../prebuilds/win32-x64/toolfinch.node'),
};
