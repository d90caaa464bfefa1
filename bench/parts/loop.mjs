// How long the event loop waits while many requests are in flight: in a process of its own, as a service would run it.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const script = fileURLToPath(new URL('../event-loop.mjs', import.meta.url));

export function loopSteps({ plan }) {
  return [
    {
      name: `event loop under ${plan.loopRequests} requests`,
      seconds: 3 + plan.loopRequests / 150,
      run: (context) => measure(context, plan),
    },
  ];
}

async function measure({ probe, results, skip }, { loopRequests, loopIdleMs }) {
  probe.pin(probe.cpus());
  const args = [script, '--json', '--requests', String(loopRequests), '--idle', String(loopIdleMs)];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args);
    results.loop = JSON.parse(stdout);
  } catch (error) {
    skip('event loop', (error.stderr || error.message).trim().split('\n').pop());
  }
}
