// Makes bakeoff's own points by the catalogue in schema.ts.
import { publishedBuckets, sameBucket } from '../../analysis/latency.ts';
import { comparisonOf, hasRatio, comparable } from '../../analysis/comparisons.ts';
import type { Curve } from '../../analysis/curves.ts';
import { pagesOf } from '../../analysis/pages.ts';
import { phasePairs, phasesIn, type PhasePair } from '../../analysis/phases.ts';
import type { FoundRates } from '../../report/found.ts';
import { bucketLabel } from '../../format.ts';
import { metricWords } from '../../report/metric-words.ts';
import type { BucketShare, Phase, Result } from '../../result/result.ts';
import type { ServerSample } from '../../servers/usage.ts';
import type { ServerFigures } from '../../result/server-metrics.ts';
import { line, toNanoseconds } from '../../influx/line-protocol.ts';
import { benchComparison } from './comparison-points.ts';
import type { StoredMeasurement, Written } from './fields.ts';
import { benchBucket, benchPhase } from './phase-points.ts';
import { benchRound, serverCpu, serverRss, type RoundRow } from './round-points.ts';
import {
  benchClaim,
  benchCurve,
  benchPage,
  benchRun,
  benchSentence,
  benchWhy,
  type ClaimRow,
  type RunRow,
} from './schema.ts';
import { intervalOf } from './shared-fields.ts';

type Tags<M extends StoredMeasurement> = Readonly<Record<M['tags'][number], string | undefined>>;

function pointOf<M extends StoredMeasurement, Row>(
  measurement: M & Written<Row>,
  tags: Tags<NoInfer<M>>,
  row: NoInfer<Row>,
  timestampNs: bigint,
): string {
  const catalogue = Object.entries((measurement as Written<Row>).fields);
  const fields = catalogue.map(([name, { of }]) => [name, of(row)] as const);
  return line(measurement.measurement, tags, Object.fromEntries(fields), timestampNs);
}

/**
 * Returns a server_rss point for each sample, and a server_cpu point for each but the first.
 * @param samples in order of time
 */
export function serverSamplePoints(
  tags: Tags<typeof serverCpu>,
  samples: readonly ServerSample[],
): string[] {
  return samples.flatMap((sample, index) => {
    const at = toNanoseconds(sample.atMs);
    const memory = pointOf(serverRss, tags, sample, at);
    const before = samples[index - 1] ?? sample;
    const seconds = (sample.atMs - before.atMs) / 1000;
    const cores = (sample.cpuSeconds - before.cpuSeconds) / seconds;
    return seconds > 0 ? [memory, pointOf(serverCpu, tags, { cores }, at)] : memory;
  });
}

/** Returns the bench_round point of a phase. If it is written again with a ratio, it replaces the first point. */
export function roundPoint(
  {
    tags,
    ...known
  }: Pick<RoundRow, 'ratio' | 'soFar' | 'generatorShare' | 'network'> &
    ServerFigures & {
      tags: Tags<typeof benchRound>;
    },
  phase: Phase,
): string {
  const label = `round ${tags.round}: ${tags.variant}`;
  const row = { ...phase, network: undefined, ...known, phases: [phase] as const, label };
  return pointOf(benchRound, tags, row, toNanoseconds(phase.startedAt));
}

/** Returns a function that makes points. `place` is their order, in nanoseconds after the run's start. */
function pointsAt({ run, scenario, startedAt }: Pick<Result, 'run' | 'scenario' | 'startedAt'>) {
  const start = toNanoseconds(startedAt);
  return <M extends StoredMeasurement, Row>(
    measurement: M & Written<Row>,
    place: number,
    tags: Omit<Tags<NoInfer<M>>, 'run' | 'scenario'>,
    row: NoInfer<Row>,
  ) =>
    pointOf(
      measurement as StoredMeasurement & Written<Row>,
      { run, scenario, ...tags },
      row,
      start + BigInt(place),
    );
}

/**
 * Returns the points of the table. Their times begin at the run's start and are a nanosecond apart, so that they sort in the table's
 * order.
 */
export function tablePoints(
  result: Result,
  curves: readonly Curve[],
  foundRates: FoundRates | undefined,
): string[] {
  return [
    ...comparisonPoints(result, foundRates),
    ...phasePoints(result),
    ...curvePoints(result, curves),
    ...pagePoints(result),
  ];
}

/** A point for each row of the table. */
function comparisonPoints(result: Result, foundRates: FoundRates | undefined): string[] {
  const { variants } = result;
  const at = pointsAt(result);
  const withFigures = variants.filter(({ rps }) => rps !== null);
  const first = withFigures.find(({ published }) => published?.rps !== undefined) ?? withFigures[0];
  return variants.map((variant, position) => {
    const comparison = comparisonOf(result, variant.name);
    const { metric = 'rps' } = comparison ?? {};
    const tags = {
      article: result.article?.id,
      variant: variant.name,
      server: variant.server?.name,
      version: variant.server?.version,
      baseline: comparison?.baseline,
      metric: metric === 'rps' ? undefined : metricWords[metric].name,
      within: variant.server === null ? undefined : foundRates?.limit.text,
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
      first,
      foundRate: foundRates?.rates.find((rate) => rate.variant === variant.name),
      network: variant.network,
      phases: phasesIn(variant.rounds),
    });
  });
}

