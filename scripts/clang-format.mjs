// Checks (or, with --write, applies) clang-format over native/. Named versions first: the style differs between releases.
import { execFileSync, spawnSync } from 'node:child_process';

const candidates = ['clang-format-14', 'clang-format'];
const tool = candidates.find((name) => spawnSync(name, ['--version']).status === 0);
if (tool === undefined) {
  console.error('clang-format 14 is missing: apt-get install clang-format-14');
  process.exit(1);
}
const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'native'], {
  encoding: 'utf8',
});
const files = listed.split('\n').filter((file) => /\.(?:c|h|cpp|hpp|cu)$/.test(file));
const mode = process.argv.includes('--write') ? ['-i'] : ['--dry-run', '--Werror'];
process.exit(spawnSync(tool, [...mode, ...files], { stdio: 'inherit' }).status ?? 1);
