// Responses per latency bucket, as vegeta prints them: the servers side by side, published beside measured.
import { publishedBuckets, quantileBucket, sameBucket } from '../analysis/buckets.ts';
import { bar, bucketLabel, exactPercent, scaledTime, whole } from '../format.ts';
import type { BucketShare, Result, VariantResult } from '../result/result.ts';
import { isAtRate } from '../scenario/load/fit.ts';
import type { Published } from '../scenario/model.ts';
import { tableOf, type Column, type Part } from './table.ts';

interface Series { title: string; buckets: readonly BucketShare[] }

const barWidth = 12;

/** Answers by latency, a row per bucket; nothing where none were counted or published. All bars have one scale. */
export function histogramPart({ variants }: Result): Part[] {
  const series = [
    ...variants.map(({ name, published }): Series => ({ title: `${name}, published`, buckets: publishedBuckets(published) })),
    ...variants.map(({ name, phases }): Series => ({ title: `${name}, here`, buckets: phases[0]?.buckets ?? [] })),
  ].filter(({ buckets }) => buckets.length > 0);
  const [first] = series;
  if (first === undefined) return [];
  const highest = Math.max(...series.flatMap(({ buckets }) => buckets.map(({ share }) => share)));
  const table = tableOf(first.buckets, [
    { group: '', title: 'latency', align: 'left', cell: bucketLabel },
    ...series.map(({ title, buckets }): Column<BucketShare> => ({
      group: '',
      title,
      align: 'left',
      cell: (row) => {
        const bucket = buckets.find((one) => sameBucket(one, row));
        if (bucket === undefined) return '';
        const { count, share } = bucket;
        return `${whole(count).padStart(7)}  ${exactPercent(100 * share).padStart(7)}  ${bar(highest === 0 ? 0 : share / highest, barWidth)}`;
      },
    })),
  ]);
  return [{ title: 'Answers by latency:', tables: [table], below: sendDelayLine(variants.filter(({ load }) => isAtRate(load))) }];
}

/** How late the generator was itself. */
function sendDelayLine(variants: readonly VariantResult[]): string[] {
  const delays = variants.flatMap(({ name, phases: [phase] }) => (
    phase === undefined ? [] : [`${name} ${scaledTime(phase.sendDelayMs.p50)} and ${scaledTime(phase.sendDelayMs.p99)}`]
  ));
  return delays.length === 0 ? [] : [`Send delay (p50 and p99), which is in these latencies: ${delays.join(', ')}.`];
}

/** The published bucket in which the quantile (0 to 1) lies, e.g. "600–750 µs"; '' without buckets. */
export function publishedQuantile(published: Published, quantile: number): string {
  const bucket = quantileBucket(publishedBuckets(published), quantile);
  return bucket === undefined ? '' : bucketLabel(bucket);
}
