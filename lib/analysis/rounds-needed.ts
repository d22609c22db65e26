// How many rounds tell an effect from noise, and how small an effect so many rounds tell.
import type { NoiseFloor } from '../result/result.ts';
import { confidence, mean, total, variance } from './statistics.ts';
import { studentQuantile } from './student.ts';

/** Nobody waits for more. */
export const mostRounds = 1000;

/**
 * How many rounds would probably decide: the n with n ≥ (2 · t(n−1, 1−α/2) · s / δ)². Half the interval is then half of the
 * distance δ that has to be resolved, so that it is decided in 95 of 100 cases or more, if mean and spread are what they seem.
 * Of the two decisions the one that needs fewer rounds is taken: that the interval leaves out 1 (δ = |mean d|) or that it
 * lies within the limits of what counts as the same (δ = ln(1 + sameWithin) − |mean d|).
 * @param logs d = ln(variant / baseline) per round, at least two
 * @returns null for more than 1000 rounds
 */
export function roundsToDecide(logs: readonly number[], alpha: number, sameWithin: number): number | null {
  const middle = Math.abs(mean(logs));
  const distance = Math.max(middle, Math.log1p(sameWithin) - middle);
  const enough = (n: number): boolean => n >= (2 * studentQuantile(1 - alpha / 2, n - 1)) ** 2 * variance(logs) / distance ** 2;
  if (!(distance > 0) || !enough(mostRounds)) return null;
  // t falls with n: below the n that is sought no number is enough, and from it on each is.
  let [tooFew, many] = [1, mostRounds];
  while (many - tooFew > 1) {
    const middle = (tooFew + many) >> 1;
    if (enough(middle)) many = middle;
    else tooFew = middle;
  }
  return many;
}

/** The default of a run, for which a machine's noise floor is stated. */
const floorRounds = 10;

/**
 * exp(t(9, 0.975) · s/√10), with the spread s of ln ratios between variants that are the same. That is half the 95 % interval
 * of 10 rounds, and an effect gets a verdict where the interval around it leaves out 1, so from half of it on: a smaller
 * difference of the means is not told from noise, one that is really of this size in about half of all runs.
 * @param comparisons per comparison ln(variant / baseline) of each round, at least two; several are taken together
 * @returns null without any
 */
export function noiseFloorOf(comparisons: readonly (readonly number[])[]): NoiseFloor | null {
  if (comparisons.length === 0) return null;
  const degrees = total(comparisons, ({ length }) => length - 1);
  const pooled = total(comparisons, (logs) => variance(logs) * (logs.length - 1)) / degrees;
  const half = studentQuantile(1 - (1 - confidence) / 2, floorRounds - 1) * Math.sqrt(pooled / floorRounds);
  return { rounds: floorRounds, ratio: Math.exp(half) };
}
