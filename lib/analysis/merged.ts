// Distributions of several rounds, or of a round's phases, as one.
import type {
  Distribution,
  HistogramBar,
  LatencyDistribution,
  LatencyFigures,
} from '../result/result.ts';
import { extent, mean, total } from './statistics.ts';

/** Of all values of these together. Percentiles are within 0.1 %, as theirs; the rest is exact, but for `withinSd`, which is counted from the histogram. */
export function mergedLatency(parts: readonly LatencyDistribution[]): LatencyFigures {
  const { histogram: _, ...figures } = mergedDistribution(parts);
  return figures;
}

/** The same, with the histogram of all. */
export function mergedDistribution(parts: readonly LatencyDistribution[]): LatencyDistribution {
  const counted = parts.map((part) => ({ part, n: valuesIn(part) })).filter(({ n }) => n > 0);
  const [first] = counted;
  if (first === undefined)
    return {
      min: 0,
      mean: 0,
      sd: 0,
      withinSd: 0,
      max: 0,
      p50: 0,
      p75: 0,
      p90: 0,
      p95: 0,
      p99: 0,
      p999: 0,
      histogram: [],
    };
  if (counted.length === 1) return first.part;
  const { min, mean: middle, sd, max } = pooledDistribution(counted);
  const histogram = mergedBars(counted.map(({ part }) => part.histogram));
  const at = (quantile: number): number =>
    Math.min(max, Math.max(min, quantileOf(histogram, quantile)));
  const within = total(
    histogram.filter(([atMostMs]) => atMostMs >= middle - sd && atMostMs <= middle + sd),
    ([, count]) => count,
  );
  return {
    min,
    mean: middle,
    sd,
    withinSd: within / total(counted, ({ n }) => n),
    max,
    p50: at(0.5),
    p75: at(0.75),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    p999: at(0.999),
    histogram,
  };
}

/** Of all values together, where each part is of `n` of them: exact, but for `withinSd`, which is theirs on average. @param counted at least one */
export function pooledDistribution(
  counted: readonly { part: Distribution; n: number }[],
): Distribution {
  const n = total(counted, (one) => one.n);
  const average = (of: (part: Distribution) => number): number =>
    total(counted, (one) => one.n * of(one.part)) / n;
  const middle = average((part) => part.mean);
  // What the parts' values have about their own means, and what these have about the mean of all.
  const squares = total(
    counted,
    (one) => (one.n - 1) * one.part.sd ** 2 + one.n * (one.part.mean - middle) ** 2,
  );
  return {
    min: extent(counted.map(({ part }) => part.min))[0],
    mean: middle,
    sd: n === 1 ? 0 : Math.sqrt(squares / (n - 1)),
    withinSd: average((part) => part.withinSd),
    max: extent(counted.map(({ part }) => part.max))[1],
  };
}

/** How many values it is of. */
export function valuesIn({ histogram }: Pick<LatencyDistribution, 'histogram'>): number {
  return total(histogram, ([, count]) => count);
}

function mergedBars(histograms: readonly (readonly HistogramBar[])[]): HistogramBar[] {
  const counts = new Map<number, number>();
  for (const [atMostMs, count] of histograms.flat())
    counts.set(atMostMs, (counts.get(atMostMs) ?? 0) + count);
  return [...counts].sort(([a], [b]) => a - b);
}

/** The value that a share of 0 to 1 of the values does not exceed, as HdrHistogram has it: of a rank that is rounded, at least the first. */
function quantileOf(bars: readonly HistogramBar[], quantile: number): number {
  const rank = Math.max(1, Math.floor(quantile * total(bars, ([, count]) => count) + 0.5));
  let below = 0;
  return bars.find(([, count]) => (below += count) >= rank)?.[0] ?? 0;
}

/** Of as many values in each part: `min` and `max` of all, the rest on average. @param parts at least one */
export function meanDistribution(parts: readonly Distribution[]): Distribution {
  return {
    min: extent(parts.map((part) => part.min))[0],
    mean: mean(parts.map((part) => part.mean)),
    sd: Math.sqrt(mean(parts.map((part) => part.sd ** 2))),
    withinSd: mean(parts.map((part) => part.withinSd)),
    max: extent(parts.map((part) => part.max))[1],
  };
}
