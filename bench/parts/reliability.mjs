// The bandit's score and update, and the dynamic cut: inside the core, and through Node.
import { roundRobin, summary } from '../rounds.mjs';

const dimension = 768;
const candidates = 10;
const cutLength = 50;

export function reliabilitySteps({ plan }) {
  return [
    {
      name: 'bandit and cut, inside the core',
      seconds: 4,
      run: (context) => inside(context, plan),
    },
    {
      name: 'bandit and cut, through Node',
      seconds: 4,
      run: (context) => throughNode(context, plan),
    },
  ];
}

function inside({ probe, results }, { arms, rounds }) {
  probe.pin(1);
  const times = probe.banditTimes(dimension, arms, candidates, rounds);
  const ns = {};
  for (const [name, samples] of Object.entries(times)) ns[name] = summary(samples);
  ns.truncate = summary(probe.truncateTimes(cutLength, dimension, rounds));
  results.reliability = { dimension, arms, candidates, cutLength, insideNs: ns };
}

async function throughNode({ addon, probe, results, options }, { arms, least }) {
  probe.pin(1);
  const x = vectors(probe, 1);
  const ids = Array.from({ length: arms }, (_, i) => `server/tool_${i}`);
  const bandit = addon.banditCreate({ dimension });
  for (const id of ids) update(addon, bandit, [id], x, 0);
  let at = 0;
  const resident = ids.slice(0, candidates);
  const priors = new Float32Array(candidates).fill(0.5);
  // Every arm once a lap, far apart from one call to the next.
  const draw = () => {
    const drawn = [];
    for (let i = 0; i < candidates; i++) {
      at = (at + 2503) % ids.length;
      drawn.push(ids[at]);
    }
    return drawn;
  };
  const list = (some) => addon.idListCreate(some, priors);
  const near = list(resident);
  const far = Array.from({ length: Math.floor(arms / candidates) }, () => list(draw()));
  let lap = 0;
  const out = addon.armScoresCreate(candidates);
  const rule = addon.cutRuleCreate();
  const cut = new Float64Array(7);
  const contexts = new Float32Array(candidates * dimension);
  for (let i = 0; i < candidates; i++) contexts.set(x, i * dimension);
  const scores = Float32Array.from({ length: cutLength }, (_, i) => 1 - (0.9 * i) / cutLength);
  const embeddings = vectors(probe, cutLength);
  const arm = javascriptArms(candidates);
  const contestants = [
    {
      name: 'score 10 resident arms',
      run: () => addon.banditScoreInto(bandit, near, x, 1, true, out.handle),
    },
    {
      name: 'score 10 scattered arms',
      run: () => addon.banditScoreInto(bandit, far[lap++ % far.length], x, 1, true, out.handle),
    },
    {
      name: 'score 10 resident arms, ids and results as JavaScript values',
      run: () => addon.banditScore(bandit, resident, priors, x, 1, true),
    },
    { name: 'update 10 resident arms', run: () => update(addon, bandit, resident, contexts, 1) },
    {
      name: 'update 10 scattered arms',
      run: () => update(addon, bandit, draw(), contexts, 1),
    },
    { name: 'cut 50 x 768', run: () => addon.truncateInto(scores, embeddings, rule, cut) },
    { name: 'JavaScript: score 10 arms', run: () => javascriptScore(arm, x) },
    { name: 'JavaScript: cut 50 x 768', run: () => javascriptCut(scores, embeddings) },
  ];
  const budgetMs = options.mode === 'smoke' ? 100 : 3000;
  const timed = await roundRobin(contestants, { budgetMs, least, sampleMs: 1 });
  addon.banditClose(bandit);
  results.reliability.nodeUs = {};
  for (const [name, { samples }] of timed)
    results.reliability.nodeUs[name] = summary(samples.map((ms) => ms * 1000));
}

function vectors(probe, count) {
  const out = new Float32Array(count * dimension);
  probe.fill(out, dimension, 5, 0, 0, 0);
  return out;
}

function update(addon, bandit, ids, contexts, now) {
  const priors = new Float32Array(ids.length).fill(0.5);
  const outcomes = Float32Array.from(ids, (_, i) => i % 2);
  addon.banditUpdate(
    bandit,
    ids,
    contexts,
    priors,
    outcomes,
    new Float64Array(ids.length).fill(now),
  );
}

function javascriptArms(count) {
  return Array.from({ length: count }, () => ({
    inverse: new Float32Array(dimension).fill(0.7),
    b: new Float32Array(dimension).fill(0.01),
  }));
}

function javascriptScore(arms, x) {
  return arms.map(({ inverse, b }) => {
    let mean = 0;
    let variance = 0;
    for (let i = 0; i < dimension; i++) {
      const t = x[i] * inverse[i];
      mean += b[i] * t;
      variance += x[i] * t;
    }
    return mean / dimension + 0.1 * Math.sqrt(variance);
  });
}

/** The largest gap among scores and among neighbours' cosines. */
function javascriptCut(scores, embeddings) {
  const gap = (values) => {
    let best = 0;
    for (let i = 1; i < values.length - 1; i++)
      if (values[i] - values[i + 1] > values[best] - values[best + 1]) best = i;
    return best + 1;
  };
  const cosines = [];
  for (let i = 0; i + 1 < scores.length; i++) {
    let dot = 0;
    let aa = 0;
    let bb = 0;
    for (let j = 0; j < dimension; j++) {
      const a = embeddings[i * dimension + j];
      const b = embeddings[(i + 1) * dimension + j];
      dot += a * b;
      aa += a * a;
      bb += b * b;
    }
    cosines.push(dot / Math.sqrt(aa * bb));
  }
  return Math.max(gap(scores), gap(cosines));
}
