import fc from 'fast-check';

/**
 * Property tests draw from one seed, so that a run repeats itself. `TOOLFINCH_SEED=random` explores instead: fast-check
 * then picks a seed per property and prints it when one fails; a number sets it.
 */
const wanted = process.env.TOOLFINCH_SEED;
if (wanted !== 'random') fc.configureGlobal({ seed: Number(wanted ?? 20_261_130) });
