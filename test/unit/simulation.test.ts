// Whether verdicts are right as often as they say: simulated runs whose true ratio is known. All seeds are fixed.
import { describe, expect, test } from 'vitest';
import { alphaOf, logRatios, mean, meanInterval, ratioInterval } from '../../lib/analysis/statistics.ts';
import { outliersOf } from '../../lib/analysis/outliers.ts';
import { noiseFloorOf, roundsToDecide } from '../../lib/analysis/rounds-needed.ts';
import { verdictOf } from '../../lib/analysis/verdict.ts';

/** mulberry32 (T. Ettinger): numbers from 0 to below 1, the same ones for a seed everywhere. */
function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** By Box and Muller, of which one of the two values is used: mean 0, standard deviation 1. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** How far ln(requests/s) of the `slot`-th measurement of a run lies from what it should be. */
type Noise = (random: () => number) => (slot: number) => number;

/** Of one measurement, as standard deviation of ln(requests/s). */
const sd = 0.03;

const noises: Record<string, Noise> = {
  normal: (random) => () => sd * normal(random),
  // Often a little fast, seldom very slow: an exponential delay.
  skewed: (random) => () => sd * Math.log(1 - random()),
  // One measurement in ten has five times the noise.
  outlying: (random) => () => sd * normal(random) * (random() < 0.1 ? 5 : 1),
  // The machine gets slower from measurement to measurement, and wanders.
  drifting: (random) => {
    let machine = 0;
    return () => {
      machine += sd * (0.3 * normal(random) - 0.2);
      return machine + sd * normal(random);
    };
  },
};

/**
 * requests/s per round of a baseline and of others that are `effects` (in ln) faster. As in a run every round measures each of
 * them once, and the order turns round by round.
 */
function run(noise: Noise, random: () => number, rounds: number, effects: readonly number[]): { baseline: number[]; variants: number[][] } {
  const noiseAt = noise(random);
  const all = [0, ...effects];
  const rps = all.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    const places = [...all.keys()];
    for (const place of round % 2 === 0 ? places : places.reverse()) {
      (rps[place] as number[]).push(50_000 * Math.exp((all[place] as number) + noiseAt(round * all.length + place)));
    }
  }
  return { baseline: rps[0] as number[], variants: rps.slice(1) };
}

/** The share of so many trials in which it happens. */
function frequency(trials: number, happens: () => boolean): number {
  let count = 0;
  for (let trial = 0; trial < trials; trial++) if (happens()) count++;
  return count / trials;
}

/** A frequency of 5 % is within this of it in 999 of 1000 simulations. */
const chance = (trials: number): number => 3.3 * Math.sqrt(0.05 * 0.95 / trials);

const different = (interval: [number, number]): boolean => ['faster', 'slower'].includes(verdictOf(interval, 0.01));

describe.each(Object.entries(noises))('%s noise', (_, noise) => {
  test.each([5, 6, 10, 20])('is covered by the interval of %i rounds in 94 % of runs or more', (rounds) => {
    const random = uniform(rounds);
    const effect = Math.log(1.2);
    expect(frequency(6000, () => {
      const { baseline, variants: [variant = []] } = run(noise, random, rounds, [effect]);
      const { interval: [low, high] } = ratioInterval(baseline, variant);
      return low <= 1.2 && 1.2 <= high;
    })).toBeGreaterThanOrEqual(0.94);
  });
});

test('one side that is much more skewed than the other is covered less often: what the interval does not promise', () => {
  const random = uniform(7);
  // Exponential delays of the variant alone; the mean of the logarithm is then sd lower.
  const covered = frequency(6000, () => {
    const d = Array.from({ length: 6 }, () => sd * (Math.log(1 - random()) + 1 + 0.2 * normal(random)));
    const { middle, half } = meanInterval(d, 0.05);
    return Math.abs(middle) <= half;
  });
  expect(covered).toBeGreaterThan(0.85);
  expect(covered).toBeLessThan(0.94);
});

describe.each(Object.entries(noises))('a config against itself under %s noise', (_, noise) => {
  const trials = 8000;

  test.each([4, 6, 10, 20])('is called different after %i rounds in one run of twenty at most', (rounds) => {
    const random = uniform(rounds);
    expect(frequency(trials, () => {
      const { baseline, variants: [variant = []] } = run(noise, random, rounds, [0]);
      return different(ratioInterval(baseline, variant).interval);
    })).toBeLessThanOrEqual(0.05 + chance(trials));
  });

  test('is called different in 5 % of runs at most where 5, 10 and 20 rounds are looked at', () => {
    const random = uniform(5);
    expect(frequency(trials / 2, () => endsDifferent(noise, random, 1, [5, 10, 20], alphaOf(1, 3)))).toBeLessThanOrEqual(0.05);
  });

  test('three times over, against one baseline, has any called different in 5 % of runs at most', () => {
    const random = uniform(3);
    expect(frequency(trials / 2, () => endsDifferent(noise, random, 3, [6], alphaOf(3, 1)))).toBeLessThanOrEqual(0.05);
    expect(frequency(trials / 4, () => endsDifferent(noise, random, 3, [5, 10, 20], alphaOf(3, 3)))).toBeLessThanOrEqual(0.05);
  });
});

/** Whether a run that ends at the first look without an inconclusive comparison then calls any of its variants different. */
function endsDifferent(noise: Noise, random: () => number, variants: number, looks: readonly number[], alpha: number): boolean {
  const measured = run(noise, random, looks.at(-1) as number, Array.from({ length: variants }, () => 0));
  for (const look of looks) {
    const baseline = measured.baseline.slice(0, look);
    const verdicts = measured.variants.map((variant) => verdictOf(ratioInterval(baseline, variant.slice(0, look), alpha).interval, 0.01));
    if (look < (looks.at(-1) as number) && verdicts.includes('inconclusive')) continue;
    return verdicts.some((verdict) => verdict === 'faster' || verdict === 'slower');
  }
  return false;
}

