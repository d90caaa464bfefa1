// Packs the package and looks at it as a consumer would: publint, types for ESM and CommonJS, no install script, and the
// tarball installed into an empty project and used both ways.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'toolfinch-package-'));
const run = (command, args, cwd = folder) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const fail = (message) => {
  throw new Error(message);
};

try {
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], root));
  const tarball = path.join(folder, packed.filename);
  const names = packed.files.map(({ path: name }) => name);
  const wanted = [
    'dist/esm/lib/index.js',
    'dist/cjs/lib/index.js',
    'models/toolfinch-retriever/model.onnx',
    'LICENSE',
  ];
  for (const name of wanted) if (!names.includes(name)) fail(`${name} is not in the tarball`);
  if (!names.some((name) => /^prebuilds\/.*\.node$/.test(name))) fail('no addon in the tarball');
  for (const name of names) {
    if (
      /binding\.gyp|CMakeLists|^test\/|^training\/|^scripts\/|\.ts$/.test(name) &&
      !name.endsWith('.d.ts')
    ) {
      fail(`${name} does not belong in the tarball`);
    }
  }
  const { scripts = {} } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish']) {
    if (name in scripts) fail(`package.json has the lifecycle script ${name}`);
  }
  console.log(
    `packed ${packed.entryCount} files, ${(packed.unpackedSize / 1e6).toFixed(1)} MB unpacked`,
  );

  console.log(run('npx', ['--no-install', 'publint', '--strict', tarball], root).trim());
  console.log(run('npx', ['--no-install', 'attw', tarball, '--profile', 'node16'], root).trim());

  writeFileSync(
    path.join(folder, 'package.json'),
    JSON.stringify({ name: 'consumer', private: true }),
  );
  run('npm', ['install', '--no-audit', '--no-fund', '--omit=peer', '--omit=optional', tarball]);
  const uses = `
    const { cut } = dynamicCut(Float32Array.from([0.9, 0.8, 0.2]), null, { signals: ['score'] });
    if (cut.k !== 2) throw new Error('k is ' + cut.k);
    const index = VectorIndex.create(2);
    index.upsert(['a', 'b'], Float32Array.from([1, 0, 0, 1])).then(async () => {
      const hits = await index.search(Float32Array.from([1, 0.1]), { k: 1 });
      if (hits[0]?.id !== 'a') throw new Error('found ' + hits[0]?.id);
      index.close();
      try { index.info(); } catch (error) {
        if (error instanceof FinchError && error.code === 'FINCH_CLOSED') return console.log('works');
      }
      throw new Error('use after close was not FINCH_CLOSED');
    });
  `;
  const names3 = '{ dynamicCut, FinchError, VectorIndex }';
  writeFileSync(path.join(folder, 'use.mjs'), `import ${names3} from 'toolfinch';${uses}`);
  writeFileSync(path.join(folder, 'use.cjs'), `const ${names3} = require('toolfinch');${uses}`);
  for (const file of ['use.mjs', 'use.cjs']) {
    if (!run(process.execPath, [file]).includes('works')) fail(`${file} did not work`);
  }
  // An error made by one copy of the package is recognised by the other.
  writeFileSync(
    path.join(folder, 'both.mjs'),
    `import { FinchError, VectorIndex } from 'toolfinch'; import { createRequire } from 'node:module';
     const other = createRequire(import.meta.url)('toolfinch');
     const caught = (make) => { try { make(); } catch (error) { return error; } };
     const esm = caught(() => VectorIndex.create(0)), cjs = caught(() => other.VectorIndex.create(0));
     console.log([esm, cjs].every((e) => e instanceof FinchError && e instanceof other.FinchError) ? 'works' : 'fails');`,
  );
  if (!run(process.execPath, ['both.mjs']).includes('works'))
    fail('instanceof differs between ESM and CommonJS');

  const types = `const cut: Cut = dynamicCut(new Float32Array(2), null).cut; const k: number = cut.k; void k;
    // @ts-expect-error scores are a Float32Array
    dynamicCut([1, 2], null);
    // @ts-expect-error there is no such method
    const settings: SelectSettings = { method: 'fuzzy' }; void settings;`;
  const imports = "import { dynamicCut, type Cut, type SelectSettings } from 'toolfinch';";
  writeFileSync(path.join(folder, 'types.mts'), `${imports}\n${types}`);
  writeFileSync(path.join(folder, 'types.cts'), `${imports}\n${types}`);
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const nodeTypes = path.join(root, 'node_modules/@types');
  run(process.execPath, [
    tsc,
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--lib',
    'es2023,esnext.disposable',
    '--skipLibCheck',
    'false',
    '--typeRoots',
    nodeTypes,
    '--types',
    'node',
    'types.mts',
    'types.cts',
  ]);
  console.log('types hold for ESM and CommonJS consumers');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
