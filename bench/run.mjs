// npm run bench: Toolfinch's kernels, its peers and the machine's limits, measured side by side. See docs/benchmarks.md.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describeMachine } from './machine.mjs';
import { partNames, plans, readOptions } from './options.mjs';
import { annSteps } from './parts/ann.mjs';
import { crossingSteps } from './parts/crossing.mjs';
import { exactSteps } from './parts/exact.mjs';
import { growthSteps } from './parts/growth.mjs';
import { limitSteps } from './parts/limits.mjs';
import { loopSteps } from './parts/loop.mjs';
import { reliabilitySteps } from './parts/reliability.mjs';
import { selectSteps } from './parts/select.mjs';
import { installPeers, loadProbe, pythonInterpreter, root } from './prepare.mjs';
import { Progress } from './progress.mjs';

const stepsOf = {
  limits: limitSteps,
  exact: exactSteps,
  growth: growthSteps,
  ann: annSteps,
  reliability: reliabilitySteps,
  select: selectSteps,
  loop: loopSteps,
  crossing: crossingSteps,
};

try {
  await main();
} catch (error) {
  console.error(`\nbench: ${error.message}`);
  process.exitCode = 1;
}

async function main() {
  const options = readOptions(process.argv.slice(2), os.availableParallelism());
  if (options.markdown) {
    const { markdownText } = await import('./report/print.mjs');
    process.stdout.write(markdownText(JSON.parse(readFileSync(options.markdown, 'utf8'))));
    return;
  }
  const log = (text) => process.stderr.write(`${text}\n`);
  const { binding } = await import('../dist/esm/lib/native.js').catch((cause) => {
    throw new Error('the package is not built; run npm run build first', { cause });
  });
  const addon = binding();
  const probe = loadProbe(log);
  const skipped = [];
  const skip = (what, why) => {
    if (skipped.some((one) => one.what === what && one.why === why)) return;
    skipped.push({ what, why });
    log(`  skipped: ${what}: ${why}`);
  };
  const parts = partNames.filter(options.wants);
  if (parts.includes('exact') && !installPeers(log, options.offline))
    skip(
      'hnswlib-node',
      options.offline ? 'not installed' : 'it could not be installed (is there a compiler?)',
    );
  const python = options.python ? pythonInterpreter(log, options.offline) : undefined;
  if (options.python && python === undefined)
    skip(
      'Python peers',
      'no virtual environment could be made (python3 with venv, and a package index)',
    );

  const plan = plans[options.mode];
  const results = { limits: [], exact: [], growth: [], ann: [] };
  const machine = describeMachine(root, addon, probe);
  const context = { addon, probe, python, plan, options, results, skip };
  const steps = parts.flatMap((name) => stepsOf[name]({ options, plan }));
  const progress = new Progress(steps);
  for (const step of steps) {
    progress.begin(step.name);
    await step.run(context);
    progress.end(step);
  }
  await report({ options, parts, machine, results, skipped, seconds: progress.elapsed(), python });
}

async function report({ options, parts, machine, results, skipped, seconds, python }) {
  const { budgetTable } = await import('./report/budgets.mjs');
  const { terminalText } = await import('./report/print.mjs');
  const { pictures } = await import('./report/pictures.mjs');
  const { mode, threads } = options;
  const made = {
    format: 1,
    mode,
    parts,
    threads,
    python: python !== undefined,
    seconds: Math.round(seconds),
    machine: { ...machine, loadAfter: os.loadavg()[0] },
    results,
    skipped,
    budgets: budgetTable(results, { python: python !== undefined, parts }),
  };
  const folder = options.out ?? path.join(root, 'bench', 'results');
  const name = `${machine.date.slice(0, 16).replace(/[-:]/g, '').replace('T', '-')}-${machine.commit}-${mode}`;
  const file = path.join(folder, `${name}.json`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${JSON.stringify(made, null, 1)}\n`);
  for (const [picture, svg] of Object.entries(pictures(made)))
    writeFileSync(path.join(folder, `${name}-${picture}`), svg);
  console.log(terminalText(made));
  console.log(
    `\n${made.seconds} s; ${path.relative(process.cwd(), file)} and the pictures beside it`,
  );
}
