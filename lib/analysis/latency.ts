// Distributions of latency: merged, their percentiles and buckets.
import type {
  Distribution,
  HistogramBar,
  LatencyDistribution,
  LatencyFigures,
} from '../result/load-result.ts';
import type { BucketShare, Phase } from '../result/result.ts';
import { byName, keysOf } from '../present.ts';
import { latencyMetrics } from '../scenario/latency-metrics.ts';
import type { Published } from '../scenario/published.ts';
import { extent, mean, total } from './statistics.ts';

/** The percentiles as quantiles, 0 to 1. */
export const percentiles = {
  p50: 0.5,
  p75: 0.75,
  p90: 0.9,
  p95: 0.95,
  p99: 0.99,
  p999: 0.999,
} as const;
export const percentileNames = keysOf(percentiles);

/** All parts together. Percentiles are within 0.1 %, `withinSd` comes from the histogram, the rest is exact. */
export function mergedLatency(parts: readonly LatencyDistribution[]): LatencyFigures {
  const { histogram: _, ...figures } = mergedDistribution(parts);
  return figures;
}

/** Like mergedLatency, with the histogram. */
export function mergedDistribution(parts: readonly LatencyDistribution[]): LatencyDistribution {
  const counted = parts.map((part) => ({ part, n: valuesIn(part) })).filter(({ n }) => n > 0);
  const [first] = counted;
  if (first === undefined)
    return {
      ...byName(['min', 'mean', 'sd', 'withinSd', 'max', ...percentileNames], () => 0),
      histogram: [],
    };
  if (counted.length === 1) return first.part;
  const { min, mean: middle, sd, max } = pooledDistribution(counted);
  const histogram = mergedBars(counted.map(({ part }) => part.histogram));
  const at = (quantile: number) => Math.min(max, Math.max(min, quantileOf(histogram, quantile)));
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
    ...byName(percentileNames, (name) => at(percentiles[name])),
    histogram,
  };
}

/** All values together; `withinSd` is the mean of the parts'. @param counted parts of `n` values, at least one */
export function pooledDistribution(
  counted: readonly { part: Distribution; n: number }[],
): Distribution {
  const n = total(counted, (group) => group.n);
  const average = (of: (part: Distribution) => number) =>
    total(counted, (group) => group.n * of(group.part)) / n;
  const middle = average((part) => part.mean);
  // Squares within the parts, and between them.
  const squares = total(
    counted,
    (group) => (group.n - 1) * group.part.sd ** 2 + group.n * (group.part.mean - middle) ** 2,
  );
  return {
    min: extent(counted.map(({ part }) => part.min))[0],
    mean: middle,
    sd: n === 1 ? 0 : Math.sqrt(squares / (n - 1)),
    withinSd: average((part) => part.withinSd),
    max: extent(counted.map(({ part }) => part.max))[1],
  };
}

export function valuesIn({ histogram }: LatencyDistribution): number {
  return total(histogram, ([, count]) => count);
}

/** Share of all values together; 0 without values. */
export function shareAbove(parts: readonly LatencyDistribution[], ms: number): number {
  const above = total(
    parts.flatMap(({ histogram }) => histogram.filter(([atMostMs]) => atMostMs > ms)),
    ([, count]) => count,
  );
  return above / Math.max(1, total(parts, valuesIn));
}

function mergedBars(histograms: readonly (readonly HistogramBar[])[]): HistogramBar[] {
  const counts = new Map<number, number>();
  for (const [atMostMs, count] of histograms.flat())
    counts.set(atMostMs, (counts.get(atMostMs) ?? 0) + count);
  return [...counts].sort(([a], [b]) => a - b);
}

/** A quantile (0 to 1), with HdrHistogram's rounded rank. */
function quantileOf(bars: readonly HistogramBar[], quantile: number): number {
  const rank = Math.max(1, Math.floor(quantile * total(bars, ([, count]) => count) + 0.5));
  let below = 0;
  return bars.find(([, count]) => (below += count) >= rank)?.[0] ?? 0;
}

/** `min` and `max` of all, means of the rest. @param parts of equal size, at least one */
export function meanDistribution(parts: readonly Distribution[]): Distribution {
  return {
    min: extent(parts.map((part) => part.min))[0],
    mean: mean(parts.map((part) => part.mean)),
    sd: Math.sqrt(mean(parts.map((part) => part.sd ** 2))),
    withinSd: mean(parts.map((part) => part.withinSd)),
    max: extent(parts.map((part) => part.max))[1],
  };
}

/** Responses that a round needs for the percentile: 10 beyond it. */
export const responsesNeeded = byName(latencyMetrics, (metric) =>
  Math.round(10 / (1 - percentiles[metric])),
);

/** Buckets of a load phase over all rounds. Empty unless the load asks for them. */
export function measuredBuckets(phases: readonly Phase[]): BucketShare[] {
  return withShares(
    (phases[0]?.buckets ?? []).map(({ fromMs, toMs }, index) => ({
      fromMs,
      toMs,
      count: total(phases, (phase) => phase.buckets[index]?.count ?? 0),
    })),
  );
}

/** The article's buckets, in milliseconds. */
export function publishedBuckets(published: Published | null | undefined): BucketShare[] {
  return withShares(
    (published?.buckets ?? []).map(({ fromSeconds, toSeconds, count }) => ({
      fromMs: fromSeconds * 1000,
      toMs: toSeconds === null ? null : toSeconds * 1000,
      count,
    })),
  );
}

function withShares(buckets: readonly Omit<BucketShare, 'share'>[]): BucketShare[] {
  const all = total(buckets, ({ count }) => count);
  return buckets.map((bucket) => ({ ...bucket, share: all === 0 ? 0 : bucket.count / all }));
}

/** Equal up to the rounding of seconds to milliseconds. */
export function sameBucket({ fromMs, toMs }: BucketShare, other: BucketShare): boolean {
  const isNear = (a: number, b: number) => a === b || Math.abs(a - b) < 1e-6;
  return isNear(fromMs, other.fromMs) && isNear(toMs ?? Infinity, other.toMs ?? Infinity);
}

/** Each bucket once, in ascending order. */
export function allBuckets(series: readonly (readonly BucketShare[])[]): BucketShare[] {
  const each = series
    .flat()
    .filter((bucket, index, all) => all.findIndex((other) => sameBucket(other, bucket)) === index);
  return each.sort((a, b) => a.fromMs - b.fromMs || (a.toMs ?? Infinity) - (b.toMs ?? Infinity));
}

/** The bucket of a quantile (0 to 1); undefined without responses. */
export function quantileBucket(
  buckets: readonly BucketShare[],
  quantile: number,
): BucketShare | undefined {
  const due = quantile * total(buckets, ({ count }) => count);
  let below = 0;
  return buckets.find(({ count }) => (below += count) > 0 && below >= due);
}