/** A point for each load phase, then one for each of their buckets. */
function phasePoints(result: Result): string[] {
  const at = pointsAt(result);
  const phases: string[] = [];
  const buckets: string[] = [];
  for (const [position, variant] of result.variants.entries())
    for (const { phase, ...pair } of phasePairs(variant)) {
      const { protocol } = variant.load;
      const server = variant.server?.name;
      const tags = { variant: variant.name, phase: String(phase), server };
      phases.push(at(benchPhase, phases.length, { ...tags, protocol }, { position, ...pair }));
      for (const [place, row] of bucketRows(pair).entries()) {
        const bucketTags = { ...tags, bucket: bucketLabel(row.bucket) };
        buckets.push(at(benchBucket, place, bucketTags, { position: place, ...row }));
      }
    }
  return [...phases, ...buckets];
}

/** Later rounds add to some of the curves: a point's time depends only on its own. */
function curvePoints(result: Result, curves: readonly Curve[]): string[] {
  const at = pointsAt(result);
  const names = result.variants.map(({ name, series }) => series ?? name);
  const written: string[] = [];
  for (const { name, points } of curves)
    for (const [position, point] of points.entries()) {
      const place = position * names.length + names.indexOf(name);
      written.push(at(benchCurve, place, { variant: name }, { position, ...point }));
    }
  return written;
}

/** The largest pages of each variant, side by side within each page. */
function pagePoints(result: Result): string[] {
  const at = pointsAt(result);
  const { variants } = result;
  const written: string[] = [];
  for (const [side, { name: variant }] of variants.entries()) {
    const effects = comparisonOf(result, variant)?.pages ?? [];
    const largest = pagesOf(result, variant).slice(0, mostPages);
    for (const [position, sum] of largest.entries()) {
      const { page } = sum;
      const effect = effects.find((pageEffect) => pageEffect.page === page);
      const place = position * variants.length + side;
      written.push(at(benchPage, place, { variant, page }, { ...sum, position, effect }));
    }
  }
  return written;
}

/** The buckets of a load phase, or else those of the article, with the shares of both. */
function bucketRows({ published, measured }: Pick<PhasePair, 'published' | 'measured'>) {
  const inArticle = publishedBuckets(published);
  const measuredBuckets = measured?.buckets ?? [];
  const shareIn = (buckets: readonly BucketShare[], bucket: BucketShare) =>
    buckets.find((other) => sameBucket(other, bucket));
  return (measuredBuckets.length > 0 ? measuredBuckets : inArticle).map((bucket) => {
    return {
      bucket,
      published: shareIn(inArticle, bucket),
      measured: shareIn(measuredBuckets, bucket),
    };
  });
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
      const call = kind === 'call' ? calls.find((counted) => counted.name === name) : undefined;
      const values = { position, us, sdUs, perRequest: call?.perRequest };
      return at(benchWhy, side * mostParts + position, { variant, part: name }, values);
    }),
  );
}

/**
 * Returns the points of a run's sentences. They are written once, at its end, because each round changes them.
 * @param from place of the first
 */
export function sentencePoints(
  result: Result,
  sentences: readonly { kind: string; text: string }[],
  from = 0,
): string[] {
  const at = pointsAt(result);
  const warnings = result.warnings.map((text) => ({ kind: 'warning', text }));
  return [...sentences, ...warnings].map(({ kind, text }, index) =>
    at(benchSentence, from + index, { kind }, { text }),
  );
}

/** The claims of the result's article as the run decided them. */
export function claimPoints(
  result: Result,
  claims: readonly (ClaimRow & { number: number })[],
): string[] {
  const at = pointsAt(result);
  return claims.map(({ number, ...row }) => {
    // Databases sort it as a text.
    const claim = String(number).padStart(2, '0');
    return at(benchClaim, number, { article: result.article?.id, claim }, row);
  });
}

type RunState = Omit<RunRow, 'ended'> &
  Pick<Result, 'run' | 'scenario' | 'article' | 'endedAt' | 'comparisons' | 'search'>;

/** The bench_run point, at the run's start, so that each replaces the last. */
export function runPoint(state: RunState, hasEnded: boolean): string {
  const { comparisons, search, endedAt } = state;
  // The noise floor is of requests/s.
  const isOfRps = search === undefined && comparisons.every(({ metric }) => metric === 'rps');
  const noiseFloor = isOfRps ? state.noiseFloor : null;
  const ended = hasEnded ? Date.parse(endedAt) : null;
  return pointsAt(state)(
    benchRun,
    0,
    { article: state.article?.id },
    { ...state, noiseFloor, ended },
  );
}
