// Writes bakeoff's own points by the catalogue in schema.ts.
import { publishedBuckets, sameBucket } from '../analysis/buckets.ts';
import { comparisonOf, hasRatio } from '../analysis/comparisons.ts';
import { curvesOf } from '../analysis/curve.ts';
import { metricNames } from '../analysis/metric.ts';
import { delayText } from '../analysis/network.ts';
import { headerSavingsPercent, phasePairs, responsesOf, serverCpuSecondsPerResponse, successRatioOf, wholeRounds } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { streamsOf, streamSweep } from '../analysis/stream-sweep.ts';
import { comparable, markedVerdict } from '../analysis/verdict.ts';
import { limitText } from '../analysis/within.ts';
import { bucketLabel, times } from '../format.ts';
import type { NetworkResult } from '../result/network.ts';
import type { Comparison, Distribution, ErrorCause, LoadResult, Phase, PhaseResult, Result, VariantResult } from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { line, toNanoseconds } from './line-protocol.ts';
import {
  benchBucket, benchComparison, benchCurve, benchPhase, benchRound, benchRun, benchSentence, benchStreams, errorCauseFields, networkFields, serverCpu, serverRss,
  type DistributionFields, type Measurement,
} from './schema.ts';

type Tags<M extends Measurement> = { [T in M['tags'][number]]: string | undefined };
type FieldValues<Catalogued extends Measurement['fields']> = { [F in keyof Catalogued]: (Catalogued[F]['unit'] extends 'text' ? string : number) | null | undefined };
type Fields<M extends Measurement> = FieldValues<M['fields']>;

/** Type-checks a point against its measurement: every tag and every field of the catalogue, no other. */
function pointOf<M extends Measurement>(measurement: M, tags: Tags<NoInfer<M>>, fields: Fields<NoInfer<M>>, timestampNs: bigint): string {
  return line(measurement.measurement, tags, fields, timestampNs);
}

/** A server's usage at an instant; as lib/servers' usage() gives it. */
export interface ServerSample { atMs: number; cpuSeconds: number; rssBytes: number }

/**
 * server_rss for every sample and server_cpu for every one but the first.
 * @param samples of one server, in order of time; `atMs` since 1970, `cpuSeconds` since the server's start
 */
export function serverSamplePoints(tags: Tags<typeof serverCpu>, samples: readonly ServerSample[]): string[] {
  const lines: string[] = [];
  let before: ServerSample | undefined;
  for (const sample of samples) {
    const at = toNanoseconds(sample.atMs);
    lines.push(pointOf(serverRss, tags, { value: sample.rssBytes }, at));
    if (before !== undefined && sample.atMs > before.atMs) {
      const cores = ((sample.cpuSeconds - before.cpuSeconds) * 1000) / (sample.atMs - before.atMs);
      lines.push(pointOf(serverCpu, tags, { value: cores }, at));
    }
    before = sample;
  }
  return lines;
}

/** What a bench_round point needs beside its phase. `ratio` is known once the baseline's phase of the same round is there. */
interface RoundContext {
  tags: Tags<typeof benchRound>;
  ratio?: number | undefined;
  /** Over the rounds up to this one. */
  soFar?: Pick<Comparison, 'ratio' | 'ci95' | 'roundRatios'> | undefined;
  /** Of the cores that the generator can use, as generatorShareOf. */
  generatorShare?: number | undefined;
  /** What the run's own network did in this round; none on loopback. */
  network?: NetworkResult | null | undefined;
}

/** The bench_round point of one phase. Written twice (later with the ratio) it stays one point. */
export function roundPoint({ tags, ratio, soFar, generatorShare, network }: RoundContext, phase: Phase): string {
  const { requests, noise } = phase;
  const interval = soFar && intervalOf(soFar, soFar.ci95);
  const responses = responsesOf(phase);
  return pointOf(benchRound, tags, {
    measured_rps: phase.rps,
    ratio,
    ratio_so_far: soFar && hasRatio(soFar) ? soFar.ratio : undefined,
    ci_low: interval?.[0],
    ci_high: interval?.[1],
    label: `round ${tags.round}: ${tags.variant}`,
    requests,
    seconds: phase.seconds,
    errors: phase.errors.total,
    ...errorCauseValues([phase]),
    success_ratio: successRatioOf([phase]),
    server_cpu_micros_per_request: serverCpuSecondsPerResponse([phase]) * 1e6,
    generator_cpu_micros_per_request: (phase.generatorCpuSeconds / responses) * 1e6,
    p50_ms: phase.latencyMs.p50,
    p99_ms: phase.latencyMs.p99,
    max_ms: phase.latencyMs.max,
    connect_mean_ms: phase.connectMs.mean,
    connect_max_ms: phase.connectMs.max,
    first_byte_mean_ms: phase.firstByteMs.mean,
    first_byte_max_ms: phase.firstByteMs.max,
    send_delay_p99_ms: phase.sendDelayMs.p99,
    unsent: phase.unsent,
    header_bytes: phase.bytes.headers,
    header_savings: asShare(headerSavingsPercent(phase.bytes)),
    body_bytes: phase.bytes.body,
    total_bytes: phase.bytes.received,
    server_rss_bytes: phase.serverRssBytes,
    generator_share: generatorShare,
    server_steal_share: noise?.serverStealShare,
    generator_steal_share: noise?.generatorStealShare,
    server_others_share: noise?.serverOthersShare,
    generator_others_share: noise?.generatorOthersShare,
    load_average: noise?.loadAverage,
    server_mhz_begin: noise?.serverMhz?.[0],
    server_mhz_end: noise?.serverMhz?.[1],
    ...networkValues(network),
  }, toNanoseconds(phase.startedAt));
}

