// The charts of a run: bars in text, plots in report.html, each with its figures in a table.
import { measuredComparisons, roundRatiosOf } from '../analysis/comparisons.ts';
import { curveRows, type CurvePoint, type CurveRow } from '../analysis/curves.ts';
import {
  allBuckets,
  percentileNames,
  percentiles,
  publishedBuckets,
  quantileBucket,
  sameBucket,
} from '../analysis/latency.ts';
import { responsesOf } from '../analysis/phases.ts';
import { extent } from '../analysis/statistics.ts';
import { bar, bucketLabel, exactPercent, scaledTime, whole } from '../format.ts';
import type { Contribution } from './contribution.ts';
import { curvesOf, foundIn } from './found.ts';
import type { Bars, Lines } from './html/figure.ts';
import type { Figure } from './html/page.ts';
import { pointsByRound } from './metric-words.ts';
import {
  figure,
  leftColumn,
  rightColumn,
  tableOf,
  type Column,
  type Part,
  type Table,
} from './table.ts';
import { metricMark } from './verdict-words.ts';
import type { LatencyFigures } from '../result/load-result.ts';
import type { BucketShare, PhaseResult, Result, VariantResult } from '../result/result.ts';
import { latencyMetrics, type LatencyMetric } from '../scenario/latency-metrics.ts';
import { isAtRate } from '../scenario/load.ts';
import type { Within } from '../scenario/model.ts';
import type { Published } from '../scenario/published.ts';
import { present, allNames } from '../present.ts';

/** A figure whose table has bars. The terminal and Markdown show the table below `heading`. */
type Chart = Figure & { heading: string };

/** The longest bar, in characters. */
const barWidth = 12;

/** The charts of the terminal and Markdown. */
export function chartsOf(result: Result): Part[] {
  return [...curveChart(result), ...histogramChart(result)].map(({ heading, tables }) => ({
    title: heading,
    tables,
    below: [],
  }));
}

/** The plots of report.html. */
export function figuresOf(result: Result, contributions: readonly Contribution[]): Figure[] {
  return [
    ...curveChart(result),
    ...contributions.flatMap(({ figures = [] }) => figures),
    ...roundFigures(result),
    ...histogramChart(result),
    ...percentileFigures(result),
  ];
}

const textsOfSweep = {
  heading: 'Latency by rate; bars are p99:',
  text: 'Marks are p99 at each rate.',
};

function curveChart(result: Result): Chart[] {
  const curves = curvesOf(result);
  if (curves.length === 0) return [];
  const rows = curveRows(curves);
  const rates = foundIn(result);
  const limit = rates?.limit;
  // The percentile that a search judges by.
  const main = limit?.metric ?? 'p99';
  const others = (['p50', 'p99'] as const).filter((name) => name !== main);
  const shown = rows.flatMap(({ seen }) => [...seen.values()]);
  const longest =
    limit === undefined ? Math.max(...shown.map((point) => point[main] ?? 0)) : 2 * limit.ms;
  const columns = curves.flatMap(({ name: group }) => {
    const column = (title: string, of: (point: CurvePoint) => string) =>
      rightColumn(title, ({ seen }: CurveRow) => figure(seen.get(group), of), group);
    return [
      ...others.map((name) => column(name, (point) => scaledTime(point[name]))),
      column(main, (point) => {
        const ms = point[main] ?? 0;
        const drawn = bar(Math.min(1, ms / longest), barWidth).padEnd(barWidth);
        return `${scaledTime(ms)} ${endOf(point, limit)?.sign ?? ' '}${drawn}`;
      }),
    ];
  });
  return [
    {
      ...(rates?.chart ?? textsOfSweep),
      title: 'Latency by rate',
      data: {
        kind: 'lines',
        x: { title: 'requests/s (log scale)', isLog: true },
        y: { title: 'latency, ms (log scale)', isLog: true },
        names: allNames(curves),
        limit: limit === undefined ? null : { y: limit.ms, text: limit.text },
        marks: curves.flatMap(({ name, points }) =>
          points.map((point) => curveMark(name, point, limit)),
        ),
        lines: [
          ...others.flatMap((name) => curveLines(rows, name, 'dashed')),
          ...curveLines(rows, main, 'strong'),
        ],
      },
      tables: [tableOf(rows, [rightColumn('requests/s', ({ rate }) => whole(rate)), ...columns])],
    },
  ];
}

