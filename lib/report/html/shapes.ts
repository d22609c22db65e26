// The figures of single scenarios: ratios beside an article's, a ladder, vegeta's histogram, requests/s by streams, and latency by rate.
import { publishedBuckets } from '../../analysis/buckets.ts';
import { curveRows, curvesOf } from '../../analysis/curve.ts';
import { streamsOf, streamSweep } from '../../analysis/stream-sweep.ts';
import { minimumRounds } from '../../analysis/verdict.ts';
import { limitText } from '../../analysis/within.ts';
import { bucketLabel, exactPercent, perSecond, times } from '../../format.ts';
import type { BucketShare, Comparison, Result } from '../../result/result.ts';
import { histogramPart, ladderOf, ladderPart, streamsPart } from '../bars.ts';
import { curvePart } from '../curve.ts';
import { figure, leftColumn, rightColumn, tableOf } from '../table.ts';
import { verdictCell } from '../verdict-words.ts';
import type { Bar, Bars, Figure } from './figure.ts';

/** Bars of ratios to the baseline, published beside measured. None where the article has no ratio to stand beside. Steps of a ladder and points of a curve are in figures of their own. */
export function ratioFigures(result: Result): Figure[] {
  const steps = new Set(ladderOf(result).map(({ step }) => step));
  const curve = streamSweep(result)?.line.variant.name;
  const compared = result.comparisons.filter(
    (one) =>
      !steps.has(one) &&
      one.baseline !== curve &&
      one.metric === 'rps' &&
      (one.ratio > 0 || one.publishedRatio !== null),
  );
  if (!compared.some(({ publishedRatio }) => publishedRatio !== null)) return [];
  const baselines = new Set(compared.map(({ baseline }) => baseline));
  const only = baselines.size === 1 ? [...baselines][0] : undefined;
  const nameOf = ({ variant, baseline }: Comparison): string =>
    only === undefined ? `${variant} against ${baseline}` : variant;
  return [
    {
      title: `requests/s against ${only ?? 'the baseline'}, published beside measured`,
      text: `Ratios: 1 is as many requests/s as ${only ?? 'the baseline'}. They are what two machines can be compared by.`,
      data: ratioBars(
        'ratio',
        compared.map((one) => ({
          group: nameOf(one),
          published: one.publishedRatio,
          here: one.ratio === 0 ? null : one.ratio,
        })),
      ),
      tables: [
        tableOf(compared, [
          leftColumn('variant', nameOf),
          rightColumn('published', ({ publishedRatio }) => figure(publishedRatio, times)),
          leftColumn('here', (one) => verdictCell(one, result)),
        ]),
      ],
    },
  ];
}

/** A ladder's bars, of measured and of published requests/s, each by those of the first row that has both. */
export function ladderFigures(result: Result): Figure[] {
  const rows = ladderOf(result).map(({ variant }) => ({
    name: variant.name,
    here: variant.rps?.median ?? null,
    published: variant.published?.rps ?? null,
  }));
  const first =
    rows.find(({ here, published }) => (here ?? 0) > 0 && published !== null) ??
    rows.find(({ here }) => (here ?? 0) > 0);
  if (first === undefined) return [];
  const by = (value: number | null, unit: number | null): number | null =>
    value === null || unit === null ? null : value / unit;
  return [
    {
      title: 'Step by step, published beside measured',
      text: `requests/s by those of ${first.name}: 1 is as many.`,
      data: ratioBars(
        `ratio to ${first.name}`,
        rows.map(({ name, here, published }) => ({
          group: name,
          published: by(published, first.published),
          here: by(here, first.here),
        })),
      ),
      tables: ladderPart(result).flatMap(({ tables }) => tables),
    },
  ];
}

/** What is null has no bar. */
function ratioBars(
  axis: string,
  rows: readonly { group: string; published: number | null; here: number | null }[],
): Bars {
  const bar = (group: string, value: number | null, published: boolean): Bar[] =>
    value === null ? [] : [{ group, published, value, label: times(value) }];
  const bars = rows.flatMap(({ group, published, here }) => [
    ...bar(group, published, true),
    ...bar(group, here, false),
  ]);
  return { kind: 'bars', axis, reference: 1, panels: [{ title: '', bars }] };
}

/** Answers by latency, a panel per variant. */
export function histogramFigures(result: Result): Figure[] {
  const [part] = histogramPart(result);
  if (part === undefined) return [];
  const bars = (buckets: readonly BucketShare[], published: boolean): Bar[] =>
    buckets.map((bucket) => ({
      group: bucketLabel(bucket),
      published,
      value: 100 * bucket.share,
      label: exactPercent(100 * bucket.share),
    }));
  const panels = result.variants.map(({ name, published, phases }) => ({
    title: name,
    bars: [...bars(publishedBuckets(published), true), ...bars(phases[0]?.buckets ?? [], false)],
  }));
  return [
    {
      title: 'Answers by latency, published beside measured',
      text: [
        'Shares of all answers within each range of latencies, as vegeta counts them.',
        ...part.below,
      ].join(' '),
      data: {
        kind: 'bars',
        axis: '% of the answers',
        panels: panels.filter((panel) => panel.bars.length > 0),
        percent: true,
      },
      tables: part.tables,
    },
  ];
}

/** requests/s by concurrent streams per connection against HTTP/1.1. */
export function streamFigures(result: Result): Figure[] {
  const sweep = streamSweep(result);
  if (sweep === undefined) return [];
  const { line, curve } = sweep;
  return [
    {
      title: `requests/s by streams per connection, against ${line.variant.name}`,
      text: `Ratios: 1 is as many requests/s as ${line.variant.name} makes (${perSecond(line.rps)}). Lines through the marks are 95 % intervals.`,
      data: {
        kind: 'streams',
        line: line.variant.name,
        points: curve.map(({ variant, rps, ratio, comparison }) => ({
          streams: streamsOf(variant),
          ratio,
          published: comparison?.publishedRatio ?? null,
          interval:
            comparison === undefined || comparison.roundRatios.length < minimumRounds
              ? null
              : comparison.ci95,
          label: `${variant.name}: ${times(ratio)}, ${perSecond(rps)} requests/s`,
        })),
      },
      tables: streamsPart(result).flatMap(({ tables }) => tables),
    },
  ];
}

/** Latency by rate, of a search or a sweep; nothing of another run. */
export function curveFigures(result: Result): Figure[] {
  const curves = curvesOf(result);
  if (curves.length === 0) return [];
  const { search } = result;
  const limit =
    search === undefined ? null : { ms: search.within.ms, text: limitText(search.within) };
  const rows = curveRows(curves);
  return [
    {
      title: 'Latency by rate',
      text:
        limit === null
          ? 'Marks are p99 at each rate.'
          : `Each mark is the p99 of a step of the search, filled where ${limit.text} was kept; lines go through the medians of steps at about the same rate.`,
      data: {
        kind: 'curve',
        names: curves.map(({ name }) => name),
        limit,
        points: curves.flatMap(({ name, points }) => points.map((point) => ({ name, ...point }))),
        lines: rows.flatMap(({ seen }) =>
          [...seen].map(([name, { rate, p50, p99 }]) => ({ name, rate, p50, p99 })),
        ),
      },
      tables: curvePart(result).flatMap(({ tables }) => tables),
    },
  ];
}