/**
 * The table's points: a bench_comparison point per variant, a bench_phase point per variant and phase, a bench_bucket point
 * per bucket, a bench_streams point per number of streams, a bench_curve point per rate. At the run's start, and a nanosecond later for each, so that they are
 * in the table's order by time.
 */
export function tablePoints(result: Result): string[] {
  const start = toNanoseconds(result.startedAt);
  const { run, scenario, search } = result;
  const comparisons = result.variants.map((variant, position) => {
    const comparison = comparisonOf(result, variant.name);
    const tags = {
      run, scenario, variant: variant.name, server: variant.server?.name, version: variant.server?.version, baseline: comparison?.baseline,
      metric: comparison === undefined || comparison.metric === 'rps' ? undefined : metricNames[comparison.metric],
      within: search === undefined || variant.server === null ? undefined : limitText(search.within),
    };
    return pointOf(benchComparison, tags, comparisonFields(result, variant, position, comparison), start + BigInt(position));
  });
  const phases = result.variants.flatMap((variant, position) => phasePairs(variant).map((pair) => ({ variant, position, ...pair })));
  const tagsOf = ({ variant, phase }: typeof phases[number]) => ({ run, scenario, variant: variant.name, phase: String(phase), server: variant.server?.name });
  return [
    ...comparisons,
    ...phases.map((row, index) => pointOf(
      benchPhase, { ...tagsOf(row), protocol: row.variant.load.protocol }, phaseFields(row.position, row.published, row.measured), start + BigInt(index),
    )),
    ...phases.flatMap((row) => bucketsOf(row.published, row.measured).map(({ label, fields }, position) => (
      pointOf(benchBucket, { ...tagsOf(row), bucket: label }, { position, ...fields }, start + BigInt(position))
    ))),
    ...streamPoints(result, start),
    ...curvePoints(result, start),
  ];
}

function streamPoints(result: Result, start: bigint): string[] {
  const sweep = streamSweep(result);
  return (sweep?.curve ?? []).map(({ variant, rps }, index) => pointOf(
    benchStreams,
    { run: result.run, scenario: result.scenario, variant: variant.name, server: variant.server?.name, streams: String(streamsOf(variant)) },
    { measured_rps: rps, http1_rps: sweep?.line.rps },
    start + BigInt(index),
  ));
}

/** A later round adds to some of the curves: a point's time depends on no other curve than its own. */
function curvePoints(result: Result, start: bigint): string[] {
  const { run, scenario, variants } = result;
  const names = variants.map(({ name, series }) => series ?? name);
  return curvesOf(result).flatMap(({ name, points }) => points.map(({ rate, p50, p99, kept }, position) => pointOf(
    benchCurve, { run, scenario, variant: name }, { position, rate, p50_ms: p50, p99_ms: p99, kept: kept === undefined ? null : Number(kept) },
    start + BigInt(position * names.length + names.indexOf(name)),
  )));
}

/** One round has no interval: what stands there has no width, and says nothing of how sure the ratio is. */
function intervalOf({ roundRatios }: Pick<Comparison, 'roundRatios'>, ci95: [number, number] | undefined): [number, number] | undefined {
  return roundRatios.length > 1 ? ci95 : undefined;
}