/** Returns why a step was not kept, in a word and as a sign; undefined if it was. */
function endOf(point: CurvePoint, limit: Within | undefined) {
  if (limit === undefined || point.kept !== false) return undefined;
  if ((point[limit.metric] ?? 0) > limit.ms) return { sign: '×', text: 'above the limit' };
  return { sign: '<', text: 'the rate was not reached, or requests failed' };
}

function curveMark(
  name: string,
  point: CurvePoint,
  limit: Within | undefined,
): Lines['marks'][number] {
  const { rate, kept } = point;
  const figures = latencyMetrics.flatMap((percentile) => {
    const ms = point[percentile];
    return ms === undefined ? [] : `${percentile} ${scaledTime(ms)}`;
  });
  const end = endOf(point, limit);
  const texts = [...figures, ...(end === undefined ? [] : [end.text])];
  const title = `${name}, ${whole(rate)} requests/s: ${texts.join(', ')}`;
  return { name, x: rate, y: point[limit?.metric ?? 'p99'] ?? 0, ...present({ kept }), title };
}

/** A line per curve through its points' percentiles. */
function curveLines(
  rows: readonly CurveRow[],
  percentile: LatencyMetric,
  look: 'dashed' | 'strong',
): Lines['lines'] {
  return rows.flatMap(({ seen }) =>
    [...seen].map(([name, { rate: x, [percentile]: y = 0 }]) => {
      return { name, line: `${name} ${percentile}`, look, x, y, end: percentile };
    }),
  );
}

/** Shows answers by latency as vegeta prints them: a row per bucket, the servers side by side. */
function histogramChart({ variants }: Result): Chart[] {
  const all: { name: string; buckets: readonly BucketShare[] }[] = [];
  for (const { name, published } of variants)
    all.push({ name: `${name}, published`, buckets: publishedBuckets(published) });
  for (const { name, phases } of variants)
    all.push({ name: `${name}, here`, buckets: phases[0]?.buckets ?? [] });
  const series = all.filter(({ buckets }) => buckets.length > 0);
  if (series.length === 0) return [];
  const highest = Math.max(...series.flatMap(({ buckets }) => buckets.map(({ share }) => share)));
  const rows = allBuckets(series.map(({ buckets }) => buckets));
  const inRow = (buckets: readonly BucketShare[], row: BucketShare) =>
    buckets.filter((bucket) => sameBucket(bucket, row));
  const bars: Bars['bars'] = [];
  for (const row of rows)
    for (const { name, buckets } of series)
      for (const { share } of inRow(buckets, row)) {
        const value = 100 * share;
        bars.push({ group: bucketLabel(row), name, value, label: exactPercent(value) });
      }
  const barText = ({ count, share }: BucketShare) => {
    const drawn = bar(highest === 0 ? 0 : share / highest, barWidth);
    return `${whole(count).padStart(7)}  ${exactPercent(100 * share).padStart(7)}  ${drawn}`;
  };
  const column = ({ name, buckets }: (typeof series)[number]) =>
    leftColumn(name, (row: BucketShare) => inRow(buckets, row).map(barText).join(''));
  return [
    {
      heading: 'Answers by latency:',
      title: 'Answers by latency, published beside measured',
      text: 'Shares of all answers within each range of latencies, as vegeta counts them.',
      data: { kind: 'bars', names: allNames(series), bars },
      tables: [tableOf(rows, [leftColumn('latency', bucketLabel), ...series.map(column)])],
    },
  ];
}

