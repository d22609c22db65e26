// Whether verdicts are right as often as they say: simulated runs whose true ratio is known. All seeds are fixed.
import { describe, expect, test } from 'vitest';
import { alphaOf, exponential, logRatios, mean, meanInterval, ratioInterval, unpairedRatio } from '../../lib/analysis/statistics.ts';
import { outliersOf } from '../../lib/analysis/outliers.ts';
import { noiseFloorOf, roundsToDecide } from '../../lib/analysis/rounds-needed.ts';
import { judgeFamily, verdictOf, type Judged } from '../../lib/analysis/family.ts';
import { chance, frequency, normal, uniform } from '../fixtures/random.ts';

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

test.each([[4, 4], [5, 10], [20, 6]])('two runs of %i and %i rounds, the second one five times as noisy, are covered by the interval of their ratio in 94 %% of cases or more', (first, second) => {
  const random = uniform(first);
  const rounds = (count: number, size: number): number[] => Array.from({ length: count }, () => Math.exp(size * normal(random)));
  expect(frequency(6000, () => {
    const { interval: [low, high] } = unpairedRatio(rounds(first, sd), rounds(second, 5 * sd));
    return low <= 1 && 1 <= high;
  })).toBeGreaterThanOrEqual(0.94);
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

describe('the ratio of p99s, of 2,000 responses a round', () => {
  /** A share of 0 to 1 of all latencies is longer than p99 of so many: the 21st longest, from the longest down by the order statistics of uniform numbers. */
  function beyondP99(random: () => number, responses = 2000): number {
    let below = 1;
    for (let place = 0; place <= responses / 100; place++) below *= random() ** (1 / (responses - place));
    return 1 - below;
  }
  const tails: Record<string, (beyond: number) => number> = {
    exponential: (beyond) => -Math.log(beyond),
    // Its variance is infinite.
    'as heavy as Pareto\'s with α 1.5': (beyond) => beyond ** (-1 / 1.5),
  };
  const coverage = (rounds: number, of: (random: () => number) => number, truth: number, stall = 0): number => {
    const random = uniform(rounds);
    // A stall of the variant alone, now and then, as long as it happens to be.
    const stalls = (): number => Math.exp(-stall * Math.log(1 - random()));
    return frequency(4000, () => {
      const sides = [0, 1].map(() => Array.from({ length: rounds }, () => of(random))) as [number[], number[]];
      const { interval: [low, high] } = ratioInterval(sides[0], sides[1].map((p99) => p99 * truth * stalls()));
      return Math.log(low) <= Math.log(truth) + stall && Math.log(truth) + stall <= Math.log(high);
    });
  };

  test.each(Object.keys(tails).flatMap((tail) => [4, 6, 10].map((rounds) => [tail, rounds] as const)))('with a tail %s is covered by the interval of %i rounds in 94 % of runs or more', (tail, rounds) => {
    const p99 = tails[tail] as (beyond: number) => number;
    expect(coverage(rounds, (random) => p99(beyondP99(random)), 1.3)).toBeGreaterThan(0.95 - chance(4000));
  });

  test('is covered less often where only one side stalls now and then: what the interval does not promise', () => {
    const covered = coverage(6, (random) => (tails['exponential'] as (beyond: number) => number)(beyondP99(random)), 1.3, 0.5);
    expect(covered).toBeGreaterThan(0.85);
    expect(covered).toBeLessThan(0.93);
  });
});

/** ln ratios of the comparisons of a run, of its first `rounds` rounds: each row against the one before it, or all against the first. */
function comparisons({ baseline, variants }: ReturnType<typeof run>, shape: 'ladder' | 'star', rounds: number): number[][] {
  const rows = [baseline, ...variants].map((rps) => rps.slice(0, rounds));
  return variants.map((_, index) => logRatios(rows[shape === 'ladder' ? index : 0] as number[], rows[index + 1] as number[]));
}

const sameWithin = 0.01;

type Judge = (family: readonly number[][], alpha: number) => Judged[];
const asARunDoes: Judge = (family, alpha) => judgeFamily(family, alpha, sameWithin);

/** A verdict on a true ratio (in ln) that it is no verdict for. */
function isFalse(verdict: Judged['verdict'], truth: number): boolean {
  switch (verdict) {
    case 'faster': return truth <= 0;
    case 'slower': return truth >= 0;
    case 'same': return Math.abs(truth) > Math.log1p(sameWithin);
    case 'inconclusive': return false;
  }
}

interface Simulated { noise: Noise; shape: 'ladder' | 'star'; effects: readonly number[]; looks: readonly number[]; judge?: Judge }

/** The verdicts of a run that ends at the first look without an inconclusive comparison, each with what is true. */
function verdictsOfRun({ noise, shape, effects, looks, judge = asARunDoes }: Simulated, random: () => number): { verdict: Judged['verdict']; truth: number }[] {
  const measured = run(noise, random, looks.at(-1) as number, effects);
  const truths = effects.map((effect, index) => effect - (shape === 'ladder' ? effects[index - 1] ?? 0 : 0));
  for (const look of looks) {
    const judged = judge(comparisons(measured, shape, look), alphaOf(1, looks.length));
    if (look < (looks.at(-1) as number) && judged.some(({ verdict }) => verdict === 'inconclusive')) continue;
    return judged.map(({ verdict }, index) => ({ verdict, truth: truths[index] as number }));
  }
  return [];
}

/** The share of runs with any false verdict. */
function falseRuns(trials: number, seed: number, simulated: Simulated): number {
  const random = uniform(seed);
  return frequency(trials, () => verdictsOfRun(simulated, random).some(({ verdict, truth }) => isFalse(verdict, truth)));
}

const none = (variants: number): number[] => Array.from({ length: variants }, () => 0);

describe.each(Object.entries(noises))('a config against itself under %s noise', (_, noise) => {
  const trials = 2000;

  test.each([4, 6, 10, 20])('is called different after %i rounds in one run of twenty at most', (rounds) => {
    expect(falseRuns(2 * trials, rounds, { noise, shape: 'star', effects: [0], looks: [rounds] })).toBeLessThanOrEqual(0.05 + chance(2 * trials));
  });

  test('is called different in 5 % of runs at most where 5, 10 and 20 rounds are looked at', () => {
    expect(falseRuns(trials, 5, { noise, shape: 'star', effects: [0], looks: [5, 10, 20] })).toBeLessThanOrEqual(0.05 + chance(trials));
  });

  test.each(['ladder', 'star'] as const)('eight times over, as a %s, has any called different in one run of twenty at most', (shape) => {
    expect(falseRuns(trials / 2, 3, { noise, shape, effects: none(8), looks: [6] })).toBeLessThanOrEqual(0.05 + chance(trials / 2));
    expect(falseRuns(trials / 4, 3, { noise, shape, effects: none(8), looks: [5, 10, 20] })).toBeLessThanOrEqual(0.05 + chance(trials / 4));
  });
});

describe('any false verdict, of a run whose variants are not all equal,', () => {
  const trials = 3000;
  const noiseOf = (size: number): Noise => (random) => () => size * normal(random);
  const edge = Math.log1p(sameWithin) * 1.0001;
  const steps = (...effects: number[]): number[] => effects.map((_, index) => effects.slice(0, index + 1).reduce((sum, effect) => sum + effect));

  test.each<[string, Omit<Simulated, 'looks'>]>([
    ['half of a ladder\'s steps are effects', { noise: noiseOf(0.01), shape: 'ladder', effects: steps(0, 0.2, 0, -0.2, 0, 0.2, 0, -0.2) }],
    ['all but one are', { noise: noiseOf(0.01), shape: 'ladder', effects: steps(0.2, 0.2, 0.2, 0.2, 0, 0.2, 0.2, 0.2) }],
    ['all but one are too small to matter', { noise: noiseOf(0.01), shape: 'ladder', effects: steps(0.003, 0.003, 0.003, 0.003, 0, 0.003, 0.003, 0.003) }],
    ['all but one are far too small to be found', { noise: noiseOf(0.03), shape: 'star', effects: [1e-6, 1e-6, 1e-6, 1e-6, 0, 1e-6, 1e-6, 1e-6] }],
    ['all but one are just no longer the same', { noise: noiseOf(0.002), shape: 'star', effects: [edge, edge, edge, edge, edge, edge, edge, 0] }],
    ['all are just no longer the same', { noise: noiseOf(0.002), shape: 'ladder', effects: steps(edge, edge, edge, edge, edge, edge, edge, edge) }],
  ])('is in one of twenty at most: %s', (_, simulated) => {
    expect(falseRuns(trials, 8, { ...simulated, looks: [6] })).toBeLessThanOrEqual(0.05 + chance(trials));
    expect(falseRuns(trials / 3, 9, { ...simulated, looks: [5, 10, 20] })).toBeLessThanOrEqual(0.05 + chance(trials / 3));
  });

  test('is in more with Holm\'s steps alone, which do not reckon with a false "same"', () => {
    // Rows with a baseline each: seven just no longer the same, and one of equals whose noise is larger.
    const random = uniform(11);
    const family = (): number[][] => [...none(7).map(() => [edge, 0.002] as const), [0, 0.02] as const].map(([effect, size]) => (
      Array.from({ length: 6 }, () => effect + size * normal(random))
    ));
    const wrong = (judge: Judge): number => frequency(trials, () => judge(family(), 0.05).some(({ verdict }, index) => isFalse(verdict, index < 7 ? edge : 0)));
    expect(wrong(holm)).toBeGreaterThan(0.05 + chance(trials));
    expect(wrong(asARunDoes)).toBeLessThanOrEqual(0.05 + chance(trials));
  });
});

/** Holm (1979), by the lower p of the two claims on each comparison: that it is different, and that it is the same. */
const holm: Judge = (family, alpha) => {
  const margin = Math.log1p(sameWithin);
  const decided = (logs: readonly number[], level: number): boolean => verdictOf(exponential(meanInterval(logs, level)), sameWithin) !== 'inconclusive';
  const strength = (logs: readonly number[]): number => {
    const { middle, half } = meanInterval(logs, alpha);
    return Math.max(Math.abs(middle), margin - Math.abs(middle)) / half;
  };
  const judged = family.map((): Judged => ({ interval: [0, Infinity], verdict: 'inconclusive' }));
  for (const [place, index] of [...family.keys()].sort((a, b) => strength(family[b] as number[]) - strength(family[a] as number[])).entries()) {
    const [logs, level] = [family[index] as number[], alpha / (family.length - place)];
    if (!decided(logs, level)) break;
    const interval = exponential(meanInterval(logs, level));
    judged[index] = { interval, verdict: verdictOf(interval, sameWithin) };
  }
  return judged;
};

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

  const equal = { noise: noises.normal as Noise, shape: 'star', effects: [0] } as const;
  /** As if there were no other comparison and no other look. */
  const eachAlone: Judge = (family) => family.map((logs) => {
    const interval = exponential(meanInterval(logs, 0.05));
    return { interval, verdict: verdictOf(interval, sameWithin) };
  });

  test('looking after every round from 5 to 20 without dividing α would call one in ten A/A runs different, and more', () => {
    expect(falseRuns(3000, 1, { ...equal, looks: everyRound, judge: eachAlone })).toBeGreaterThan(0.1);
    expect(falseRuns(3000, 1, { ...equal, looks: [5, 10, 20], judge: eachAlone })).toBeGreaterThan(0.05 + chance(3000));
  });

  test('three comparisons without dividing α would call something different in more than one in ten, a ladder of eight in one of five', () => {
    expect(falseRuns(5000, 2, { ...equal, effects: none(3), looks: [6], judge: eachAlone })).toBeGreaterThan(0.1);
    expect(falseRuns(3000, 2, { ...equal, shape: 'ladder', effects: none(8), looks: [6], judge: eachAlone })).toBeGreaterThan(0.2);
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

  test('an effect as large as the noise floor is found in about half of the runs of 10 rounds', () => {
    // Two values with the variance of ln ratios between sides of 3 % each.
    const floor = noiseFloorOf([[sd, -sd]])?.ratio as number;
    const found = verdicts(4000, 4, noises.normal as Noise, 10, Math.log(floor), 'faster');
    expect(found).toBeGreaterThan(0.42);
    expect(found).toBeLessThan(0.6);
  });

  test.each([['faster', Math.log(1.03)], ['same', 0]])('as many rounds as are said to be needed decide: %s', (verdict, effect) => {
    // As above, around the effect.
    const needed = roundsToDecide([effect - sd, effect + sd], 0.05, 0.01) as number;
    expect(verdicts(1000, 5, noises.normal as Noise, needed, effect, verdict)).toBeGreaterThanOrEqual(0.93);
    expect(verdicts(1000, 6, noises.normal as Noise, Math.ceil(needed / 4), effect, verdict)).toBeLessThan(0.7);
  });

  test('is not lost in a ladder: where seven of eight steps are found, the last is found nearly as often as in a run of two', () => {
    const found = (judge: Judge): number => {
      const random = uniform(12);
      return frequency(2000, () => {
        const family = none(8).map((_, index) => Array.from({ length: 6 }, () => (index < 7 ? 0.2 : 0.03) + 0.02 * normal(random)));
        return judge(family, 0.05).at(-1)?.verdict === 'faster';
      });
    };
    const twoComparisons: Judge = (family) => family.map((logs) => judgeFamily([logs, none(6)], 0.05, sameWithin)[0] as Judged);
    const bonferroni: Judge = (family, alpha) => family.map((logs) => {
      const interval = exponential(meanInterval(logs, alpha / family.length));
      return { interval, verdict: verdictOf(interval, sameWithin) };
    });
    const [ladder, pair, divided] = [found(asARunDoes), found(twoComparisons), found(bonferroni)];
    expect(ladder).toBeGreaterThanOrEqual(pair);
    expect(ladder).toBeGreaterThan(divided + 0.15);
  });

  test('finds each of eight steps of 10 % at 1 % noise in 6 rounds', () => {
    const random = uniform(13);
    const effects = none(8).map((_, index) => (index + 1) * Math.log(1.1));
    expect(frequency(2000, () => verdictsOfRun({ noise: quiet, shape: 'ladder', effects, looks: [6] }, random).every(({ verdict }) => verdict === 'faster')))
      .toBeGreaterThanOrEqual(0.95);
  });
});