function comparisonFields(
  { state, looks, search }: Result, variant: VariantResult, position: number, comparison: Comparison | undefined,
): Fields<typeof benchComparison> {
  const { published } = variant;
  const phases = variant.rounds.flatMap((round) => round.phases);
  const requests = total(phases, (phase) => phase.requests);
  const responses = total(phases, responsesOf);
  const measured = comparable(variant, comparison) ? comparison : undefined;
  // What an earlier round had is not left standing beside a ratio that is none any more.
  const interval = measured && (hasRatio(measured) ? intervalOf(measured, measured.ci95) : measured.ci95);
  const cpuInterval = variant.rounds.length > 1 ? comparison?.cpu?.ci95 : undefined;
  const found = search?.found.find((one) => one.variant === variant.name);
  return {
    position,
    published_rps: published?.rps,
    published_ratio: comparison?.publishedRatio,
    measured_rps: variant.rps?.median,
    found_low: found?.ci95?.[0],
    found_high: found?.ci95?.[1],
    found_at_least: found && Number(found.atLeast),
    ratio: measured?.ratio,
    ci_low: interval?.[0],
    ci_high: interval?.[1],
    effect: measured && (hasRatio(measured) ? times(measured.ratio, interval) : '–'),
    verdict: comparison && markedVerdict(comparison, { state }),
    why: comparison?.why ?? variant.publishedOnly,
    // Written anew after each round: what a later round takes back must not be left out, or the database would keep it.
    rounds_needed: measured && (measured.roundsNeeded ?? 0),
    looks: looks.join(', '),
    outliers: measured?.outliers.join(', '),
    cpu_ratio: comparison?.cpu?.ratio,
    cpu_ci_low: cpuInterval?.[0],
    cpu_ci_high: cpuInterval?.[1],
    disagreement: measured?.disagreement,
    note: variant.note,
    rounds: variant.rounds.length,
    requests,
    published_errors_per_million: published?.errorsPerMillion,
    errors_per_million: variant.errorsPerMillion,
    ...errorCauseValues(variant.phases),
    success_ratio: variant.successRatio,
    server_cpu_micros_per_request: variant.serverCpuMicrosPerRequest?.median,
    p50_ms: variant.latencyMs?.p50,
    p99_ms: variant.latencyMs?.p99,
    max_ms: variant.latencyMs?.max,
    header_bytes_per_request: total(phases, (phase) => phase.bytes.headers) / responses,
    total_bytes_per_request: total(phases, (phase) => phase.bytes.received) / responses,
    server_share: variant.serverShare,
    generator_share: variant.generatorShare,
    published_packets_per_request: published?.packetsPerRequest,
    ...networkValues(variant.network),
  };
}

/** The counts of all phases; without a phase nothing was counted. */
function errorCauseValues(phases: readonly Pick<LoadResult, 'errorCauses'>[]): FieldValues<typeof errorCauseFields> {
  const count = (cause: ErrorCause): number | null => (phases.length === 0 ? null : total(phases, ({ errorCauses }) => errorCauses[cause]));
  return {
    errors_address_not_available: count('addressNotAvailable'),
    errors_refused: count('refused'),
    errors_reset: count('reset'),
    errors_timed_out: count('timedOut'),
    errors_short: count('short'),
    errors_other: count('other'),
  };
}

function networkValues(network: NetworkResult | null | undefined): FieldValues<typeof networkFields> {
  return {
    packets_to_server_per_request: network?.packetsPerRequest.toServer,
    packets_to_client_per_request: network?.packetsPerRequest.toClient,
    dropped_to_server_share: network?.droppedShare.toServer,
    dropped_to_client_share: network?.droppedShare.toClient,
    lateness_p50_ms: network?.latenessMs.p50,
    lateness_p99_ms: network?.latenessMs.p99,
    retransmits_per_request: network?.retransmitsPerRequest,
    listen_overflows: network?.listenOverflows,
    server_idle_share: network?.serverIdleShare,
    delay: network && (delayText(network) || null),
  };
}

function phaseFields(position: number, published: Published | undefined, measured: PhaseResult | undefined): Fields<typeof benchPhase> {
  return {
    position,
    published_seconds: published?.seconds,
    seconds: measured?.seconds,
    published_rps: published?.rps,
    measured_rps: measured?.rps.median,
    published_success_ratio: published?.successRatio,
    success_ratio: measured?.successRatio,
    requests: measured?.requests,
    responses_4xx: measured?.responses['4xx'],
    errors: measured?.errors.total,
    unsent: measured?.unsent,
    published_bytes_per_second: published?.transferBytesPerSecond,
    bytes_per_second: measured?.receivedBytesPerSecond,
    published_total_bytes: published?.receivedBytes,
    total_bytes: measured?.bytes.received,
    published_header_bytes: published?.headerBytes,
    header_bytes: measured?.bytes.headers,
    published_header_savings: asShare(published?.headerSavingsPercent),
    header_savings: asShare(measured?.headerSavingsPercent),
    published_body_bytes: published?.bodyBytes,
    body_bytes: measured?.bytes.body,
    ...distributionValues('request_ms', published?.latencyMs, measured?.latencyMs),
    ...distributionValues('connect_ms', published?.connectMs, measured?.connectMs),
    ...distributionValues('first_byte_ms', published?.firstByteMs, measured?.firstByteMs),
    ...distributionValues('client_rps', published?.perConnectionRps, measured?.perConnectionRps),
    ...distributionValues('thread_rps', published?.perThreadRps, measured?.perThreadRps),
    p50_ms: measured?.latencyMs.p50,
    p99_ms: measured?.latencyMs.p99,
    send_delay_p99_ms: measured?.sendDelayMs.p99,
    published_tls: tlsText(published?.tls),
    tls: tlsText(measured?.tls),
  };
}

