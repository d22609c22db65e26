// Tables with bars: answers by latency, a ladder step by step, and requests/s by concurrent streams.
import { allBuckets, publishedBuckets, quantileBucket, sameBucket } from '../analysis/buckets.ts';
import { comparisonOf } from '../analysis/comparisons.ts';
import { streamsOf, streamSweep } from '../analysis/stream-sweep.ts';
import { comparable } from '../analysis/verdict.ts';
import { bar, bucketLabel, exactPercent, perSecond, times, whole } from '../format.ts';
import type { BucketShare, Comparison, Result, VariantResult } from '../result/result.ts';
import type { Published } from '../scenario/model.ts';
import { protocolNames } from '../scenario/protocols.ts';
import { figure, leftColumn, rightColumn, tableOf, type Part } from './table.ts';
import { verdictCell } from './verdict-words.ts';

/** How long the longest bars are, in characters. */
const barWidths = { histogram: 12, ladder: 24, streams: 40 };

/** Answers by latency as vegeta prints them, a row per bucket, the servers side by side; nothing where none were counted or published. All bars have one scale. */
export function histogramPart({ variants }: Result): Part[] {
  const series = [
    ...variants.map(({ name, published }) => ({
      title: `${name}, published`,
      buckets: publishedBuckets(published),
    })),
    ...variants.map(({ name, phases }) => ({
      title: `${name}, here`,
      buckets: phases[0]?.buckets ?? [],
    })),
  ].filter(({ buckets }) => buckets.length > 0);
  if (series.length === 0) return [];
  const highest = Math.max(...series.flatMap(({ buckets }) => buckets.map(({ share }) => share)));
  const table = tableOf(allBuckets(series.map(({ buckets }) => buckets)), [
    leftColumn('latency', bucketLabel),
    ...series.map(({ title, buckets }) =>
      leftColumn(title, (row: BucketShare) => {
        const bucket = buckets.find((one) => sameBucket(one, row));
        if (bucket === undefined) return '';
        const { count, share } = bucket;
        return `${whole(count).padStart(7)}  ${exactPercent(100 * share).padStart(7)}  ${bar(highest === 0 ? 0 : share / highest, barWidths.histogram)}`;
      }),
    ),
  ]);
  return [{ title: 'Answers by latency:', tables: [table], below: [] }];
}

/** The published bucket in which the quantile (0 to 1) lies, e.g. "600–750 µs"; '' without buckets. */
export function publishedQuantile(published: Published, quantile: number): string {
  const bucket = quantileBucket(publishedBuckets(published), quantile);
  return bucket === undefined ? '' : bucketLabel(bucket);
}

/** From this many steps on it is a ladder. */
const fewestSteps = 3;

/** A row of a ladder, with its comparison with the one before it; null where a flight of steps begins. */
interface Rung {
  variant: VariantResult;
  step: Comparison | null;
}

/**
 * A ladder: rows that build on each other, each compared with the row before it. Those of a result that are the start or the end of
 * a step, in the table's order; none where there are too few steps.
 */
export function ladderOf({
  variants,
  comparisons,
}: Pick<Result, 'variants' | 'comparisons'>): Rung[] {
  const rungs = variants.map((variant, index): Rung => ({
    variant,
    step:
      index === 0
        ? null
        : (comparisonOf(
            { comparisons },
            variant.name,
            (variants[index - 1] as VariantResult).name,
          ) ?? null),
  }));
  // Of a sweep with two variants each other row is compared with the one before it, and none of it is a step.
  if (
    rungs.filter(({ step }) => step !== null).length < fewestSteps ||
    variants.some(({ series }) => series !== undefined)
  )
    return [];
  return rungs.filter(
    ({ step }, index) => step !== null || (rungs[index + 1]?.step ?? null) !== null,
  );
}

/** Bars of requests/s, step by step, with the effect of each step, published beside measured. */
export function ladderPart(result: Result): Part[] {
  const rungs = ladderOf(result);
  const highest = Math.max(0, ...rungs.map(({ variant }) => variant.rps?.median ?? 0));
  if (highest === 0) return [];
  const table = tableOf(rungs, [
    leftColumn('step', ({ variant }) => variant.name),
    rightColumn('requests/s', ({ variant: { rps, server } }) =>
      server === null ? 'published only' : figure(rps?.median, perSecond),
    ),
    leftColumn('', ({ variant: { rps } }) => bar((rps?.median ?? 0) / highest, barWidths.ladder), {
      joined: true,
    }),
    leftColumn('effect of the step', ({ variant, step }) =>
      step !== null && comparable(variant, step) ? verdictCell(step, result) : '',
    ),
    leftColumn('published', ({ step }) => figure(step?.publishedRatio, times), { joined: true }),
  ]);
  return [{ title: 'Step by step, each against the row before it:', tables: [table], below: [] }];
}

/** The sweep over concurrent streams per connection; a mark in each bar is where HTTP/1 ends. */
export function streamsPart(result: Result): Part[] {
  const sweep = streamSweep(result);
  if (sweep === undefined) return [];
  const { line, curve } = sweep;
  const highest = Math.max(line.rps, ...curve.map(({ rps }) => rps));
  if (highest === 0) return [];
  const mark = Math.min(
    barWidths.streams - 1,
    Math.round((line.rps / highest) * barWidths.streams),
  );
  const table = tableOf(
    [...curve, line],
    [
      leftColumn('streams', (point) =>
        point === line
          ? protocolNames(line.variant.load.protocol)
          : String(streamsOf(point.variant)),
      ),
      rightColumn('requests/s', ({ rps }) => perSecond(rps)),
      leftColumn('ratio', (point) => (point === line ? '' : times(point.ratio))),
      leftColumn('', ({ rps }) => marked(bar(rps / highest, barWidths.streams), mark)),
    ],
  );
  return [
    {
      title: `requests/s by streams per connection; │ is ${line.variant.name}:`,
      tables: [table],
      below: [],
    },
  ];
}

function marked(text: string, at: number): string {
  const padded = text.padEnd(at + 1);
  return `${padded.slice(0, at)}│${padded.slice(at + 1)}`;
}
