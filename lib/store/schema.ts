// The catalogue of bakeoff's points in InfluxDB, beside k6's samples. points.ts writes by it, the dashboards read by it.
// Numbers are floats; a figure that is missing is left out.
import metrics from '../../xk6-loadgen/metrics.json' with { type: 'json' };
import { hasRatio, marksOf, type CurvePoint } from '../analysis/comparisons.ts';
import { queueGrows, rateOf } from '../analysis/limit.ts';
import { besideOf, inColumn } from '../analysis/metrics.ts';
import {
  clientErrorsOf,
  delayText,
  headerBytesOf,
  headerSavingsPercent,
  responsesOf,
  serverCpuSecondsPerResponse,
  successRatioOf,
  wholeRounds,
  type PerRequest,
  type PhasePair,
} from '../analysis/phases.ts';
import type { PageSum } from '../analysis/pages.ts';
import { total } from '../analysis/statistics.ts';
import { effect, whole } from '../format.ts';
import type { ErrorCause, LoadResult, StatusClass } from '../result/load-result.ts';
import type { NetworkResult } from '../result/network-use.ts';
import type {
  BucketShare,
  Comparison,
  FoundRate,
  Phase,
  Result,
  VariantResult,
} from '../result/result.ts';
import {
  factsOf,
  serverColumns,
  serverMetricNames,
  type ServerFigures,
  type ServerMetric,
} from '../result/server-metrics.ts';
import type { Published } from '../scenario/model.ts';

export const database = 'bakeoff';

export interface Measurement {
  measurement: string;
  tags: readonly string[];
  fields: Readonly<Record<string, { unit: string }>>;
}

/** A measurement that bakeoff writes: `of` takes a field's value from the row of a point. */
export interface Written<Row> extends Measurement {
  fields: Readonly<Record<string, Field<Row>>>;
}

type Of<Row, Value> = (row: Row) => Value | null | undefined;

interface Field<Row> {
  unit: Unit;
  of: Of<Row, number | string>;
}

type Unit =
  | 'requests'
  | 'responses'
  | 'errors'
  | 'rounds'
  | 'connections'
  | 'packets'
  | 'requests/s'
  | 'errors/million'
  | 'bytes'
  | 'bytes/s'
  | 's'
  | 'ms'
  | 'µs'
  | 'ms since 1970'
  | 'MHz'
  | 'cores'
  | 'ratio'
  | 'number'
  | 'text';

type ByUnit<Row> = {
  [U in Unit]?: Record<string, Of<Row, U extends 'text' ? string : number>>;
};
type NamesIn<F> = { [U in keyof F]: keyof F[U] }[keyof F] & string;

/** Returns a function that makes fields by unit and name, each from the row of a point. */
function fieldsOf<Row>() {
  return <F extends ByUnit<Row>>(byUnit: F) =>
    Object.fromEntries(
      Object.entries(byUnit).flatMap(([unit, fields]) =>
        Object.entries(fields).map(([name, of]) => [name, { unit, of }]),
      ),
    ) as Record<NamesIn<F>, Field<Row>>;
}

/** Returns a function that makes a measurement. `shared` are fields of several measurements. */
function written<Row>() {
  return <
    const Tags extends readonly string[],
    F extends ByUnit<Row>,
    Shared extends Record<string, Field<Row>> = Record<never, never>,
  >({
    fields,
    shared,
    ...named
  }: {
    measurement: string;
    tags: Tags;
    fields: F;
    shared?: Shared;
  }) => ({
    ...named,
    fields: { ...fieldsOf<Row>()(fields), ...shared } as Record<
      NamesIn<F> | keyof Shared,
      Field<Row>
    >,
  });
}

/** Tags of every loadgen_* sample; `instance_id` only if several generators share a load. */
const sampleTags = [
  'run',
  'scenario',
  'variant',
  'round',
  'phase',
  'server',
  'protocol',
  'instance',
  'instance_id',
] as const;

/** k6's samples: a measurement per metric of xk6-loadgen/metrics.json, with the field `value`. */
export const loadgenMeasurements: readonly Measurement[] = metrics.map((metric) => ({
  measurement: metric.name,
  tags: [...sampleTags, ...metric.tags],
  fields: { value: { unit: metric.unit } },
}));

