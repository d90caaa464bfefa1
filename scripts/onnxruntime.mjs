// Where the tests and programs in C++ find onnxruntime.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** The library that TOOLFINCH_ONNXRUNTIME names, or that onnxruntime-node ships, and whether it is there. */
export function onnxruntimeLibrary(root) {
  const file =
    process.env.TOOLFINCH_ONNXRUNTIME ??
    path.join(
      root,
      'node_modules/onnxruntime-node/bin/napi-v6',
      process.platform,
      process.arch,
      'libonnxruntime.so.1',
    );
  return { file, isThere: existsSync(file) };
}
