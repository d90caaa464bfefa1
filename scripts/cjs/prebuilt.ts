/**
 * The CommonJS form of `lib/prebuilt.ts`: the same exports, without `import.meta`.
 */

/** The folder of this file. */
export const here = __dirname;

export const prebuilt = {
  'linux-x64': (): unknown => require('../../../prebuilds/linux-x64/toolfinch.node'),
  'linux-arm64': (): unknown => require('../../../prebuilds/linux-arm64/toolfinch.node'),
  'linux-x64-musl': (): unknown => require('../../../prebuilds/linux-x64-musl/toolfinch.node'),
  'linux-arm64-musl': (): unknown => require('../../../prebuilds/linux-arm64-musl/toolfinch.node'),
  'darwin-x64': (): unknown => require('../../../prebuilds/darwin-x64/toolfinch.node'),
  'darwin-arm64': (): unknown => require('../../../prebuilds/darwin-arm64/toolfinch.node'),
  'win32-x64': (): unknown => require('../../../prebuilds/win32-x64/toolfinch.node'),
};