/** Returns the published bucket that holds a quantile (0 to 1), such as "600–750 µs"; '' without buckets. */
export function publishedQuantile(published: Published, quantile: number): string {
  const bucket = quantileBucket(publishedBuckets(published), quantile);
  return bucket === undefined ? '' : bucketLabel(bucket);
}

/** Plots each round by the metric of the verdict. Empty for a curve, and if fewer than two variants succeeded. */
function roundFigures(result: Result): Figure[] {
  const { axis, text, points } = pointsByRound(result);
  const names = [...new Set(allNames(points))];
  if (names.length < 2 || curvesOf(result).length > 0) return [];
  const column = (name: string) =>
    rightColumn(
      name,
      (round: number) => {
        const ofRound = points.find((point) => point.name === name && point.round === round);
        return figure(ofRound?.value, text);
      },
      axis,
    );
  const rounds = [...new Set(points.map(({ round }) => round))].sort((a, b) => a - b);
  const [low, high] = extent(points.map(({ value }) => value));
  // The sides of a round stand beside each other around its number.
  const placeOf = ({ name, round, value }: (typeof points)[number]) => ({
    name,
    x: rounds.indexOf(round) + 0.56 * (names.indexOf(name) / (names.length - 1) - 0.5),
    y: value,
  });
  const table = tableOf(rounds, [leftColumn('round', String), ...names.map(column)]);
  return [
    {
      title: 'Round by round',
      text: `${axis} of each side; a line joins the sides of a round. Lines with the same slope show the same effect. The axis may begin above 0.`,
      data: {
        kind: 'lines',
        x: {
          title: 'round',
          ticks: rounds.map((round, at) => ({ at, text: String(round) })),
        },
        y: { title: axis, isLog: false, from: 2 * low > high ? low - 0.06 * (high - low) : 0 },
        names,
        marks: points.map((point) => ({
          ...placeOf(point),
          title: `${point.name}, round ${point.round}: ${point.value.toLocaleString('en-US', { maximumFractionDigits: point.value < 100 ? 3 : 0 })}`,
        })),
        lines: points.map((point) => {
          const line = `round ${point.round}`;
          return { ...placeOf(point), name: line, line, look: 'thin' };
        }),
      },
      tables: [table, roundsTable(result)],
    },
  ];
}

/** The ratio of each round, a column for each comparison. */
export function roundsTable(result: Result): Table {
  const numbers = new Set<number>();
  const columns: [Column<number>, ...Column<number>[]] = [rightColumn('round', String)];
  for (const comparison of measuredComparisons(result)) {
    const { metric, variant, baseline, roundRatios } = comparison;
    if (roundRatios.length === 0) continue;
    const ratios = new Map<number, string>();
    for (const { round, ratio } of roundRatiosOf(comparison, result)) {
      ratios.set(round, ratio.toFixed(4));
      numbers.add(round);
    }
    const title = `${metricMark(metric)}${variant} / ${baseline}`;
    columns.push(rightColumn(title, (round) => ratios.get(round) ?? ''));
  }
  return tableOf(
    [...numbers].sort((a, b) => a - b),
    columns,
  );
}

/** Ticks of the axis of percentiles, as 1 / (1 − p). */
const percentileTicks = [2, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7];

function ticksUpTo(furthest: number): { at: number; text: string }[] {
  const ticks = percentileTicks.filter((at) => at <= furthest);
  return ticks.map((at) => ({ at, text: percentText(1 - 1 / at) }));
}

/** Charts of more variants omit the lines of single rounds. */
const mostWithRounds = 4;

