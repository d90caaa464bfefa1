// What crossing from JavaScript into native code costs, whatever is done there.
import { roundRobin, summary } from '../rounds.mjs';

export function crossingSteps({ plan }) {
  return [
    { name: 'calls into native code', seconds: 1.5, run: (context) => measure(context, plan) },
  ];
}

async function measure({ addon, probe, results, options }, { least }) {
  probe.pin(1);
  const calls = 1000;
  const array = new Float32Array(7680);
  const repeated = (name, call) => ({
    name,
    run: () => {
      let last;
      for (let i = 0; i < calls; i++) last = call();
      return last;
    },
  });
  const contestants = [
    repeated('a call that does nothing', () => probe.nothing()),
    repeated('a call that takes a Float32Array', () => probe.view(array)),
    repeated('a call that returns a new Float32Array(10)', () => probe.ten()),
    repeated("Toolfinch's smallest call (abiVersion)", () => addon.abiVersion()),
    repeated('subarray, without a call', () => array.subarray(768, 1536)),
  ];
  const budgetMs = options.mode === 'smoke' ? 50 : 1000;
  const timed = await roundRobin(contestants, { budgetMs, least, sampleMs: 1 });
  results.crossingNs = {};
  for (const [name, { samples }] of timed)
    results.crossingNs[name] = summary(samples.map((ms) => (ms * 1e6) / calls));
}