/** CPU seconds per second of the server's process tree since the sample before. */
export const serverCpu = written<{ cores: number }>()({
  measurement: 'server_cpu',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: { cores: { value: ({ cores }) => cores } },
});

/** Resident memory of the server's process tree. */
export const serverRss = written<{ rssBytes: number }>()({
  measurement: 'server_rss',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: { bytes: { value: ({ rssBytes }) => rssBytes } },
});

/** Figures of a round, or medians over the rounds. Absent on loopback. */
const networkFields = fieldsOf<{ network?: NetworkResult | null | undefined }>()({
  packets: {
    packets_to_server_per_request: ({ network }) => network?.packetsPerRequest.toServer,
    packets_to_client_per_request: ({ network }) => network?.packetsPerRequest.toClient,
    retransmits_per_request: ({ network }) => network?.retransmitsPerRequest,
  },
  ratio: {
    // Share of the packets at the link that the queue's limit dropped.
    dropped_to_server_share: ({ network }) => network?.droppedShare.toServer,
    dropped_to_client_share: ({ network }) => network?.droppedShare.toClient,
    server_idle_share: ({ network }) => network?.serverIdleShare,
  },
  ms: {
    // How late packets left the link, in the worse direction.
    lateness_p50_ms: ({ network }) => network?.latenessMs.p50,
    lateness_p99_ms: ({ network }) => network?.latenessMs.p99,
  },
  connections: { listen_overflows: ({ network }) => network?.listenOverflows },
  text: { delay: ({ network }) => network && (delayText(network) || null) },
});

interface Loads {
  phases: readonly Pick<LoadResult, 'errorCauses'>[];
}

/** Failed attempts of all phases; without a phase nothing was counted. */
const errorsBy =
  (cause: ErrorCause) =>
  ({ phases }: Loads): number | null =>
    phases.length === 0 ? null : total(phases, ({ errorCauses }) => errorCauses[cause]);

const errorCauseFields = fieldsOf<Loads>()({
  errors: {
    errors_address_not_available: errorsBy('addressNotAvailable'),
    errors_refused: errorsBy('refused'),
    errors_reset: errorsBy('reset'),
    errors_timed_out: errorsBy('timedOut'),
    errors_short: errorsBy('short'),
    errors_other: errorsBy('other'),
  },
});

/** A phase of a round, with what is known of the round's server; the comparison is known later. */
export interface RoundRow extends Omit<Phase, 'network'>, ServerFigures {
  /** Round and variant, for a mark on a time axis. */
  label: string;
  /** Ratio of the comparison's metric to the baseline's, in the same round and phase. */
  ratio?: number | undefined;
  /** Over the rounds up to this one. */
  soFar?: Pick<Comparison, 'ratio' | 'ci95' | 'roundRatios'> | undefined;
  /** See sharesOf. */
  generatorShare?: number | undefined;
  network?: NetworkResult | null | undefined;
  /** The phase alone. */
  phases: readonly [Phase];
}

const perRequest =
  (name: PerRequest) =>
  ({ perRequest: counts }: RoundRow) =>
    counts?.[name];

const serverFigureFields = serverColumns((metric): Field<ServerFigures> => {
  const { field, columnUnit } = factsOf(metric);
  return { unit: columnUnit, of: ({ [field]: figure }) => figure };
});

