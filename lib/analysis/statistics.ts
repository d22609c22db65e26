// Plain statistics over the rounds of a run. Which of them, why and from where: docs/verdicts.md.
import { studentQuantile } from './student.ts';

/** The middle value, or the mean of the two middle ones. @throws RangeError when there is none */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('the median of nothing');
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] as number) + upper) / 2;
}

/** The arithmetic mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return total(values, (value) => value) / values.length;
}

/** Of values above 0; NaN of nothing. */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(mean(values.map(Math.log)));
}

/** The sample's variance, by n − 1; NaN of fewer than two. */
export function variance(values: readonly number[]): number {
  const middle = mean(values);
  return values.length < 2 ? NaN : total(values, (value) => (value - middle) ** 2) / (values.length - 1);
}

/** The least and the greatest, of as many as there are: Math.max(...values) ends at 130,000 or so. Of nothing ∞ and −∞. */
export function extent(values: Iterable<number>): [least: number, greatest: number] {
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values) [least, greatest] = [Math.min(least, value), Math.max(greatest, value)];
  return [least, greatest];
}

/** The sum of a figure of each. */
export function total<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

/** Items with the same key together, in the order in which each key came first. */
export function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

/** Confidence that all intervals of a run that are judged hold together, and so its verdicts, at every look. */
export const confidence = 0.95;

/** α of one of so many comparisons of a run, at one of so many looks: 5 % divided by both. */
export function alphaOf(comparisons: number, looks: number): number {
  return (1 - confidence) / Math.max(1, comparisons) / Math.max(1, looks);
}

/** ln(variant / baseline) of each round. @throws RangeError on lists that do not match or on figures that are not above 0 */
export function logRatios(baseline: readonly number[], variant: readonly number[]): number[] {
  if (baseline.length !== variant.length) throw new RangeError(`${baseline.length} rounds of the baseline, ${variant.length} of the variant`);
  const logs = baseline.map((figure, round) => Math.log(variant[round] as number) - Math.log(figure));
  if (!logs.every(Number.isFinite)) throw new RangeError('a ratio needs figures above 0');
  return logs;
}

/** middle ± half */
interface Interval { middle: number; half: number }

/**
 * mean ± t(n−1, 1−α/2) · s/√n. One value has no spread: `half` is 0 then.
 * @param values at least one
 */
export function meanInterval(values: readonly number[], alpha: number): Interval {
  const n = values.length;
  const half = n === 1 ? 0 : studentQuantile(1 - alpha / 2, n - 1) * Math.sqrt(variance(values) / n);
  return { middle: mean(values), half };
}

export interface RatioInterval { ratio: number; interval: [low: number, high: number] }

/** How far the interval's further end is from the ratio, as a share of it: 0.01 is ±1 %. */
export function halfWidth({ ratio, interval: [low, high] }: RatioInterval): number {
  return Math.max(high / ratio, ratio / low) - 1;
}

/**
 * How many times the variant's figure is the baseline's, with its confidence interval. With d = ln(variant / baseline) within a
 * round the ratio is exp(mean d), the interval exp(mean d ± t(n−1, 1−α/2) · s/√n); of one round it is the ratio itself, twice.
 * What it does not cover: docs/verdicts.md, "What has to hold".
 * @param baseline a figure per round, each above 0
 * @param variant of the same rounds, each above 0
 * @param alpha the chance that the interval misses, e.g. alphaOf
 * @throws RangeError on no rounds, lists that do not match or figures that are not above 0
 */
export function ratioInterval(baseline: readonly number[], variant: readonly number[], alpha = alphaOf(1, 1)): RatioInterval {
  const logs = logRatios(baseline, variant);
  if (logs.length === 0) throw new RangeError('a ratio needs a round');
  const interval = meanInterval(logs, alpha);
  return { ratio: exp(interval.middle), interval: exponential(interval) };
}

/**
 * As ratioInterval, with 95 %, of rounds that are no pairs, such as those of two runs: Welch's t on the logarithms (Biometrika 34, 1947), whose
 * degrees of freedom are rounded down to a whole number, which makes the interval wider.
 * @param baseline a figure per round, at least two, each above 0
 * @param variant of other rounds, as many or not
 * @throws RangeError on fewer, or figures that are not above 0
 */
export function unpairedRatio(baseline: readonly number[], variant: readonly number[]): RatioInterval {
  const logs = [baseline, variant].map((figures) => figures.map(Math.log));
  if (logs.some((one) => one.length < 2 || !one.every(Number.isFinite))) throw new RangeError('a ratio without pairs needs two figures above 0 on each side');
  const [before, after] = logs.map((one) => ({ middle: mean(one), squaredError: variance(one) / one.length, df: one.length - 1 })) as [Side, Side];
  const squared = before.squaredError + after.squaredError;
  const middle = after.middle - before.middle;
  const df = squared ** 2 / (before.squaredError ** 2 / before.df + after.squaredError ** 2 / after.df);
  const half = squared === 0 ? 0 : studentQuantile(1 - alphaOf(1, 1) / 2, Math.max(1, Math.floor(df))) * Math.sqrt(squared);
  return { ratio: exp(middle), interval: exponential({ middle, half }) };
}

interface Side { middle: number; squaredError: number; df: number }

/** The interval of a ratio from that of its logarithm. */
export function exponential({ middle, half }: Interval): RatioInterval['interval'] {
  return [exp(middle - half), exp(middle + half)];
}

/** Two rounds far apart have an interval beyond all numbers, and JSON has no infinity. */
function exp(value: number): number {
  return Math.min(Math.exp(value), Number.MAX_VALUE);
}