function distributionValues<Prefix extends string>(
  prefix: Prefix, published: PublishedDistribution | undefined, measured: Distribution | undefined,
): FieldValues<DistributionFields<Prefix>> {
  const parts = (['min', 'max', 'mean', 'sd'] as const).flatMap((part) => [[`published_${prefix}_${part}`, published?.[part]], [`${prefix}_${part}`, measured?.[part]]]);
  return {
    ...Object.fromEntries(parts),
    [`published_${prefix}_within_sd`]: asShare(published?.withinSdPercent),
    [`${prefix}_within_sd`]: measured?.withinSd,
  } as FieldValues<DistributionFields<Prefix>>;
}

interface BucketPoint { label: string; fields: Omit<Fields<typeof benchBucket>, 'position'> }

/** The buckets as measured, or as published where nothing was measured. */
function bucketsOf(published: Published | undefined, measured: PhaseResult | undefined): BucketPoint[] {
  const [inArticle, here] = [publishedBuckets(published), measured?.buckets ?? []];
  return (here.length > 0 ? here : inArticle).map((bucket) => {
    const [article, mine] = [inArticle.find((one) => sameBucket(one, bucket)), here.find((one) => sameBucket(one, bucket))];
    return {
      label: bucketLabel(bucket),
      fields: {
        from_ms: bucket.fromMs, to_ms: bucket.toMs,
        published_count: article?.count, published_share: article?.share,
        count: mine?.count, share: mine?.share,
      },
    };
  });
}

/** Percent as a share of one. */
function asShare(percent: number | null | undefined): number | null {
  return percent === null || percent === undefined ? null : percent / 100;
}

function tlsText(tls: LoadResult['tls'] | undefined): string | null {
  return tls ? `${tls.version} ${tls.cipher} ${tls.keyExchange}` : null;
}

/** The bench_sentence points. A run that goes on has others after each round, so they are written once, at its end. */
export function sentencePoints(
  { run, scenario, startedAt, warnings }: Pick<Result, 'run' | 'scenario' | 'startedAt' | 'warnings'>, found: readonly { kind: string; text: string }[],
): string[] {
  const lines = [...found, ...warnings.map((text) => ({ kind: 'warning', text }))];
  return lines.map(({ kind, text }, index) => pointOf(benchSentence, { run, scenario, kind }, { text }, toNanoseconds(startedAt) + BigInt(index)));
}

type RunState = Pick<Result, 'run' | 'scenario' | 'title' | 'startedAt' | 'endedAt' | 'state' | 'integrity' | 'noiseFloor' | 'comparisons' | 'search'> & { variants: readonly Pick<VariantResult, 'published' | 'rounds'>[] };

/** The bench_run point of a run that goes on, or has ended. Written again it replaces the fields of the one before: its time is the run's start. */
export function runPoint({ run, scenario, title, startedAt, endedAt, state, variants, integrity, comparisons, search, ...rest }: RunState, hasEnded: boolean): string {
  const ended = hasEnded ? Date.parse(endedAt) : null;
  // It is a band around ratios of requests/s.
  const noiseFloor = search === undefined && comparisons.every(({ metric }) => metric === 'rps') ? rest.noiseFloor : null;
  return pointOf(benchRun, { run, scenario }, {
    title,
    state: hasEnded ? state : 'running',
    started: Date.parse(startedAt),
    ended,
    shown_to: ended === null ? 'now' : String(ended),
    rounds: wholeRounds(variants),
    requests: integrity?.requests,
    stored: integrity?.stored,
    backfilled: integrity?.backfilled,
    lost: integrity?.lost,
    noise_floor: noiseFloor && noiseFloor.ratio - 1,
    noise_floor_rounds: noiseFloor?.rounds,
    noise_low: noiseFloor && 1 / noiseFloor.ratio,
    noise_high: noiseFloor?.ratio,
    unpublished: variants.every(({ published }) => published === null) ? 'published' : null,
  }, toNanoseconds(startedAt));
}