/** A point per variant, round and phase, at the phase's start. */
export const benchRound = written<RoundRow>()({
  measurement: 'bench_round',
  tags: ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol'],
  fields: {
    text: { label: ({ label }) => label },
    'requests/s': {
      measured_rps: ({ rps }) => rps,
      // Growth per second of requests that are due and have no response.
      queue_growth: ({ queueGrowth }) => queueGrowth?.perSecond,
    },
    µs: {
      user_cpu_us: perRequest('userCpuUs'),
      system_cpu_us: perRequest('systemCpuUs'),
      server_cpu_micros_per_request: ({ phases }) => serverCpuSecondsPerResponse(phases) * 1e6,
      generator_cpu_micros_per_request: (row) => (row.generatorCpuSeconds / responsesOf(row)) * 1e6,
    },
    number: {
      // All of these per request.
      voluntary_switches: perRequest('voluntarySwitches'),
      involuntary_switches: perRequest('involuntarySwitches'),
      page_faults: perRequest('pageFaults'),
      call_read_bytes: perRequest('readBytes'),
      call_written_bytes: perRequest('writtenBytes'),
      connections_per_request: perRequest('connections'),
      handshakes_per_request: perRequest('handshakes'),
      segments_out: perRequest('segmentsOut'),
      segments_in: perRequest('segmentsIn'),
      resent_segments: perRequest('resentSegments'),
      wire_bytes_out: perRequest('wireBytesOut'),
      wire_bytes_in: perRequest('wireBytesIn'),
      load_average: ({ noise }) => noise?.loadAverage,
    },
    ratio: {
      ratio: ({ ratio }) => ratio,
      ratio_so_far: ({ soFar }) => (soFar && hasRatio(soFar) ? soFar.ratio : undefined),
      ci_low: ({ soFar }) => soFar && intervalOf(soFar)?.[0],
      ci_high: ({ soFar }) => soFar && intervalOf(soFar)?.[1],
      success_ratio: ({ phases }) => successRatioOf(phases),
      header_savings: ({ bytes }) => asShare(headerSavingsPercent(bytes)),
      generator_share: ({ generatorShare }) => generatorShare,
      server_steal_share: ({ noise }) => noise?.serverStealShare,
      generator_steal_share: ({ noise }) => noise?.generatorStealShare,
      server_others_share: ({ noise }) => noise?.serverOthersShare,
      generator_others_share: ({ noise }) => noise?.generatorOthersShare,
    },
    requests: {
      requests: ({ requests }) => requests,
      unsent: ({ unsent }) => unsent,
    },
    s: { seconds: ({ seconds }) => seconds },
    errors: { errors: ({ errors }) => errors.total },
    ms: {
      p50_ms: ({ latencyMs }) => latencyMs.p50,
      p99_ms: ({ latencyMs }) => latencyMs.p99,
      max_ms: ({ latencyMs }) => latencyMs.max,
      connect_mean_ms: ({ connectMs }) => connectMs.mean,
      connect_max_ms: ({ connectMs }) => connectMs.max,
      first_byte_mean_ms: ({ firstByteMs }) => firstByteMs.mean,
      first_byte_max_ms: ({ firstByteMs }) => firstByteMs.max,
      send_delay_p99_ms: ({ sendDelayMs }) => sendDelayMs.p99,
    },
    bytes: {
      header_bytes: ({ bytes }) => bytes.headers,
      body_bytes: ({ bytes }) => bytes.body,
      total_bytes: ({ bytes }) => bytes.received,
      server_rss_bytes: ({ serverRssBytes }) => serverRssBytes,
    },
    MHz: {
      server_mhz_begin: ({ noise }) => noise?.serverMhz?.[0],
      server_mhz_end: ({ noise }) => noise?.serverMhz?.[1],
    },
  },
  shared: { ...errorCauseFields, ...networkFields, ...serverFigureFields },
});

/** The interval of a ratio; undefined after the first round. */
export function intervalOf({
  roundRatios,
  ci95,
}: Pick<Comparison, 'roundRatios' | 'ci95'>): [number, number] | undefined {
  return roundRatios.length > 1 ? ci95 : undefined;
}

interface ComparisonRow {
  /** From 0. */
  position: number;
  result: Pick<Result, 'state' | 'looks'>;
  variant: VariantResult;
  comparison: Comparison | undefined;
  /** The comparison if both sides were measured here. */
  measured: Comparison | undefined;
  /** Intervals of the ratio and of CPU time's ratio; undefined after the first round. */
  interval: [number, number] | undefined;
  cpuInterval: [number, number] | undefined;
  /** The reference of the bars: the first row that is published and measured, otherwise the first measured row. */
  first: VariantResult | undefined;
  found: FoundRate | undefined;
  network: NetworkResult | null;
  /** Phases of all rounds. */
  phases: readonly Phase[];
}

const latencyOf =
  (part: 'p50' | 'p99' | 'max') =>
  ({ variant }: ComparisonRow) =>
    queueGrows(variant) ? null : variant.latencyMs?.[part];

const typicalFields = serverColumns((metric): Field<ComparisonRow> => ({
  unit: factsOf(metric).columnUnit,
  of: ({ variant }) => inColumn(metric, variant.rounds),
}));

/** The change in a metric of servers, with its interval. */
const effectFields = Object.fromEntries(
  serverMetricNames.map((metric) => [`${metric}_effect`, { unit: 'text', of: effectBy(metric) }]),
) as Record<`${ServerMetric}_effect`, Field<ComparisonRow>>;

