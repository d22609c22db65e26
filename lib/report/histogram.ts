// Responses per latency bucket, as vegeta prints them: the servers side by side, published beside measured.
import type { Result } from '../runner/result.ts';
import type { Published } from '../scenario/model.ts';
import { bar, exactPercent, scaledTime, whole } from './format.ts';
import { tableOf, type Column, type Table } from './table.ts';

interface Bucket { fromMs: number; toMs: number | null; count: number }
interface Series { title: string; buckets: readonly Bucket[]; counted: number }

const barWidth = 12;

/** A row per bucket; undefined where none were counted or published. All bars have one scale. */
export function histogramTable(result: Result): Table | undefined {
  const series = [
    ...result.variants.map(({ name, published }) => seriesOf(`${name}, published`, publishedBuckets(published?.buckets))),
    ...result.variants.map(({ name, phases }) => seriesOf(`${name}, here`, phases[0]?.buckets ?? [])),
  ].filter(({ buckets }) => buckets.length > 0);
  const [first] = series;
  if (first === undefined) return undefined;
  const highest = Math.max(...series.flatMap(({ buckets, counted }) => buckets.map(({ count }) => share(count, counted))));
  return tableOf(first.buckets, [
    { group: '', title: 'latency', align: 'left', cell: bucketLabel },
    ...series.map(({ title, buckets, counted }): Column<Bucket> => ({
      group: '',
      title,
      align: 'left',
      cell: (row) => {
        const count = buckets.find((bucket) => sameBucket(bucket, row))?.count;
        if (count === undefined) return '';
        const part = share(count, counted);
        return `${whole(count).padStart(7)}  ${exactPercent(100 * part).padStart(7)}  ${bar(part / highest, barWidth)}`;
      },
    })),
  ]);
}

/** The published bucket in which the quantile (0 to 1) lies, e.g. "600–750 µs"; '' without buckets. */
export function publishedQuantile(buckets: Published['buckets'], quantile: number): string {
  const all = publishedBuckets(buckets);
  const due = quantile * all.reduce((sum, { count }) => sum + count, 0);
  let below = 0;
  for (const bucket of all) {
    below += bucket.count;
    if (below > 0 && below >= due) return bucketLabel(bucket);
  }
  return '';
}

function publishedBuckets(buckets: Published['buckets'] = []): Bucket[] {
  return buckets.map(({ fromSeconds, toSeconds, count }) => ({ fromMs: fromSeconds * 1000, toMs: toSeconds === null ? null : toSeconds * 1000, count }));
}

function seriesOf(title: string, buckets: readonly Bucket[]): Series {
  return { title, buckets, counted: buckets.reduce((sum, { count }) => sum + count, 0) };
}

function share(count: number, counted: number): number {
  return counted === 0 ? 0 : count / counted;
}

/** Ends that are written as seconds and as milliseconds differ by a rounding. */
export function sameBucket(one: Bucket, other: Bucket): boolean {
  return Math.abs(one.fromMs - other.fromMs) < 1e-6;
}

/** "300–450 µs", "900 µs–1 ms", "over 5 ms". */
export function bucketLabel({ fromMs, toMs }: Bucket): string {
  if (toMs === null) return `over ${tick(fromMs)}`;
  const [from, to] = [tick(fromMs), tick(toMs)];
  const unit = to.slice(to.indexOf(' '));
  return `${fromMs === 0 ? '0' : from.endsWith(unit) ? from.slice(0, -unit.length) : from}–${to}`;
}

/** The end of a bucket, with no more decimals than it has. */
function tick(ms: number): string {
  const [value, unit] = scaledTime(ms).split(' ');
  return `${Number(value)} ${unit}`;
}
