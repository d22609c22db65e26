// Whether rounds depend on each other, which Student's t takes them not to do. The formulas: docs/verdicts.md, "What has to hold".
import { mean, studentQuantile, total, median, variance, confidence } from './statistics.ts';
import type { Comparison, NoiseFloor, Verdict } from '../result/result.ts';

/** The chance that any comparison of a run whose rounds are independent gets a note. */
export const falseNotes = 0.02;

/** The same, of going on to the next look of --precision: that costs rounds, and no verdict. */
export const falseHolds = 0.1;

/** Where rounds scatter by less, however they depend on each other is of no matter. */
const leastScatter = 0.001;

/** `drift`: the ratio moved by this factor from the first round to the last. `echo`: rounds resemble the one before, by this correlation. */
export type Dependence = { kind: 'drift'; ratio: number } | { kind: 'echo'; correlation: number };

/**
 * Tests for a drift and for rounds that resemble the one before, with half of `alpha` each. Rounds unlike it only widen the interval.
 * @param logs ln(variant / baseline) per round, in the order in which they were run
 * @param alpha the chance to find something in independent rounds
 */
export function dependenceOf(logs: readonly number[], alpha: number): Dependence | null {
  const n = logs.length;
  const middle = mean(logs);
  const squares = total(logs, (log) => (log - middle) ** 2);
  if (n < 4 || squares < n * leastScatter ** 2) return null;
  const timeSquares = (n ** 3 - n) / 12;
  const slope =
    logs.reduce((sum, log, round) => sum + (log - middle) * (round - (n - 1) / 2), 0) / timeSquares;
  if (isBeyond(Math.abs(slope) * Math.sqrt(timeSquares / squares), n - 2, alpha / 4))
    return { kind: 'drift', ratio: Math.exp(slope * (n - 1)) };
  const steps = logs
    .slice(1)
    .reduce((sum, log, before) => sum + (log - (logs[before] as number)) ** 2, 0);
  const correlation = 1 - steps / (2 * squares);
  return isBeyond(correlation, Math.floor((n ** 2 - n + 1) / (n - 2)), alpha / 2)
    ? { kind: 'echo', correlation }
    : null;
}

/** Whether a correlation with so many degrees of freedom is above what chance exceeds with probability p. */
function isBeyond(correlation: number, degrees: number, p: number): boolean {
  return (
    correlation * Math.sqrt(degrees / Math.max(0, 1 - correlation ** 2)) >
    studentQuantile(1 - p, degrees)
  );
}

// Rounds whose ratio lies far from the others'. They are shown and count like all others, but for one that is measured again.

/** With fewer rounds there are no others to be far from. */
const fewestRounds = 4;

/**
 * 5 on the modified z-score 0.6745 · (x − median) / MAD of Iglewicz & Hoaglin, How to Detect and Handle Outliers (1993). Their
 * 3.5 would find some in 10 to 15 of 100 undisturbed comparisons of so few rounds; 5 does in 1 to 8.
 */
const farMads = 5 / 0.6745;

/**
 * The MAD of few values is too small on average: Croux & Rousseeuw, Time-Efficient Algorithms for Two Highly Robust
 * Estimators of Scale (COMPSTAT 1992), give these factors for 4 to 9 values, and n / (n − 0.8) for more.
 */
const fewValues = [1.363, 1.206, 1.2, 1.14, 1.129, 1.107];

/** Nearer than 1 % no round is worth a word, however close together the others are: also when they are all the same. */
const worthAWord = Math.log(1.01);

/** Indexes of the values that lie apart from the others; none of fewer than four. @param logs ln(variant / baseline) per round */
export function outliersOf(logs: readonly number[]): number[] {
  const n = logs.length;
  if (n < fewestRounds) return [];
  const middle = median(logs);
  const mad =
    median(logs.map((d) => Math.abs(d - middle))) * (fewValues[n - fewestRounds] ?? n / (n - 0.8));
  const far = Math.max(farMads * mad, worthAWord);
  return [...logs.keys()].filter((round) => Math.abs((logs[round] as number) - middle) > far);
}

/**
 * The only outlier of a comparison, if it alone decides or prevents a verdict, and the verdict `without` it; null otherwise, and
 * where too few rounds would be left. @param verdictOf what some of the rounds say
 */