function effectBy(metric: ServerMetric) {
  return ({ measured }: ComparisonRow): string | undefined => {
    if (measured === undefined) return undefined;
    const beside = besideOf(measured, metric);
    if (beside === null) return '–';
    return effect(beside.ratio, intervalOf({ ...measured, ...beside }));
  };
}

/** A row of the table. Only measured variants have measured_rps; a baseline has no ratio. */
export const benchComparison = written<ComparisonRow>()({
  measurement: 'bench_comparison',
  // `metric` is set if the ratio is not of requests/s; `within` (the limit in words) if requests/s were searched for.
  tags: [
    'run',
    'scenario',
    'article',
    'variant',
    'server',
    'version',
    'baseline',
    'metric',
    'within',
  ],
  fields: {
    number: {
      position: ({ position }) => position,
      // 1 or 0.
      found_at_least: ({ found }) => found && Number(found.atLeast),
    },
    'requests/s': {
      published_rps: ({ variant }) => variant.published?.rps,
      // For a search: the resulting rate.
      measured_rps: ({ variant }) => variant.rps?.median,
      found_low: ({ found }) => found?.ci95?.[0],
      found_high: ({ found }) => found?.ci95?.[1],
      // 0 if the server holds its rate; else the variant has no latency.
      queue_growth: ({ variant }) => rateOf(variant)?.growthPerSecond,
    },
    ratio: {
      published_ratio: ({ comparison }) => comparison?.publishedRatio,
      // Ratio of requests/s to the first row of the bars.
      published_to_first: ({ variant, first }) =>
        quotient(variant.published?.rps, first?.published?.rps),
      measured_to_first: ({ variant, first }) => quotient(variant.rps?.median, first?.rps?.median),
      ratio: ({ measured }) => measured?.ratio,
      ci_low: ({ interval }) => interval?.[0],
      ci_high: ({ interval }) => interval?.[1],
      cpu_ratio: ({ comparison }) => comparison?.cpu?.ratio,
      cpu_ci_low: ({ cpuInterval }) => cpuInterval?.[0],
      cpu_ci_high: ({ cpuInterval }) => cpuInterval?.[1],
      published_success_ratio: ({ variant }) => variant.published?.successRatio,
      success_ratio: ({ variant }) => variant.successRatio,
      published_server_idle_share: ({ variant }) => variant.published?.serverIdleShare,
      server_share: ({ variant }) => variant.serverShare,
      generator_share: ({ variant }) => variant.generatorShare,
      turns_against_continuous: ({ variant }) => variant.turnsAgainstContinuous?.ratio,
    },
    text: {
      // The ratio with its interval, e.g. ×1.09 [1.08, 1.10].
      effect: ({ measured, interval }) =>
        measured && (hasRatio(measured) ? effect(measured.ratio, interval) : '–'),
      verdict: ({ comparison: one, result }) => one && one.verdict + marksOf(one, result),
      why: ({ comparison, variant }) => comparison?.why ?? variant.publishedOnly,
      looks: ({ result }) => result.looks.join(', '),
      outliers: ({ measured }) => measured?.outliers.join(', '),
      disagreement: ({ measured }) => measured?.disagreement,
      note: ({ variant }) => variant.note,
      // Whether the article counts its difference as an effect: yes or none.
      published_effect: ({ variant }) => variant.published?.effect,
      // Kinds of lines of the server's log, joined by semicolons; here with how often each was there.
      published_client_errors: ({ variant }) => variant.published?.clientErrors?.join('; '),
      client_errors: ({ variant }) => clientErrorsText(variant),
    },
    rounds: {
      rounds: ({ variant }) => variant.rounds.length,
      // 0 replaces the figure of an earlier round, which would stay if the field were left out.
      rounds_needed: ({ measured }) => measured && (measured.roundsNeeded ?? 0),
    },
    requests: { requests: ({ phases }) => total(phases, (phase) => phase.requests) },
    'errors/million': {
      published_errors_per_million: ({ variant }) => variant.published?.errorsPerMillion,
      errors_per_million: ({ variant }) => variant.errorsPerMillion,
    },
    µs: {
      server_cpu_micros_per_request: ({ variant }) => variant.serverCpuMicrosPerRequest?.median,
    },
    ms: {
      p50_ms: latencyOf('p50'),
      p99_ms: latencyOf('p99'),
      max_ms: latencyOf('max'),
    },
    bytes: {
      published_header_bytes_per_request: ({ variant }) => headerBytesOf.published(variant),
      header_bytes_per_request: ({ phases }) =>
        total(phases, ({ bytes }) => bytes.headers) / total(phases, responsesOf),
      total_bytes_per_request: ({ phases }) =>
        total(phases, ({ bytes }) => bytes.received) / total(phases, responsesOf),
    },
    packets: {
      published_packets_per_request: ({ variant }) => variant.published?.packetsPerRequest,
    },
  },
  shared: { ...errorCauseFields, ...networkFields, ...typicalFields, ...effectFields },
});

