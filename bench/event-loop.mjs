// How long the event loop waits while many selects are in flight, encoding included. Prints p50, p99 and the largest delay,
// beside the same measure on an idle loop.
//   node bench/event-loop.mjs [--requests 1000] [--tools demo/phone-assistant/tools.json] [--idle 2000] [--json]
import { readFile } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
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
    tools: {
      type: 'string',
      default: fileURLToPath(new URL('../demo/phone-assistant/tools.json', import.meta.url)),
    },
    idle: { type: 'string', default: '2000' },
    json: { type: 'boolean', default: false },
  },
});
const requests = Number(values.requests);
const { tools } = importTools(await readFile(values.tools), { origin: values.tools });
const encoder = await defaultEncoder();
const index = await ToolIndex.build(tools, { encoder, prior: 'none' });
const feedback = FeedbackStore.memory({ bandit: { dimension: encoder.dimension } });
const selector = new Selector({ index, feedback });

async function measure(work) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  delay.disable();
  return {
    ms,
    delayMs: {
      p50: delay.percentile(50) / 1e6,
      p99: delay.percentile(99) / 1e6,
      max: delay.max / 1e6,
    },
  };
}

const idle = await measure(() => sleep(Number(values.idle)));
const busy = await measure(() =>
  Promise.all(
    Array.from({ length: requests }, (_, i) =>
      selector.select(`request ${i}: ${tools[i % tools.length].description.slice(0, 80)}`),
    ),
  ),
);
await feedback.close();
index.close();
await encoder.close();

if (values.json) {
  console.log(JSON.stringify({ requests, tools: tools.length, idle, busy }));
} else {
  const line = (name, { ms, delayMs: { p50, p99, max } }) =>
    console.log(
      `${name}: ${ms.toFixed(0)} ms; loop delay p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, max ${max.toFixed(2)} ms`,
    );
  line('idle', idle);
  line(`${requests} selects in flight over ${tools.length} tools`, busy);
}
