// How long the event loop waits while many selects are in flight, encoding included. Prints p50, p99 and the largest delay,
// beside the same measure on an idle loop.
//   node bench/event-loop.mjs [--requests 1000] [--tools demo/phone-assistant/tools.json]
import { readFile } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  defaultEncoder,
  FeedbackStore,
  importTools,
  Selector,
  ToolIndex,
} from '../dist/esm/lib/index.js';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '1000' },
    tools: { type: 'string', default: 'demo/phone-assistant/tools.json' },
  },
});
const requests = Number(values.requests);
const { tools } = importTools(await readFile(values.tools), { origin: values.tools });
const encoder = await defaultEncoder();
const index = await ToolIndex.build(tools, { encoder, prior: 'none' });
const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
const selector = new Selector({ index, feedback });

async function measure(name, work) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  delay.disable();
  const at = (nanoseconds) => (nanoseconds / 1e6).toFixed(2);
  console.log(
    `${name}: ${ms.toFixed(0)} ms; loop delay p50 ${at(delay.percentile(50))} ms, p99 ${at(delay.percentile(99))} ms, max ${at(delay.max)} ms`,
  );
}

await measure('idle', () => sleep(2000));
await measure(`${requests} selects in flight over ${tools.length} tools`, () =>
  Promise.all(
    Array.from({ length: requests }, (_, i) =>
      selector.select(`request ${i}: ${tools[i % tools.length].description.slice(0, 80)}`),
    ),
  ),
);
await feedback.close();
index.close();
await encoder.close();
