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

/** The types require exactly the tags of the catalogue. */
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

/** A server_rss point for each sample, and a server_cpu point for each but the first. @param samples in order of time */
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
  }: Pick<RoundRow, 'ratio' | 'soFar' | 'generatorShare' | 'network'> & {
    tags: Tags<typeof benchRound>;
  },
  phase: Phase,
): string {
  return pointOf(
    benchRound,
    tags,
    {
      ...phase,
      network: undefined,
      ...known,
      phases: [phase],
      label: `round ${tags.round}: ${tags.variant}`,
    },
    toNanoseconds(phase.startedAt),
  );
}

/** Returns a function that makes points. `place` is their order, in nanoseconds after the run's start. */
function pointsAt({ run, scenario, startedAt }: Pick<Result, 'run' | 'scenario' | 'startedAt'>) {
  const start = toNanoseconds(startedAt);
  return <M extends Measurement, Row>(
    measurement: M & Written<Row>,
    place: number,
    tags: Omit<Tags<NoInfer<M>>, 'run' | 'scenario'>,
    row: NoInfer<Row>,
  ) =>
    pointOf(
      measurement as Measurement & Written<Row>,
      { run, scenario, ...tags },
      row,
      start + BigInt(place),
    );
}

/** The points of the table. Their times begin at the run's start, a nanosecond apart, so that they sort in its order. */
export function tablePoints(result: Result): string[] {
  const { search, variants } = result;
  const at = pointsAt(result);
  const comparisons = variants.map((variant, position) => {
    const comparison = comparisonOf(result, variant.name);
    const tags = {
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
    return at(benchComparison, position, tags, {
      position,
      result,
      variant,
      comparison,
      measured,
      // NaN would leave an earlier round's interval in the database.
      interval: measured && (hasRatio(measured) ? intervalOf(measured) : measured.ci95),
      cpuInterval: variant.rounds.length > 1 ? comparison?.cpu?.ci95 : undefined,
      found: search?.found.find((one) => one.variant === variant.name),
      network: variant.network,
      phases: variant.rounds.flatMap((round) => round.phases),
    });
  });
  const phases = variants.flatMap((variant, position) =>
    phasePairs(variant).map(({ phase, ...pair }) => ({
      position,
      ...pair,
      protocol: variant.load.protocol,
      tags: { variant: variant.name, phase: String(phase), server: variant.server?.name },
    })),
  );
  const sweep = streamSweep(result);
  const names = variants.map(({ name, series }) => series ?? name);
  return [
    ...comparisons,
    ...phases.map(({ tags, protocol, ...row }, index) =>
      at(benchPhase, index, { ...tags, protocol }, row),
    ),
    ...phases.flatMap(({ tags, ...row }) => {
      const [inArticle, here] = [publishedBuckets(row.published), row.measured?.buckets ?? []];
      return (here.length > 0 ? here : inArticle).map((bucket, position) => {
        const [published, measured] = [inArticle, here].map((buckets) =>
          buckets.find((one) => sameBucket(one, bucket)),
        );
        return at(
          benchBucket,
          position,
          { ...tags, bucket: bucketLabel(bucket) },
          { position, bucket, published, measured },
        );
      });
    }),
    ...(sweep?.curve ?? []).map(({ variant, rps }, index) =>
      at(
        benchStreams,
        index,
        {
          variant: variant.name,
          server: variant.server?.name,
          streams: String(streamsOf(variant)),
        },
        { rps, http1Rps: sweep?.line.rps },
      ),
    ),
    // Later rounds add to some of the curves: a point's time depends only on its own.
    ...curvesOf(result).flatMap(({ name, points }) =>
      points.map((point, position) =>
        at(
          benchCurve,
          position * names.length + names.indexOf(name),
          { variant: name },
          { position, ...point },
        ),
      ),
    ),
    // Side by side within each page.
    ...variants.flatMap(({ name: variant }, side) =>
      pagesOf(result, variant)
        .slice(0, mostPages)
        .map((one, position) =>
          at(
            benchPage,
            position * variants.length + side,
            { variant, page: one.page },
            {
              ...one,
              position,
              effect: comparisonOf(result, variant)?.pages?.find(({ page }) => page === one.page),
            },
          ),
        ),
    ),
  ];
}

/** The rest is in report.html. */
const mostPages = 10;

/** A side has fewer parts. */
const mostParts = 1000;

/** The bench_why points, side by side. */
export function whyPoints(result: Result): string[] {
  const at = pointsAt(result);
  return (result.why?.sides ?? []).flatMap(({ variant, cpu, calls }, side) =>
    cpu.map(({ kind, name, us, sdUs }, position) => {
      const perRequest =
        kind === 'call' ? calls.find((call) => call.name === name)?.perRequest : undefined;
      return at(
        benchWhy,
        side * mostParts + position,
        { variant, part: name },
        { position, us, sdUs, perRequest },
      );
    }),
  );
}

/** Written once, at the run's end, because each round changes them. @param from place of the first */
export function sentencePoints(
  result: Pick<Result, 'run' | 'scenario' | 'startedAt' | 'warnings'>,
  found: readonly { kind: string; text: string }[],
  from = 0,
): string[] {
  const at = pointsAt(result);
  return [...found, ...result.warnings.map((text) => ({ kind: 'warning', text }))].map(
    ({ kind, text }, index) => at(benchSentence, from + index, { kind }, { text }),
  );
}

type RunState = Omit<RunRow, 'ended'> &
  Pick<Result, 'run' | 'scenario' | 'endedAt' | 'comparisons' | 'search'>;

/** The bench_run point, at the run's start, so that each replaces the last. */
export function runPoint(state: RunState, hasEnded: boolean): string {
  const { comparisons, search, endedAt } = state;
  // The noise floor is of requests/s.
  const isOfRps = search === undefined && comparisons.every(({ metric }) => metric === 'rps');
  return pointsAt(state)(
    benchRun,
    0,
    {},
    {
      ...state,
      noiseFloor: isOfRps ? state.noiseFloor : null,
      ended: hasEnded ? Date.parse(endedAt) : null,
    },
  );
}
