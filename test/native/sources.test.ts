// native/sources.json is what both build systems read: it must list exactly the files that are there.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

import { root } from './addon.js';

interface KernelSet {
  arch: string[];
  sources: string[];
  flags: Record<string, string[]>;
}
interface Sources {
  core: string[];
  onnx: string[];
  node: string[];
  kernels: Record<string, KernelSet>;
}

const sources = JSON.parse(readFileSync(path.join(root, 'native/sources.json'), 'utf8')) as Sources;

function filesOf(room: string): string[] {
  return readdirSync(path.join(root, 'native', room), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.cpp'))
    .map((file) => path.posix.join('native', room, file.replaceAll('\\', '/')))
    .sort();
}

test.each(['core', 'onnx', 'node'] as const)('lists the files of native/%s', (room) => {
  expect([...sources[room]].sort()).toEqual(filesOf(room));
});

test('lists the files of native/kernels, each in one set', () => {
  const listed = Object.values(sources.kernels).flatMap((set) => set.sources);
  expect([...listed].sort()).toEqual(filesOf('kernels'));
});

test('compiles a kernel with the flags of its own instruction set only', () => {
  for (const [name, set] of Object.entries(sources.kernels)) {
    for (const file of set.sources) {
      const isa = path.basename(file, '.cpp');
      expect(isa === 'portable' || isa === 'resolver' ? 'baseline' : isa).toBe(name);
    }
  }
  expect(sources.kernels.baseline?.flags.gnu).toEqual([]);
});

test('binding.gyp takes every list from it', () => {
  const gyp = readFileSync(path.join(root, 'binding.gyp'), 'utf8');
  expect(gyp).not.toMatch(/native\/\w+\/[\w/]+\.cpp/);
  for (const list of [
    'core',
    'onnx',
    'node',
    ...Object.keys(sources.kernels).map((set) => `kernels.${set}.sources`),
  ]) {
    expect(gyp).toContain(`').${list}.join`);
  }
});