describe('a round that lies apart', () => {
  const share = (rounds: number, disturb: (logs: number[]) => number[]): number => {
    const random = uniform(rounds);
    return frequency(5000, () => outliersOf(disturb(Array.from({ length: rounds }, () => sd * normal(random)))).length > 0);
  };

  test.each([[4, 0.07], [5, 0.1], [6, 0.06], [10, 0.05], [20, 0.03]])('is found in few comparisons of %i undisturbed rounds', (rounds, most) => {
    expect(share(rounds, (logs) => logs)).toBeLessThanOrEqual(most);
  });

  test.each([5, 6, 10, 20])('is found in nine of ten comparisons of %i rounds where one is off by twenty times the noise', (rounds) => {
    expect(share(rounds, ([first = 0, ...others]) => [first + 20 * sd, ...others])).toBeGreaterThan(0.9);
  });
});

describe('what is not done, and why', () => {
  const everyRound = Array.from({ length: 16 }, (_, index) => index + 5);

  test('looking after every round from 5 to 20 without dividing α would call one in ten A/A runs different, and more', () => {
    const random = uniform(1);
    expect(frequency(3000, () => endsDifferent(noises.normal as Noise, random, 1, everyRound, 0.05))).toBeGreaterThan(0.1);
    expect(frequency(3000, () => endsDifferent(noises.normal as Noise, random, 1, [5, 10, 20], 0.05))).toBeGreaterThan(0.05 + chance(3000));
  });

  test('three comparisons without dividing α would call something different in more than one in ten', () => {
    const random = uniform(2);
    expect(frequency(5000, () => endsDifferent(noises.normal as Noise, random, 3, [6], 0.05))).toBeGreaterThan(0.1);
  });

  test('an interval of the two sides\' own spreads would be more than twice as wide where the machine drifts: the rounds are pairs', () => {
    const random = uniform(4);
    const half = (values: readonly number[]): number => meanInterval(values.map(Math.log), 0.05).half;
    const wider = Array.from({ length: 200 }, () => {
      const { baseline, variants: [variant = []] } = run(noises.drifting as Noise, random, 20, [0]);
      return Math.hypot(half(baseline), half(variant)) / meanInterval(logRatios(baseline, variant), 0.05).half;
    });
    expect(mean(wider)).toBeGreaterThan(2);
  });

  test('the percentile bootstrap\'s 95 % interval of 5 rounds covers less than 90 %', () => {
    const random = uniform(6);
    const resamples = 500;
    const covered = frequency(1500, () => {
      const { baseline, variants: [variant = []] } = run(noises.normal as Noise, random, 5, [0]);
      const logs = logRatios(baseline, variant);
      const means = Float64Array.from({ length: resamples }, () => {
        let sum = 0;
        for (let draw = 0; draw < logs.length; draw++) sum += logs[Math.floor(random() * logs.length)] as number;
        return sum / logs.length;
      }).sort();
      return (means[Math.floor(0.025 * resamples)] as number) <= 0 && (means[Math.floor(0.975 * resamples)] as number) >= 0;
    });
    expect(covered).toBeLessThan(0.9);
    expect(covered).toBeGreaterThan(0.7);
  });
});

describe('power', () => {
  const quiet: Noise = (random) => () => 0.01 * normal(random);
  const verdicts = (trials: number, seed: number, noise: Noise, rounds: number, effect: number, verdict: string): number => {
    const random = uniform(seed);
    return frequency(trials, () => {
      const { baseline, variants: [variant = []] } = run(noise, random, rounds, [effect]);
      return verdictOf(ratioInterval(baseline, variant).interval, 0.01) === verdict;
    });
  };

  test('5 % more requests/s at 1 % noise are found in 6 rounds', () => {
    expect(verdicts(4000, 1, quiet, 6, Math.log(1.05), 'faster')).toBeGreaterThanOrEqual(0.95);
    expect(verdicts(4000, 2, quiet, 6, -Math.log(1.05), 'slower')).toBeGreaterThanOrEqual(0.95);
  });

  test('no difference at 0.3 % noise is the same in 6 rounds', () => {
    expect(verdicts(4000, 3, (random) => () => 0.003 * normal(random), 6, 0, 'same')).toBeGreaterThanOrEqual(0.95);
  });

  test('an effect as large as the noise floor is found in about half of the runs of 6 rounds', () => {
    // Two values with the variance of ln ratios between sides of 3 % each.
    const floor = noiseFloorOf([[sd, -sd]])?.ratio as number;
    const found = verdicts(4000, 4, noises.normal as Noise, 6, Math.log(floor), 'faster');
    expect(found).toBeGreaterThan(0.42);
    expect(found).toBeLessThan(0.6);
  });

  test.each([['faster', Math.log(1.03)], ['same', 0]])('as many rounds as are said to be needed decide: %s', (verdict, effect) => {
    // As above, around the effect.
    const needed = roundsToDecide([effect - sd, effect + sd], 0.05, 0.01) as number;
    expect(verdicts(1000, 5, noises.normal as Noise, needed, effect, verdict)).toBeGreaterThanOrEqual(0.93);
    expect(verdicts(1000, 6, noises.normal as Noise, Math.ceil(needed / 4), effect, verdict)).toBeLessThan(0.7);
  });
});