/** Undefined if nothing was logged: a text without characters would be a figure. */
function clientErrorsText(variant: VariantResult): string | undefined {
  const kinds = Object.entries(clientErrorsOf(variant));
  if (kinds.length === 0) return undefined;
  return kinds.map(([kind, times]) => `${kind}: ${whole(times)}`).join('; ');
}

function quotient(of: number | undefined, by: number | undefined): number {
  return (of ?? NaN) / (by ?? NaN);
}

interface PhaseRow extends Omit<PhasePair, 'phase'> {
  position: number;
}

/** The parts of a distribution in h2load's table. */
export type DistributionPart = 'min' | 'max' | 'mean' | 'sd' | 'within_sd';

/** The fields of a line of h2load's table, such as connect_ms_mean. */
function distributionFields<Prefix extends string>(
  prefix: Prefix,
  unit: Unit,
  figures: 'latencyMs' | 'connectMs' | 'firstByteMs' | 'perConnectionRps' | 'perThreadRps',
) {
  const fields = (['min', 'max', 'mean', 'sd'] as const).map((part) => [
    `${prefix}_${part}`,
    { unit, of: (load: Published) => load[figures]?.[part] },
  ]);
  const of = (load: Published) => asShare(load[figures]?.withinSdPercent);
  return Object.fromEntries([...fields, [`${prefix}_within_sd`, { unit: 'ratio', of }]]) as Record<
    `${Prefix}_${DistributionPart}`,
    Field<Published>
  >;
}

/** Each field twice: NAME as measured here, and published_NAME. */
function besidePublished<Name extends string>(fields: Record<Name, Field<Published>>) {
  return Object.fromEntries(
    Object.entries<Field<Published>>(fields).flatMap(([name, { unit, of }]) => [
      [name, { unit, of: ({ here }: PhaseRow) => here && of(here) }],
      [`published_${name}`, { unit, of: ({ published }: PhaseRow) => published && of(published) }],
    ]),
  ) as Record<Name | `published_${Name}`, Field<PhaseRow>>;
}

/** A class that is not printed had no responses. */
const answersOf =
  (name: StatusClass) =>
  ({ responses }: Published): number | undefined =>
    responses && (responses[name] ?? 0);

