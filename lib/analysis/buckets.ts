// Responses per latency bucket, published and measured alike.
import type { BucketShare, Phase } from '../result/result.ts';
import type { Published } from '../scenario/model.ts';
import { total } from './statistics.ts';

/** One load phase over all rounds. Empty unless the load asks for buckets. */
export function measuredBuckets(phases: readonly Phase[]): BucketShare[] {
  return withShares(
    (phases[0]?.buckets ?? []).map(({ fromMs, toMs }, index) => ({
      fromMs,
      toMs,
      count: total(phases, (phase) => phase.buckets[index]?.count ?? 0),
    })),
  );
}

/** What the article printed, in milliseconds. Empty where it printed none. */
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

/** Ends that are written as seconds and as milliseconds differ by a rounding. */
export function sameBucket(one: BucketShare, other: BucketShare): boolean {
  const isNear = (a: number, b: number): boolean => a === b || Math.abs(a - b) < 1e-6;
  return isNear(one.fromMs, other.fromMs) && isNear(one.toMs ?? Infinity, other.toMs ?? Infinity);
}

/** Each bucket of these once, the shorter latencies first. */
export function allBuckets(series: readonly (readonly BucketShare[])[]): BucketShare[] {
  const each = series
    .flat()
    .filter((bucket, index, all) => all.findIndex((one) => sameBucket(one, bucket)) === index);
  return each.sort((a, b) => a.fromMs - b.fromMs || (a.toMs ?? Infinity) - (b.toMs ?? Infinity));
}

/** The bucket in which the quantile (0 to 1) lies; undefined without responses. */
export function quantileBucket(
  buckets: readonly BucketShare[],
  quantile: number,
): BucketShare | undefined {
  const due = quantile * total(buckets, ({ count }) => count);
  let below = 0;
  return buckets.find(({ count }) => {
    below += count;
    return below > 0 && below >= due;
  });
}
