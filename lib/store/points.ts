// Makes bakeoff's own points by the catalogue in schema.ts.
import { publishedBuckets, sameBucket, metricNames } from '../analysis/latency.ts';
import {
  comparisonOf,
  hasRatio,
  comparable,
  curvesOf,
  streamsOf,
  streamSweep,
} from '../analysis/comparisons.ts';
import { pagesOf } from '../analysis/pages.ts';
import { phasePairs } from '../analysis/phases.ts';
import { limitText } from '../analysis/within.ts';
import { bucketLabel } from '../format.ts';
import type { Phase, Result } from '../result/result.ts';
import { line, toNanoseconds } from './line-protocol.ts';
import {
  benchBucket,
  benchComparison,
  benchCurve,
  benchPage,
  benchPhase,
  benchRound,
  benchRun,
  benchSentence,
  benchStreams,
  benchWhy,
  intervalOf,
  serverCpu,
  serverRss,
  type Measurement,
  type RoundRow,
  type RunRow,
  type Written,
} from './schema.ts';

type Tags<M extends Measurement> = Readonly<Record<M['tags'][number], string | undefined>>;

/** A line with the measurement's fields of the row. The types require exactly the tags of the catalogue. */
function pointOf<M extends Measurement, Row>(
  measurement: M & Written<Row>,
  tags: Tags<NoInfer<M>>,
  row: NoInfer<Row>,
  timestampNs: bigint,
): string {
  const fields = Object.entries(measurement.fields as Written<Row>['fields']).map(
    ([name, { of }]) => [name, of(row)] as const,
  );
  return line(measurement.measurement, tags, Object.fromEntries(fields), timestampNs);
}

/** A server's usage at an instant: `atMs` since 1970, `cpuSeconds` since the server's start. */
export interface ServerSample {
  atMs: number;
  cpuSeconds: number;
  rssBytes: number;
}

/**
 * Returns a server_rss point for each sample, and a server_cpu point for each but the first.
 * @param samples of a server, in order of time
 */
export function serverSamplePoints(
  tags: Tags<typeof serverCpu>,
  samples: readonly ServerSample[],
): string[] {
  const lines: string[] = [];
  let before: ServerSample | undefined;
  for (const sample of samples) {
    const at = toNanoseconds(sample.atMs);
    lines.push(pointOf(serverRss, tags, sample, at));
    if (before !== undefined && sample.atMs > before.atMs) {
      const cores = ((sample.cpuSeconds - before.cpuSeconds) * 1000) / (sample.atMs - before.atMs);
      lines.push(pointOf(serverCpu, tags, { cores }, at));
    }
    before = sample;
  }
  return lines;
}

/** The bench_round point of a phase. Written again with a ratio, it replaces the first point. */
export function roundPoint(
  {
    tags,
    ...known
  }: Omit<RoundRow, 'phase' | 'phases' | 'label'> & { tags: Tags<typeof benchRound> },
  phase: Phase,
): string {
  return pointOf(
    benchRound,
    tags,
    { ...known, phase, phases: [phase], label: `round ${tags.round}: ${tags.variant}` },
    toNanoseconds(phase.startedAt),
  );
}

/**
 * The points of the table: bench_comparison, bench_phase, bench_bucket, bench_streams, bench_curve and bench_page. Their times begin at the
 * run's start, a nanosecond apart, so that they sort in the table's order.
 */
export function tablePoints(result: Result): string[] {
  const start = toNanoseconds(result.startedAt);
  const { run, scenario, search } = result;
  const comparisons = result.variants.map((variant, position) => {
    const comparison = comparisonOf(result, variant.name);
    const tags = {
      run,
      scenario,
      variant: variant.name,
      server: variant.server?.name,
      version: variant.server?.version,
      baseline: comparison?.baseline,
      metric:
        comparison === undefined || comparison.metric === 'rps'
          ? undefined
          : metricNames[comparison.metric],
      within:
        search === undefined || variant.server === null ? undefined : limitText(search.within),
    };
    const measured = comparable(variant, comparison) ? comparison : undefined;
    // If there is no ratio any more, NaN would leave an earlier round's interval in the database.
    const interval = measured && (hasRatio(measured) ? intervalOf(measured) : measured.ci95);
    const cpuInterval = variant.rounds.length > 1 ? comparison?.cpu?.ci95 : undefined;
    const found = search?.found.find((one) => one.variant === variant.name);
    const phases = variant.rounds.flatMap((round) => round.phases);
    const row = {
      position,
      result,
      variant,
      comparison,
      measured,
      interval,
      cpuInterval,
      found,
      network: variant.network,
      phases,
    };
    return pointOf(benchComparison, tags, row, start + BigInt(position));
  });
  const phases = result.variants.flatMap((variant, position) =>
    phasePairs(variant).map((pair) => ({ variant, position, ...pair })),
  );
  const tagsOf = ({ variant, phase }: (typeof phases)[number]) => ({
    run,
    scenario,
    variant: variant.name,
    phase: String(phase),
    server: variant.server?.name,
  });
  return [
    ...comparisons,
    ...phases.map((row, index) =>
      pointOf(
        benchPhase,
        { ...tagsOf(row), protocol: row.variant.load.protocol },
        row,
        start + BigInt(index),
      ),
    ),
    ...phases.flatMap((row) => {
      const [inArticle, here] = [publishedBuckets(row.published), row.measured?.buckets ?? []];
      return (here.length > 0 ? here : inArticle).map((bucket, position) => {
        const [published, measured] = [inArticle, here].map((buckets) =>
          buckets.find((one) => sameBucket(one, bucket)),
        );
        return pointOf(
          benchBucket,
          { ...tagsOf(row), bucket: bucketLabel(bucket) },
          { position, bucket, published, measured },
          start + BigInt(position),
        );
      });
    }),
    ...streamPoints(result, start),
    ...curvePoints(result, start),
    ...pagePoints(result, start),
  ];
}