/** A point per load phase of a run: the figures of h2load and wrk, published beside measured. */
export const benchPhase = written<PhaseRow>()({
  measurement: 'bench_phase',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'protocol'],
  fields: {
    number: { position: ({ position }) => position },
    'requests/s': {
      published_rps: ({ published }) => published?.rps,
      measured_rps: ({ here }) => here?.rps,
    },
    requests: {
      requests: ({ measured }) => measured?.requests,
      unsent: ({ measured }) => measured?.unsent,
    },
    errors: { errors: ({ measured }) => measured?.errors.total },
    ms: {
      p50_ms: ({ measured }) => measured?.latencyMs.p50,
      p99_ms: ({ measured }) => measured?.latencyMs.p99,
      send_delay_p99_ms: ({ measured }) => measured?.sendDelayMs.p99,
    },
  },
  shared: besidePublished({
    ...fieldsOf<Published>()({
      s: { seconds: ({ seconds }) => seconds },
      ratio: {
        success_ratio: ({ successRatio }) => successRatio,
        header_savings: ({ headerSavingsPercent: percent }) => asShare(percent),
      },
      // h2load's line "requests".
      requests: {
        requests_total: ({ outcomes }) => outcomes?.total,
        requests_started: ({ outcomes }) => outcomes?.started,
        requests_done: ({ outcomes }) => outcomes?.done,
        requests_succeeded: ({ outcomes }) => outcomes?.succeeded,
        requests_failed: ({ outcomes }) => outcomes?.failed,
        requests_errored: ({ outcomes }) => outcomes?.errored,
        requests_timeout: ({ outcomes }) => outcomes?.timeout,
      },
      responses: {
        responses_2xx: answersOf('2xx'),
        responses_3xx: answersOf('3xx'),
        responses_4xx: answersOf('4xx'),
        responses_5xx: answersOf('5xx'),
      },
      'bytes/s': { bytes_per_second: ({ transferBytesPerSecond }) => transferBytesPerSecond },
      bytes: {
        total_bytes: ({ receivedBytes }) => receivedBytes,
        header_bytes: ({ headerBytes }) => headerBytes,
        body_bytes: ({ bodyBytes }) => bodyBytes,
      },
      text: { tls: ({ tls }) => tls && `${tls.version} ${tls.cipher} ${tls.keyExchange}` },
    }),
    ...distributionFields('request_ms', 'ms', 'latencyMs'),
    ...distributionFields('connect_ms', 'ms', 'connectMs'),
    ...distributionFields('first_byte_ms', 'ms', 'firstByteMs'),
    ...distributionFields('client_rps', 'requests/s', 'perConnectionRps'),
    ...distributionFields('thread_rps', 'requests/s', 'perThreadRps'),
  }),
});

function asShare(percent: number | null | undefined): number | null {
  return percent === null || percent === undefined ? null : percent / 100;
}

interface BucketRow {
  position: number;
  bucket: BucketShare;
  published: BucketShare | undefined;
  measured: BucketShare | undefined;
}

/** A point per load phase and latency bucket, in the buckets' order, if the load asks for buckets. */
export const benchBucket = written<BucketRow>()({
  measurement: 'bench_bucket',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'bucket'],
  fields: {
    number: { position: ({ position }) => position },
    ms: {
      from_ms: ({ bucket }) => bucket.fromMs,
      to_ms: ({ bucket }) => bucket.toMs,
    },
    responses: {
      published_count: ({ published }) => published?.count,
      count: ({ measured }) => measured?.count,
    },
    ratio: {
      published_share: ({ published }) => published?.share,
      share: ({ measured }) => measured?.share,
    },
  },
});

/** A point per rate: a step of a search, or a rate of a sweep, whose `variant` is the swept config. Lowest rates first. */
export const benchCurve = written<CurvePoint & { position: number }>()({
  measurement: 'bench_curve',
  tags: ['run', 'scenario', 'variant'],
  fields: {
    number: {
      // Among the points of the variant, by rate.
      position: ({ position }) => position,
      // 1 or 0; absent for a sweep.
      kept: ({ kept }) => (kept === undefined ? null : Number(kept)),
    },
    'requests/s': { rate: ({ rate }) => rate },
    ms: {
      p50_ms: ({ p50 }) => p50,
      p99_ms: ({ p99 }) => p99,
    },
  },
});

/** A part of the CPU time of a request, while perf looked on. */
interface WhyRow {
  position: number;
  us: number;
  sdUs: number;
  /** Calls per request if the part is a system call; otherwise undefined. */
  perRequest: number | undefined;
}

/** A point per side and part of its CPU time, the largest first, if the run looked at causes. */
export const benchWhy = written<WhyRow>()({
  measurement: 'bench_why',
  tags: ['run', 'scenario', 'variant', 'part'],
  fields: {
    number: {
      position: ({ position }) => position,
      calls_per_request: ({ perRequest }) => perRequest,
    },
    µs: {
      cpu_us: ({ us }) => us,
      cpu_sd_us: ({ sdUs }) => sdUs,
    },
  },
});

/** A point per side and page of a mix, the greatest weights first. `effect` is on the time of an answer alone. */
export const benchPage = written<PageSum & { position: number; effect: PageEffect | undefined }>()({
  measurement: 'bench_page',
  tags: ['run', 'scenario', 'variant', 'page'],
  fields: {
    number: { position: ({ position }) => position },
    ratio: { share: ({ share }) => share },
    responses: { unexpected: ({ unexpected }) => unexpected },
    bytes: { body_bytes: ({ bodyBytes, responses }) => bodyBytes / Math.max(1, responses) },
    ms: {
      p50_ms: ({ p50Ms }) => p50Ms,
      p99_ms: ({ p99Ms }) => p99Ms,
    },
    text: {
      effect: ({ effect: seen }) => seen && effect(seen.ratio, seen.ci95),
      verdict: ({ effect: seen }) => seen?.verdict,
    },
  },
});

