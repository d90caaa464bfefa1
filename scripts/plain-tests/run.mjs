// Runs test files written for vitest where vitest itself cannot run (its bundler is native code for this machine alone):
// in an emulated Node, for instance.
//   node scripts/plain-tests/run.mjs test/native/golden.test.ts ...
import { register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

register('./hooks.mjs', import.meta.url);
const { runAll } = await import('./vitest.mjs');

let failed = 0;
let passed = 0;
for (const file of process.argv.slice(2)) {
  await import(pathToFileURL(path.resolve(file)).href);
  const result = await runAll();
  passed += result.passed;
  failed += result.failed.length;
  for (const { name, error } of result.failed) {
    console.error(`FAILED ${file}: ${name}\n${error?.stack ?? error}`);
  }
  console.log(`${file}: ${result.passed} passed, ${result.failed.length} failed`);
}
console.log(`${passed} tests passed, ${failed} failed (${process.arch})`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
