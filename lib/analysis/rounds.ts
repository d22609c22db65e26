// Tests on a comparison's rounds: dependence, outliers, how many are needed. The methods: docs/verdicts.md.
import type { NoiseFloor, Verdict } from '../result/result.ts';
import { confidence, mean, median, minus, studentQuantile, total, variance } from './statistics.ts';

/** Chance that a run with independent rounds gets a note. */
export const falseNotes = 0.02;

/** Chance that such a run goes on to its next look, which costs only rounds. */
export const falseHolds = 0.1;

/** Scatter below which dependence does not matter. */
const leastScatter = 0.001;

/**
 * Tests for a drift (t-test of the slope) and for an echo, each with half of `alpha`, the chance of a false alarm. The echo is von
 * Neumann's ratio (Ann. Math. Stat. 12, 1941), tested as a correlation with (n² − n + 1) / (n − 2) degrees of freedom (Young, same volume).
 * @param logs ln(variant / baseline) per round, in the order of the rounds
 * @returns `ratio`: factor from the first round to the last. `correlation`: of a round with the previous round
 */
export function dependenceOf(logs: readonly number[], alpha: number) {
  const n = logs.length;
  const middle = mean(logs);
  const squares = total(logs, (log) => (log - middle) ** 2);
  if (n < 4 || squares < n * leastScatter ** 2) return null;
  const timeSquares = (n ** 3 - n) / 12;
  const slope =
    logs.reduce((sum, log, round) => sum + (log - middle) * (round - (n - 1) / 2), 0) / timeSquares;
  if (isBeyond(Math.abs(slope) * Math.sqrt(timeSquares / squares), n - 2, alpha / 4))
    return { code: 'drift' as const, ratio: Math.exp(slope * (n - 1)) };
  const steps = total(minus(logs.slice(1), logs), (step) => step ** 2);
  const correlation = 1 - steps / (2 * squares);
  if (isBeyond(correlation, Math.floor((n ** 2 - n + 1) / (n - 2)), alpha / 2))
    return { code: 'echo' as const, correlation };
  return null;
}

/** Returns whether chance exceeds this correlation with a probability below p. */
function isBeyond(correlation: number, degrees: number, p: number): boolean {
  return (
    correlation * Math.sqrt(degrees / Math.max(0, 1 - correlation ** 2)) >
    studentQuantile(1 - p, degrees)
  );
}

const fewestRounds = 4;

/** Modified z-score of 5 (Iglewicz & Hoaglin 1993): outliers in 1 to 8 of 100 undisturbed comparisons. The usual 3.5: in 10 to 15. */
const farMads = 5 / 0.6745;

/** Croux & Rousseeuw's factors for the MAD of 4 to 9 values; more: n / (n − 0.8) (COMPSTAT 1992). */
const fewValues = [1.363, 1.206, 1.2, 1.14, 1.129, 1.107];

/** A round within 1 % of the others is no outlier, even if the others are equal. */
const worthAWord = Math.log(1.01);

/** Indexes of outliers; none among fewer than four. @param logs ln(variant / baseline) per round */
export function outliersOf(logs: readonly number[]): number[] {
  const n = logs.length;
  if (n < fewestRounds) return [];
  const middle = median(logs);
  const mad =
    median(logs.map((d) => Math.abs(d - middle))) * (fewValues[n - fewestRounds] ?? n / (n - 0.8));
  const far = Math.max(farMads * mad, worthAWord);
  return [...logs.entries()].flatMap(([round, log]) =>
    Math.abs(log - middle) > far ? [round] : [],
  );
}

/** The only outlier, if it alone decides or prevents a verdict, and the verdict without it; else null. */
export function swayingRound(
  logs: readonly number[],
  verdictOf: (logs: readonly number[]) => Verdict,
) {
  const [index, ...others] = outliersOf(logs);
  if (index === undefined || others.length > 0 || logs.length === fewestRounds) return null;
  const without = verdictOf(logs.toSpliced(index, 1));
  if ((verdictOf(logs) === 'inconclusive') === (without === 'inconclusive')) return null;
  return { index, without };
}

export const mostRoundsAdvised = 1000;

/**
 * The number of rounds that would probably decide: for a difference the least n ≥ (2 · t(n−1, 1−α/2) · s / |mean d|)², for the same
 * the least n ≥ ((t(n−1, 1−α) + t(n−1, 1−α/2)) · s / (ln(1 + sameWithin) − |mean d|))².
 * @param logs d = ln(variant / baseline) per round, at least two
 * @returns null for more than 1000 rounds
 */
export function roundsToDecide(
  logs: readonly number[],
  alpha: number,
  sameWithin: number,
): number | null {
  const middle = Math.abs(mean(logs));
  const toMargin = Math.log1p(sameWithin) - middle;
  const enough = (n: number) => {
    const same = studentQuantile(1 - alpha, n - 1);
    const differs = studentQuantile(1 - alpha / 2, n - 1);
    const error = Math.sqrt(variance(logs) / n);
    return 2 * differs * error <= middle || (same + differs) * error <= toMargin;
  };
  if (!enough(mostRoundsAdvised)) return null;
  let rounds = 2;
  while (!enough(rounds)) rounds++;
  return rounds;
}

/** The default number of rounds, for which the noise floor is stated. */
const floorRounds = 10;

/**
 * Half the 95 % interval of 10 rounds, exp(t(9, 0.975) · s/√10), which half of all runs detect.
 * @param comparisons of equal variants: ln(variant / baseline) per round, at least two; s is pooled
 */
export function noiseFloorOf(comparisons: readonly (readonly number[])[]): NoiseFloor | null {
  if (comparisons.length === 0) return null;
  const degrees = total(comparisons, ({ length }) => length - 1);
  const pooled = total(comparisons, (logs) => variance(logs) * (logs.length - 1)) / degrees;
  const half =
    studentQuantile(1 - (1 - confidence) / 2, floorRounds - 1) * Math.sqrt(pooled / floorRounds);
  return { rounds: floorRounds, ratio: Math.exp(half) };
}