type PageEffect = NonNullable<Comparison['pages']>[number];

/** Findings before warnings. `kind` is a verdict of bench_comparison, `found` or `warning`. */
export const benchSentence = written<{ text: string }>()({
  measurement: 'bench_sentence',
  tags: ['run', 'scenario', 'kind'],
  fields: { text: { text: ({ text }) => text } },
});

/** A claim of an article, with a run's result. */
export interface ClaimRow {
  text: string;
  /** The article's own. */
  figures: string;
  /** What these make: a ratio, and what the article says of it where that is another one; '' without figures of both sides. */
  makes: string;
  seen: string;
  state: string;
}

/** A point per claim that rests on the run's scenario, written at the run's end. `claim` is its number in the article, from 01. */
export const benchClaim = written<ClaimRow>()({
  measurement: 'bench_claim',
  tags: ['run', 'scenario', 'article', 'claim'],
  fields: {
    text: {
      text: ({ text }) => text,
      figures: ({ figures }) => figures,
      makes: ({ makes }) => makes || null,
      seen: ({ seen }) => seen,
      state: ({ state }) => state,
    },
  },
});

/** `ended` in ms since 1970; null while the run goes on, and for good if bakeoff was killed. */
export interface RunRow extends Pick<
  Result,
  'title' | 'startedAt' | 'state' | 'integrity' | 'noiseFloor'
> {
  variants: readonly Pick<VariantResult, 'published' | 'rounds'>[];
  ended: number | null;
  places?: RunPlaces;
}

/** Descriptions of the origin of a run's figures and its article's figures. */
export interface RunPlaces {
  /** Path of the run's page. */
  report: string;
  machine: string;
  articleTitle?: string;
  articleMachine?: string;
}

/** A point per run, at its start; written again when the run ends. */
export const benchRun = written<RunRow>()({
  measurement: 'bench_run',
  // `article` is the id of the article whose figures stand beside, such as 003.
  tags: ['run', 'scenario', 'article'],
  fields: {
    text: {
      title: ({ title }) => title,
      state: ({ ended, state }) => (ended === null ? 'running' : state),
      // End of the time range that shows the run.
      shown_to: ({ ended }) => String(ended ?? 'now'),
      // Tables leave out the columns whose names begin with this, if no article has figures of the run.
      unpublished: ({ variants }) =>
        variants.every(({ published }) => published === null) ? 'published' : null,
      report: ({ places }) => places?.report,
      machine: ({ places }) => places?.machine,
      article_title: ({ places }) => places?.articleTitle,
      article_machine: ({ places }) => places?.articleMachine,
    },
    'ms since 1970': {
      started: ({ startedAt }) => Date.parse(startedAt),
      ended: ({ ended }) => ended,
    },
    requests: {
      requests: ({ integrity }) => integrity?.requests,
      stored: ({ integrity }) => integrity?.stored,
      backfilled: ({ integrity }) => integrity?.backfilled,
      lost: ({ integrity }) => integrity?.lost,
    },
    rounds: {
      rounds: ({ variants }) => wholeRounds(variants),
      noise_floor_rounds: ({ noiseFloor }) => noiseFloor?.rounds,
    },
    ratio: {
      // The smallest detectable effect, as a share of requests/s. Ratios within the band may be noise.
      noise_floor: ({ noiseFloor }) => noiseFloor && noiseFloor.ratio - 1,
      noise_low: ({ noiseFloor }) => noiseFloor && 1 / noiseFloor.ratio,
      noise_high: ({ noiseFloor }) => noiseFloor?.ratio,
    },
  },
});

/** Everything that bakeoff's dashboards may ask for. */
export const measurements: readonly Measurement[] = [
  ...loadgenMeasurements,
  serverCpu,
  serverRss,
  benchRound,
  benchComparison,
  benchPhase,
  benchBucket,
  benchCurve,
  benchWhy,
  benchPage,
  benchSentence,
  benchClaim,
  benchRun,
];
