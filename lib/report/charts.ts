// Tables with bars: answers by latency, a ladder step by step, and requests/s by concurrent streams.
import {
  allBuckets,
  publishedBuckets,
  quantileBucket,
  sameBucket,
  mergedLatency,
  isLatency,
} from '../analysis/latency.ts';
import {
  comparisonOf,
  measuredComparisons,
  roundRatiosOf,
  comparable,
} from '../analysis/comparisons.ts';
import {
  type CurvePoint,
  type CurveRow,
  curveRows,
  curvesOf,
  streamSweep,
  streamsOf,
} from '../analysis/curve.ts';
import {
  isFailing,
  responsesOf,
  roundRps,
  serverCpuSecondsPerResponse,
} from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { minimumRounds } from '../analysis/verdict.ts';
import { limitText } from '../analysis/within.ts';
import {
  bar,
  bucketLabel,
  enumeration,
  exactPercent,
  perSecond,
  scaledTime,
  short,
  times,
  whole,
} from '../format.ts';
import type { Bar, Bars, Figure, Percentile, Percentiles, Rounds } from './html/figure.ts';
import { type Part, type Table, figure, leftColumn, rightColumn, tableOf } from './table.ts';
import { metricMark, verdictCell } from './verdict-words.ts';
import type {
  BucketShare,
  Comparison,
  FoundRate,
  LatencyFigures,
  Metric,
  Phase,
  PhaseResult,
  Result,
  VariantResult,
} from '../result/result.ts';
import { isAtRate, protocolNames } from '../scenario/load.ts';
import type { Published } from '../scenario/model.ts';

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

// Latency by rate as text: a search's steps, or a sweep.

const barWidth = 16;

/** p50 and p99 by rate, beside each other; bars are p99. Nothing where a result has no curve. */
export function curvePart(result: Pick<Result, 'search' | 'variants'>): Part[] {
  const curves = curvesOf(result);
  if (curves.length === 0) return [];
  const rows = curveRows(curves);
  const { search } = result;
  // What is far beyond the limit tells no more than that it is.
  const longest =
    search === undefined
      ? Math.max(...rows.flatMap(({ seen }) => [...seen.values()].map(({ p99 }) => p99)))
      : 2 * search.within.ms;
  const table = tableOf(rows, [
    rightColumn('requests/s', ({ rate }) => whole(rate)),
    ...curves.flatMap(({ name }) => {
      const told =
        (text: (point: CurvePoint) => string) =>
        ({ seen }: CurveRow): string => {
          const point = seen.get(name);
          return point === undefined ? '' : text(point);
        };
      const joined = { group: name, joined: true } as const;
      return [
        rightColumn(
          'p50',
          told(({ p50 }) => scaledTime(p50)),
          { group: name },
        ),
        rightColumn(
          'p99',
          told(({ p99 }) => scaledTime(p99)),
          joined,
        ),
        leftColumn(
          '',
          told(
            ({ p99, kept }) =>
              (kept === false ? '×' : ' ') + bar(Math.min(1, p99 / longest), barWidth),
          ),
          joined,
        ),
      ];
    }),
  ]);
  const title =
    search === undefined
      ? 'Latency by rate; bars are p99:'
      : `Latency by rate; bars are p99, × where ${limitText(search.within)} was not kept:`;
  return [{ title, tables: [table], below: [] }];
}

/** "at least 39,300", what stands in a table of what a search found. */
export function foundText({ rate, atLeast }: FoundRate): string {
  return `${atLeast ? 'at least ' : ''}${whole(rate)}`;
}

// The figures of single scenarios: ratios beside an article's, a ladder, vegeta's histogram, requests/s by streams, and latency by rate.

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

// The sides in each round: what is compared is within a round.

/** Of a curve, which is of many loads, of one side, and of those that failed there is none. */
export function roundFigures(result: Result): Figure[] {
  const shown = result.variants.filter(
    (variant) => variant.rounds.length > 0 && !isFailing(variant),
  );
  const metric = result.comparisons[0]?.metric ?? 'rps';
  const points = shown
    .flatMap(({ name, rounds }): Rounds['points'] =>
      rounds.map(({ round, phases }) => ({ name, round, value: figureOf(metric, phases) })),
    )
    .filter(({ value }) => Number.isFinite(value));
  const names = [...new Set(points.map(({ name }) => name))];
  if (names.length < 2 || curvesOf(result).length > 0) return [];
  const axis = isLatency(metric)
    ? `${metric}, ms`
    : metric === 'cpu'
      ? 'CPU µs per request'
      : 'requests/s';
  return [
    {
      title: 'Round by round',
      text: `${axis} of each side, the sides of a round joined by a line: lines with the same slope show the same effect. The axis may begin above 0.`,
      data: { kind: 'rounds', axis, names, points },
      tables: [
        tableOf(
          [...new Set(points.map(({ round }) => round))],
          [
            leftColumn('round', String),
            ...names.map((name) =>
              rightColumn(
                name,
                (round: number) =>
                  points
                    .filter((one) => one.name === name && one.round === round)
                    .map(({ value }) => (metric === 'rps' ? perSecond(value) : short(value)))
                    .join(''),
                { group: axis },
              ),
            ),
          ],
        ),
        roundsTable(result),
      ],
    },
  ];
}

