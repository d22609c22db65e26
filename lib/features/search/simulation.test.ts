// Whether the verdicts of a search on two sides are right. All seeds are fixed.
import { expect, test, vi } from 'vitest';
import { verdictOf } from '../../analysis/verdict.ts';
import {
  geometricMean,
  halfWidth,
  logRatios,
  mean,
  median,
  ratioInterval,
} from '../../analysis/statistics.ts';
import { chance } from '../../../test/fixtures/random.ts';
import { uniform } from '../../random.ts';
import { Simulation, usual, type Noise } from '../../../test/fixtures/simulated-search.ts';

// Each test takes two seconds on an idle machine.
vi.setConfig({ testTimeout: 120_000 });

/** Noise of a dedicated machine. */
const quiet: Noise = { slow: 0.02, start: 0.01, step: 0.02, pauses: 2, pauseMs: 1.5, wander: 0.3 };

/** Same values as `--quick`. */
const [rounds, stepSeconds] = [4, 0.5];
const trials = 200;

/** `kept`: shares of loads that keep the limit at 5 % below the resulting rate, and at 5 % above. */
interface Seen {
  verdicts: string[];
  intervals: [low: number, high: number][];
  widths: number[];
  steps: number[];
  kept: { below: number[]; beyond: number[] };
}

/**
 * Simulates searches, without those that fail. @param effect advantage of the second side, in ln. @param after adds loads after
 * each search
 */
function searches(noise: Noise, ms: number, effect: number, after = false) {
  const simulation = new Simulation(noise, { metric: 'p99', ms }, uniform(3));
  const seen: Seen = {
    verdicts: [],
    intervals: [],
    widths: [],
    steps: [],
    kept: { below: [], beyond: [] },
  };
  for (let trial = 0; trial < trials; trial++) {
    const run = simulation.run(rounds, stepSeconds, effect);
    if (run === undefined) continue;
    const ratio = ratioInterval(...run.bySide);
    seen.verdicts.push(verdictOf(logRatios(...run.bySide), 0.05, 0.01));
    seen.intervals.push(ratio.interval);
    seen.widths.push(halfWidth(ratio));
    seen.steps.push(run.steps / rounds);
    if (!after) continue;
    const rate = geometricMean(run.bySide[0]);
    seen.kept.below.push(simulation.keeps(0.95 * rate, stepSeconds));
    seen.kept.beyond.push(simulation.keeps(1.05 * rate, stepSeconds));
  }
  return seen;
}

const differ = ({ verdicts }: Seen) =>
  mean(verdicts.map((verdict) => (['faster', 'slower'].includes(verdict) ? 1 : 0)));

/** Limits for the half-width of the interval, the steps per round, and the shares `kept` of Seen. */
type Expected = [width: number, steps: number, below: number, beyond: number];

test.each<[string, number, Noise, Expected]>([
  ['the machine is quiet', 10, quiet, [0.04, 16, 0.85, 0.2]],
  ['pauses rarely break the limit', 10, usual, [0.12, 18, 0.55, 0.45]],
  [
    'short pauses blur the limit',
    5,
    { ...usual, pauses: 15, pauseMs: 1.5 },
    [0.15, 18, 0.55, 0.45],
  ],
])(
  'if %s, equal sides are called different in at most one search of twenty',
  (_, ms, noise, [width, steps, below, beyond]) => {
    const seen = searches(noise, ms, 0, true);
    expect(seen.intervals).toHaveLength(trials);
    expect(differ(seen)).toBeLessThanOrEqual(0.05 + chance(trials));
    expect(median(seen.widths)).toBeLessThan(width);
    expect(mean(seen.steps)).toBeLessThan(steps);
    // Loads in the minutes after the search.
    expect(mean(seen.kept.below)).toBeGreaterThan(below);
    expect(mean(seen.kept.beyond)).toBeLessThan(beyond);
  },
);

// In that case a search can end at any rate, probably near its start.
test('the same holds where pauses break the limit at any rate', () => {
  expect(differ(searches(usual, 2, 0))).toBeLessThanOrEqual(0.05 + chance(trials));
});

test.each([0.4, 1.1])('a ratio of %f is in the interval', (ratio) => {
  const { intervals } = searches(usual, 10, Math.log(ratio));
  expect(
    mean(intervals.map(([low, high]) => (low <= ratio && ratio <= high ? 1 : 0))),
  ).toBeGreaterThanOrEqual(0.95 - chance(trials));
});