export function swayingRound(
  logs: readonly number[],
  verdictOf: (logs: readonly number[]) => Verdict,
): { index: number; without: Verdict } | null {
  const [index, ...others] = outliersOf(logs);
  if (index === undefined || others.length > 0 || logs.length === fewestRounds) return null;
  const without = verdictOf(logs.toSpliced(index, 1));
  return (verdictOf(logs) === 'inconclusive') === (without === 'inconclusive')
    ? null
    : { index, without };
}

/** The chance that undisturbed rounds have one so far from the others that it is measured again. More would add to false verdicts. */
const falseRepeats = 0.001;

/** The round to measure again once all rounds are over, and why; undefined in most runs. The rule: docs/verdicts.md, "Outliers". */
export function roundToRepeat(
  comparisons: readonly Comparison[],
): { round: number; why: string } | undefined {
  const judged = comparisons.filter(({ verdict }) => verdict !== 'none');
  for (const { variant, baseline, verdict, swayedBy, roundRatios } of judged) {
    if (swayedBy === null) continue;
    const { round, without } = swayedBy;
    const pair = `${variant} against ${baseline}`;
    if (verdict !== 'inconclusive') return { round, why: `an outlier, it alone decided ${pair}` };
    if (
      without !== 'same' &&
      hidesDifference(roundRatios.map(Math.log), falseRepeats / judged.length)
    )
      return { round, why: `an outlier, it alone prevented a verdict on ${pair}` };
  }
  return undefined;
}

/** Whether the only outlier of these has not changed the direction, and is beyond the limit of Grubbs, Procedures for Detecting Outlying Observations in Samples (Technometrics 11, 1969). */
function hidesDifference(logs: readonly number[], alpha: number): boolean {
  const [index] = outliersOf(logs) as [number];
  const others = logs.toSpliced(index, 1);
  const n = others.length;
  const limit =
    studentQuantile(1 - alpha / 2 / logs.length, n - 1) * Math.sqrt(variance(others) * (1 + 1 / n));
  return mean(logs) * mean(others) > 0 && Math.abs((logs[index] as number) - mean(others)) > limit;
}

// How many rounds tell an effect from noise, and how small an effect so many rounds tell.

/** Nobody waits for more. */
export const mostRounds = 1000;

/**
 * How many rounds would probably decide: the least n ≥ (2 · t(n−1, 1−α/2) · s / δ)², for δ the longer of the two distances that
 * decide: |mean d|, or ln(1 + sameWithin) − |mean d|.
 * @param logs d = ln(variant / baseline) per round, at least two
 * @returns null for more than 1000 rounds
 */
export function roundsToDecide(
  logs: readonly number[],
  alpha: number,
  sameWithin: number,
): number | null {
  const middle = Math.abs(mean(logs));
  const distance = Math.max(middle, Math.log1p(sameWithin) - middle);
  const enough = (n: number): boolean =>
    n >= ((2 * studentQuantile(1 - alpha / 2, n - 1)) ** 2 * variance(logs)) / distance ** 2;
  if (!(distance > 0) || !enough(mostRounds)) return null;
  let rounds = 2;
  while (!enough(rounds)) rounds++;
  return rounds;
}

/** The default of a run, for which a machine's noise floor is stated. */
const floorRounds = 10;

/**
 * Half the 95 % interval of 10 rounds: exp(t(9, 0.975) · s/√10), with the spread s of ln ratios between equal variants. About half of
 * all runs detect a difference of this size.
 * @param comparisons per comparison ln(variant / baseline) of each round, at least two; several are taken together
 * @returns null without any
 */
export function noiseFloorOf(comparisons: readonly (readonly number[])[]): NoiseFloor | null {
  if (comparisons.length === 0) return null;
  const degrees = total(comparisons, ({ length }) => length - 1);
  const pooled = total(comparisons, (logs) => variance(logs) * (logs.length - 1)) / degrees;
  const half =
    studentQuantile(1 - (1 - confidence) / 2, floorRounds - 1) * Math.sqrt(pooled / floorRounds);
  return { rounds: floorRounds, ratio: Math.exp(half) };
}