function figureOf(metric: Metric, phases: readonly Phase[]): number {
  if (isLatency(metric)) return mergedLatency(phases.map(({ latencyMs }) => latencyMs))[metric];
  return metric === 'rps' ? roundRps(phases) : 1e6 * serverCpuSecondsPerResponse(phases);
}

// Latency percentiles as HdrHistogram plots them: over 1 / (1 − p), on a log scale.

const known = [
  ['p50', 0.5, '50 %'],
  ['p75', 0.75, '75 %'],
  ['p90', 0.9, '90 %'],
  ['p95', 0.95, '95 %'],
  ['p99', 0.99, '99 %'],
  ['p999', 0.999, '99.9 %'],
] as const;

/** With more variants only one line each can be told apart. */
const mostWithRounds = 4;

/** A figure per load phase. */
export function percentileFigures(result: Result): Figure[] {
  const { variants } = result;
  const phases = Math.max(0, ...variants.map((variant) => variant.phases.length));
  return Array.from({ length: phases }, (_, index) =>
    phaseFigure(result, index, phases > 1),
  ).flat();
}

function phaseFigure(result: Result, index: number, several: boolean): Figure[] {
  const shown = result.variants.filter(({ phases }) => (phases[index]?.latencyMs.max ?? 0) > 0);
  if (shown.length === 0) return [];
  const withRounds = shown.length <= mostWithRounds;
  const whole = shown.map((variant): Percentiles['lines'][number] => {
    const all = variant.phases[index] as PhaseResult;
    return {
      name: variant.name,
      round: null,
      points: pointsOf(
        all.latencyMs,
        total(
          variant.rounds.flatMap(({ phases }) => phases[index] ?? []),
          responsesOf,
        ),
      ),
    };
  });
  const rounds = shown.flatMap((variant): Percentiles['lines'] =>
    variant.rounds.flatMap(({ round, phases }) => {
      const phase = phases[index];
      return !withRounds || phase === undefined || phase.latencyMs.max === 0
        ? []
        : [{ name: variant.name, round, points: pointsOf(phase.latencyMs, responsesOf(phase)) }];
    }),
  );
  return [
    {
      title: `Latency by percentile${several ? `, phase ${index + 1}` : ''}`,
      text: `Latencies of each variant${withRounds ? '; thin lines are single rounds' : ''}. The last mark of a line is the longest of all. ${timesFrom(shown)}`,
      data: {
        kind: 'percentiles',
        names: shown.map(({ name }) => name),
        lines: [...whole, ...rounds],
      },
      tables: [
        tableOf(shown, [
          leftColumn('variant', ({ name }) => name),
          ...(
            [
              ['min', 'min'],
              ...known.map(([key, , name]) => [key, name] as const),
              ['max', 'max'],
            ] as const
          ).map(([key, title]) =>
            rightColumn(title, ({ phases }: VariantResult) =>
              figure(phases[index]?.latencyMs[key], scaledTime),
            ),
          ),
        ]),
      ],
    },
  ];
}

/** Of so many responses the longest one is their percentile 1 − 1/n; percentiles beyond that are not known. */
function pointsOf(latencyMs: LatencyFigures, responses: number): Percentile[] {
  const middle = known
    .map(([key, p, name]): Percentile => ({ at: 1 / (1 - p), name, ms: latencyMs[key] }))
    .filter(({ at }) => at < responses);
  return [
    { at: 1, name: 'min', ms: latencyMs.min },
    ...middle,
    { at: Math.max(2, responses), name: 'max', ms: latencyMs.max },
  ].map((point) => ({ ...point, at: Number(point.at.toPrecision(12)) }));
}

/** The ratio of each round, a column for each comparison. */
export function roundsTable(result: Result): Table {
  const measured = measuredComparisons(result)
    .filter(({ roundRatios }) => roundRatios.length > 0)
    .map((comparison) => ({ ...comparison, rounds: roundRatiosOf(comparison, result) }));
  return tableOf(
    [...new Set(measured.flatMap(({ rounds }) => rounds.map(({ round }) => round)))].sort(
      (a, b) => a - b,
    ),
    [
      rightColumn('round', String),
      ...measured.map(({ metric, variant, baseline, rounds }) =>
        rightColumn(`${metricMark(metric)}${variant} / ${baseline}`, (round: number) =>
          figure(rounds.find((one) => one.round === round)?.ratio, (ratio) => ratio.toFixed(4)),
        ),
      ),
    ],
  );
}

/** What latencies are times of: in the closed model the server sets the pace, so that what it delays is not asked in time. */
export function timesFrom(variants: readonly Pick<VariantResult, 'load'>[]): string {
  const open = variants.filter(({ load }) => isAtRate(load));
  if (open.length === 0)
    return 'Latency is service time: from when a request left, which is when the one before it was answered.';
  return open.length === variants.length
    ? 'Latency is from when a request was due.'
    : `Latency is from when a request was due with ${enumeration(open.map(({ load }) => load.command ?? ''))}, else service time.`;
}
