// Statistics over the rounds of a run. The methods: docs/verdicts.md.

/** The fewest rounds for a verdict: with 3 the interval is wider than most effects. */
export const minimumRounds = 4;

/** @throws RangeError without values */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('the median of nothing');
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  const isOdd = sorted.length % 2 === 1;
  return mean(sorted.slice(isOdd ? half : half - 1, half + 1));
}

/** NaN without values. */
export function mean(values: readonly number[]): number {
  return total(values, (value) => value) / values.length;
}

/** The mean of values by their weights, exact for equal ones, and their standard deviation; NaN without values. */
export function weightedMean(
  values: readonly Record<'value' | 'weight', number>[],
): Record<'mean' | 'sd', number> {
  const weights = total(values, ({ weight }) => weight);
  const base = values[0]?.value ?? NaN;
  const middle = base + total(values, ({ value, weight }) => weight * (value - base)) / weights;
  const squares = total(values, ({ value, weight }) => weight * (value - middle) ** 2);
  return { mean: middle, sd: Math.sqrt(squares / weights) };
}

/** @param values above 0 */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(mean(values.map(Math.log)));
}

/** The sample variance; NaN for fewer than two values. */
export function variance(values: readonly number[]): number {
  const middle = mean(values);
  if (values.length < 2) return NaN;
  return total(values, (value) => (value - middle) ** 2) / (values.length - 1);
}

/** Minimum and maximum, of any number of values (Math.max takes about 130,000). ∞ and −∞ without values. */
export function extent(values: Iterable<number>): [least: number, greatest: number] {
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values)
    [least, greatest] = [Math.min(least, value), Math.max(greatest, value)];
  return [least, greatest];
}

export function total<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

/** The values less those at the same places of a list of the same length. */
export function minus(values: readonly number[], others: readonly number[]): number[] {
  return values.map((value, place) => value - (others[place] ?? NaN));
}

/** Items by key, in the order of the first item of each key. */
export function groupedBy<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
): Map<string, [T, ...T[]]> {
  const groups = new Map<string, [T, ...T[]]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** Confidence that all judged intervals of a run hold together, at every look. */
export const confidence = 0.95;

/** α of each of so many comparisons: 5 % divided by their number. */
export function alphaOf(comparisons = 1): number {
  return (1 - confidence) / Math.max(1, comparisons);
}

/** ln(variant / baseline) of each round. @throws RangeError for figures that are not above 0 */
export function logRatios(baseline: readonly number[], variant: readonly number[]): number[] {
  const logs = minus(variant.map(Math.log), baseline.map(Math.log));
  if (!logs.every(Number.isFinite)) throw new RangeError('a ratio needs figures above 0');
  return logs;
}

type Interval = ReturnType<typeof meanInterval>;

/** mean ± t(n−1, 1−α/2) · s/√n; for one value ± 0. @param values at least one */
export function meanInterval(values: readonly number[], alpha: number) {
  const n = values.length;
  const half =
    n === 1 ? 0 : studentQuantile(1 - alpha / 2, n - 1) * Math.sqrt(variance(values) / n);
  return { middle: mean(values), half };
}

export interface RatioInterval {
  ratio: number;
  interval: [low: number, high: number];
}

/** The further end's distance from the ratio: 0.01 is ±1 %. */
export function halfWidth({ ratio, interval: [low, high] }: RatioInterval): number {
  return Math.max(high / ratio, ratio / low) - 1;
}

/**
 * variant / baseline with its interval: exp of meanInterval of ln(variant / baseline).
 * @param baseline a figure above 0 per round, at least one
 * @param variant of the same rounds
 * @throws RangeError for figures that are not above 0
 */
export function ratioInterval(
  baseline: readonly number[],
  variant: readonly number[],
  alpha = alphaOf(),
): RatioInterval {
  const interval = meanInterval(logRatios(baseline, variant), alpha);
  return { ratio: exp(interval.middle), interval: exponential(interval) };
}

export function exponential({ middle, half }: Interval): RatioInterval['interval'] {
  return [exp(middle - half), exp(middle + half)];
}

/** Finite, because JSON has no infinity. */
function exp(value: number): number {
  return Math.min(Math.exp(value), Number.MAX_VALUE);
}

/** P(|T| < √df · tan θ) for 0 ≤ θ < π/2, by the finite series of Abramowitz & Stegun (1964), 26.7.3 and 26.7.4. */
function centralProbability(theta: number, df: number): number {
  const sin = Math.sin(theta);
  const cosSquared = Math.cos(theta) ** 2;
  const odd = df % 2 === 1;
  let term = odd ? Math.cos(theta) : 1;
  let sum = 0;
  for (let k = odd ? 1 : 0; k <= df - 2; k += 2) {
    sum += term;
    term *= ((k + 1) / (k + 2)) * cosSquared;
  }
  return odd ? (2 / Math.PI) * (theta + sin * sum) : sin * sum;
}

const quantiles = new Map<string, number>();

/** The quantile of Student's t for 0.5 ≤ p < 1. @param df degrees of freedom, a whole number ≥ 1 */
export function studentQuantile(p: number, df: number): number {
  const known = quantiles.get(`${p} ${df}`);
  if (known !== undefined) return known;
  let [low, high] = [0, Math.PI / 2];
  // 60 halvings are below the precision of a double.
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (centralProbability(middle, df) < 2 * p - 1) low = middle;
    else high = middle;
  }
  const quantile = Math.sqrt(df) * Math.tan((low + high) / 2);
  quantiles.set(`${p} ${df}`, quantile);
  return quantile;
}