function streamPoints(result: Result, start: bigint): string[] {
  const sweep = streamSweep(result);
  return (sweep?.curve ?? []).map(({ variant, rps }, index) =>
    pointOf(
      benchStreams,
      {
        run: result.run,
        scenario: result.scenario,
        variant: variant.name,
        server: variant.server?.name,
        streams: String(streamsOf(variant)),
      },
      { rps, http1Rps: sweep?.line.rps },
      start + BigInt(index),
    ),
  );
}

/** A point's time depends only on its own curve, because later rounds add to some of the curves. */
function curvePoints(result: Result, start: bigint): string[] {
  const { run, scenario, variants } = result;
  const names = variants.map(({ name, series }) => series ?? name);
  return curvesOf(result).flatMap(({ name, points }) =>
    points.map((point, position) =>
      pointOf(
        benchCurve,
        { run, scenario, variant: name },
        { position, ...point },
        start + BigInt(position * names.length + names.indexOf(name)),
      ),
    ),
  );
}

/** The rest is in report.html. */
const mostPages = 10;

/** Side by side within each page. */
function pagePoints(result: Result, start: bigint): string[] {
  const { run, scenario, variants } = result;
  return variants.flatMap(({ name: variant }, side) =>
    pagesOf(result, variant)
      .slice(0, mostPages)
      .map((one, position) => {
        const effect = comparisonOf(result, variant)?.pages?.find(({ page }) => page === one.page);
        return pointOf(
          benchPage,
          { run, scenario, variant, page: one.page },
          { ...one, position, effect },
          start + BigInt(position * variants.length + side),
        );
      }),
  );
}

/** A side has fewer parts. */
const mostParts = 1000;

/** The bench_why points, side by side. */
export function whyPoints({ run, scenario, startedAt, why }: Result): string[] {
  const start = toNanoseconds(startedAt);
  return (why?.sides ?? []).flatMap(({ variant, cpu, calls }, side) =>
    cpu.map(({ kind, name, us, sdUs }, position) => {
      const perRequest =
        kind === 'call' ? calls.find((call) => call.name === name)?.perRequest : undefined;
      return pointOf(
        benchWhy,
        { run, scenario, variant, part: name },
        { position, us, sdUs, perRequest },
        start + BigInt(side * mostParts + position),
      );
    }),
  );
}

/**
 * The bench_sentence points. They are written once, at the run's end, because each round changes them.
 * @param from place of the first among all sentences of the run
 */
export function sentencePoints(
  {
    run,
    scenario,
    startedAt,
    warnings,
  }: Pick<Result, 'run' | 'scenario' | 'startedAt' | 'warnings'>,
  found: readonly { kind: string; text: string }[],
  from = 0,
): string[] {
  const lines = [...found, ...warnings.map((text) => ({ kind: 'warning', text }))];
  return lines.map(({ kind, text }, index) =>
    pointOf(
      benchSentence,
      { run, scenario, kind },
      { text },
      toNanoseconds(startedAt) + BigInt(from + index),
    ),
  );
}

type RunState = Omit<RunRow, 'ended'> &
  Pick<Result, 'run' | 'scenario' | 'endedAt' | 'comparisons' | 'search'>;

/** The bench_run point, at the run's start, so that each replaces the last. */
export function runPoint(state: RunState, hasEnded: boolean): string {
  const { run, scenario, comparisons, search, startedAt, endedAt } = state;
  // The noise floor is of requests/s.
  const noiseFloor =
    search === undefined && comparisons.every(({ metric }) => metric === 'rps')
      ? state.noiseFloor
      : null;
  return pointOf(
    benchRun,
    { run, scenario },
    { ...state, noiseFloor, ended: hasEnded ? Date.parse(endedAt) : null },
    toNanoseconds(startedAt),
  );
}
