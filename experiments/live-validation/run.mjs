// Real tools servers, real faults, an agent's loop: does feedback keep an agent working?
//
//   node experiments/live-validation/run.mjs            the full run, under ten minutes on 2 free cores
//   node experiments/live-validation/run.mjs --short    one seed, few tasks
//   … --write                                           tables and curve into docs/live-validation.*
//   … --json FILE                                       everything that happened, task by task
//   … --from FILE                                       no run: tables of such a file
//
// Build first: npm run build.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { CachedEncoder, defaultEncoder } from '../../dist/esm/lib/index.js';
import { runExperiment } from './experiment.mjs';
import { Fleet } from './fleet/fleet.mjs';
import { tables } from './report/tables.mjs';
import { writeReport } from './report/write.mjs';
import { fullSettings, shortSettings } from './settings.mjs';

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    json: { type: 'string' },
    from: { type: 'string' },
  },
});

/** @returns {Promise<import('./experiment.mjs').Results>} */
async function run() {
  const folder = await mkdtemp(path.join(tmpdir(), 'toolfinch-live-validation-'));
  const fleet = new Fleet(folder);
  const end = async () => {
    await fleet.close();
    await rm(folder, { recursive: true, force: true });
  };
  let stopping = false;
  const stopped = (/** @type {NodeJS.Signals} */ signal) => {
    stopping = true;
    const exit = () => process.exit(signal === 'SIGINT' ? 130 : 143);
    end().then(exit, exit);
  };
  process.once('SIGINT', stopped).once('SIGTERM', stopped);
  try {
    await fleet.start();
    const encoder = new CachedEncoder(await defaultEncoder());
    try {
      const settings = values.short ? shortSettings : fullSettings;
      const started = fleet.pids();
      const tell = (/** @type {string} */ line) => console.error(line);
      const results = await runExperiment(fleet, encoder, settings, tell);
      return { ...results, pids: [...new Set([...started, ...fleet.pids()])] };
    } finally {
      await encoder.close();
    }
  } catch (error) {
    // What was under way fails while the servers go; `stopped` ends the process.
    if (stopping) await new Promise(() => undefined);
    throw error;
  } finally {
    await end();
    process.off('SIGINT', stopped).off('SIGTERM', stopped);
  }
}

const results =
  values.from === undefined ? await run() : JSON.parse(await readFile(values.from, 'utf8'));
if (values.json !== undefined) await writeFile(values.json, JSON.stringify(results));
console.log(tables(results));
if (values.write) await writeReport(results);
