// How many rounds tell an effect from noise, and how small an effect so many rounds tell.
import type { NoiseFloor } from '../result/result.ts';
import { confidence, mean, studentQuantile, total, variance } from './statistics.ts';

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