/** Plots latency over 1 / (1 − p), as HdrHistogram does; a figure per load phase. */
function percentileFigures({ variants }: Result): Figure[] {
  const phases = Math.max(0, ...variants.map((variant) => variant.phases.length));
  return [...Array(phases).keys()].flatMap((index) => {
    const shown = variants.filter((variant) => (variant.phases[index]?.latencyMs.max ?? 0) > 0);
    if (shown.length === 0) return [];
    const withRounds = shown.length <= mostWithRounds;
    const points = shown.flatMap((variant) => percentilePoints(variant, index, withRounds));
    const strong = points.filter(({ look }) => look === 'strong');
    const [shortest] = extent(strong.map(({ y }) => y).filter((ms) => ms > 0));
    const isLog = extent(points.map(({ y }) => y))[1] > 20 * shortest;
    const [, furthest] = extent(points.map(({ x }) => x));
    const column = (title: string, key: keyof LatencyFigures) =>
      rightColumn(title, (variant: VariantResult) =>
        figure(variant.phases[index]?.latencyMs[key], scaledTime),
      );
    return {
      title: `Latency by percentile${phases > 1 ? `, phase ${index + 1}` : ''}`,
      text: `Latencies of each variant${withRounds ? '; thin lines are single rounds' : ''}. The last mark of a line is the longest of all. ${timesFrom(shown)}`,
      data: {
        kind: 'lines',
        x: {
          title: 'percentile, on a log scale of 1 / (1 − p)',
          isLog: true,
          ticks: ticksUpTo(furthest),
        },
        y: { title: `latency, ms${isLog ? ' (log scale)' : ''}`, isLog },
        names: allNames(shown),
        marks: strong,
        lines: points,
      },
      tables: [
        tableOf(shown, [
          leftColumn('variant', ({ name }) => name),
          column('min', 'min'),
          ...percentileNames.map((key) => column(percentText(percentiles[key]), key)),
          column('max', 'max'),
        ]),
      ],
    };
  });
}

type PercentilePoint = Lines['marks'][number] & Lines['lines'][number];

/** Returns the points of a variant's line in a load phase, and of the lines of its rounds. */
function percentilePoints(
  { name, phases, rounds }: VariantResult,
  index: number,
  withRounds: boolean,
): PercentilePoint[] {
  const points: PercentilePoint[] = [];
  const add = (
    line: string,
    look: 'strong' | 'thin',
    { latencyMs, responses }: Pick<PhaseResult, 'latencyMs' | 'responses'>,
  ) => {
    for (const [x, percentile, y] of percentilesOf(latencyMs, responsesOf({ responses })))
      points.push({ name, line, look, x, y, title: `${name}, ${percentile}: ${y} ms` });
  };
  const all = phases[index];
  if (all !== undefined) add(name, 'strong', all);
  if (!withRounds) return points;
  for (const { round, phases: ofRound } of rounds) {
    const phase = ofRound[index];
    if (phase !== undefined && phase.latencyMs.max > 0) add(`${name} ${round}`, 'thin', phase);
  }
  return points;
}

/** The longest of n responses is the percentile 1 − 1/n; percentiles beyond it are unknown. */
function percentilesOf(
  latencyMs: LatencyFigures,
  responses: number,
): (readonly [at: number, percentile: string, ms: number])[] {
  const middle = percentileNames.map((key) => {
    const at = Number((1 / (1 - percentiles[key])).toPrecision(12));
    return [at, percentText(percentiles[key]), latencyMs[key]] as const;
  });
  return [
    [1, 'min', latencyMs.min],
    ...middle.filter(([at]) => at < responses),
    [Math.max(2, responses), 'max', latencyMs.max],
  ];
}

/** 0.999 is "99.9 %". */
const percentText = (quantile: number) => `${Number((100 * quantile).toFixed(6))} %`;

/** From when the latencies of these loads are counted. */
export function timesFrom(variants: readonly VariantResult[]): string {
  if (variants.some(({ load }) => load.together))
    return 'Latency is the time of a page: from the request of its first file to the end of its last.';
  const atRate = variants.filter(({ load }) => isAtRate(load)).length;
  if (atRate === 0)
    return 'Latency is service time: it begins when a request is sent, after the answer to the one before.';
  return `Latency is from when a request was due${atRate === variants.length ? '' : '; without a rate, service time'}.`;
}
