// Plain statistics over the rounds of a run.
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

/** The sum of a figure of each. */
export function total<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

/** Confidence that all the intervals of one table hold together. */
export const confidence = 0.95;

export interface RatioInterval { ratio: number; interval: [low: number, high: number] }

/**
 * How much faster the variant is, with its confidence interval. The unit is the round: d = ln(variant / baseline) within
 * one, the ratio is exp(mean d), the interval exp(mean d ± t(n−1, 1−α/2) · s/√n). With k comparisons against the same
 * baseline α is 5 % / k (Bonferroni). One round has no spread: the interval is then the ratio itself, twice.
 * @param baseline requests/s per round, each above 0
 * @param variant requests/s of the same rounds, each above 0
 * @param comparisons k, how many variants are compared with this baseline
 * @throws RangeError on lists that do not match or on figures that are not above 0
 */
export function ratioInterval(baseline: readonly number[], variant: readonly number[], comparisons = 1): RatioInterval {
  const n = baseline.length;
  if (n === 0 || n !== variant.length) throw new RangeError(`${n} rounds of the baseline, ${variant.length} of the variant`);
  const logs = baseline.map((rps, round) => Math.log((variant[round] as number) / rps));
  if (!logs.every(Number.isFinite)) throw new RangeError('a ratio needs figures above 0');
  const middle = mean(logs);
  if (n === 1) return { ratio: Math.exp(middle), interval: [Math.exp(middle), Math.exp(middle)] };
  const variance = total(logs, (d) => (d - middle) ** 2) / (n - 1);
  const alpha = (1 - confidence) / comparisons;
  const half = studentQuantile(1 - alpha / 2, n - 1) * Math.sqrt(variance / n);
  return { ratio: Math.exp(middle), interval: [Math.exp(middle - half), Math.exp(middle + half)] };
}
