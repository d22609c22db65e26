// The catalogue of bakeoff's points in InfluxDB, beside k6's loadgen_* samples: names, units and contents of all fields.
// points.ts writes by it, and the dashboards read by it. lib/result defines the figures.
// Numbers are stored as floats. A figure that is missing is left out.
import metrics from '../../xk6-loadgen/metrics.json' with { type: 'json' };
import { hasRatio, markedVerdict, type CurvePoint } from '../analysis/comparisons.ts';
import {
  delayText,
  headerSavingsPercent,
  responsesOf,
  serverCpuSecondsPerResponse,
  successRatioOf,
  wholeRounds,
} from '../analysis/phases.ts';
import type { PageSum } from '../analysis/pages.ts';
import { total } from '../analysis/statistics.ts';
import { effect } from '../format.ts';
import type {
  NetworkResult,
  BucketShare,
  Comparison,
  ErrorCause,
  FoundRate,
  LoadResult,
  Phase,
  PhaseResult,
  Result,
  VariantResult,
} from '../result/result.ts';
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

interface Field<Row> {
  unit: Unit;
  of: (row: Row) => number | string | null | undefined;
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

/** Returns a function that makes fields of the same unit, by name, each from the row of a point. */
function fieldsOf<Row>() {
  return <U extends Unit, Name extends string>(
    unit: U,
    fields: Record<Name, (row: Row) => (U extends 'text' ? string : number) | null | undefined>,
  ): Record<Name, Field<Row>> => {
    const made: Partial<Record<Name, Field<Row>>> = {};
    for (const name in fields) made[name] = { unit, of: fields[name] };
    return made as Record<Name, Field<Row>>;
  };
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
export const serverCpu = {
  measurement: 'server_cpu',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: fieldsOf<{ cores: number }>()('cores', { value: ({ cores }) => cores }),
} as const;

/** Resident memory of the server's process tree. */
export const serverRss = {
  measurement: 'server_rss',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: fieldsOf<{ rssBytes: number }>()('bytes', { value: ({ rssBytes }) => rssBytes }),
} as const;

const ofNetwork = fieldsOf<{ network?: NetworkResult | null | undefined }>();

/** Figures of an emulated network in a round, or their medians over the rounds. Absent on loopback. */
const networkFields = {
  ...ofNetwork('packets', {
    packets_to_server_per_request: ({ network }) => network?.packetsPerRequest.toServer,
    packets_to_client_per_request: ({ network }) => network?.packetsPerRequest.toClient,
    retransmits_per_request: ({ network }) => network?.retransmitsPerRequest,
  }),
  ...ofNetwork('ratio', {
    // Share of the packets at the link that the queue's limit dropped.
    dropped_to_server_share: ({ network }) => network?.droppedShare.toServer,
    dropped_to_client_share: ({ network }) => network?.droppedShare.toClient,
    server_idle_share: ({ network }) => network?.serverIdleShare,
  }),
  ...ofNetwork('ms', {
    // How late packets left the link, in the worse direction.
    lateness_p50_ms: ({ network }) => network?.latenessMs.p50,
    lateness_p99_ms: ({ network }) => network?.latenessMs.p99,
  }),
  ...ofNetwork('connections', { listen_overflows: ({ network }) => network?.listenOverflows }),
  ...ofNetwork('text', { delay: ({ network }) => network && (delayText(network) || null) }),
};

/** Failed attempts of all phases by cause; without a phase nothing was counted. */
const errorCauseFields = fieldsOf<{ phases: readonly Pick<LoadResult, 'errorCauses'>[] }>()(
  'errors',
  {
    errors_address_not_available: errorsBy('addressNotAvailable'),
    errors_refused: errorsBy('refused'),
    errors_reset: errorsBy('reset'),
    errors_timed_out: errorsBy('timedOut'),
    errors_short: errorsBy('short'),
    errors_other: errorsBy('other'),
  },
);

function errorsBy(cause: ErrorCause) {
  return ({ phases }: { phases: readonly Pick<LoadResult, 'errorCauses'>[] }): number | null =>
    phases.length === 0 ? null : total(phases, ({ errorCauses }) => errorCauses[cause]);
}

/** A phase of a round; the comparison is known later. */
export interface RoundRow extends Omit<Phase, 'network'> {
  /** Round and variant, for a mark on a time axis. */
  label: string;
  /** Of the comparison's metric, to the baseline's in the same round and phase. */
  ratio?: number | undefined;
  /** Over the rounds up to this one. */
  soFar?: Pick<Comparison, 'ratio' | 'ci95' | 'roundRatios'> | undefined;
  /** As generatorShareOf returns it. */
  generatorShare?: number | undefined;
  network?: NetworkResult | null | undefined;
  /** The phase alone. */
  phases: readonly [Phase];
}

const ofRound = fieldsOf<RoundRow>();

/** A point per variant, round and phase, at the phase's start. */
export const benchRound = {
  measurement: 'bench_round',
  tags: ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol'],
  fields: {
    ...ofRound('text', { label: ({ label }) => label }),
    ...ofRound('requests/s', { measured_rps: ({ rps }) => rps }),
    ...ofRound('µs', {
      user_cpu_us: ({ perRequest }) => perRequest?.userCpuUs,
      system_cpu_us: ({ perRequest }) => perRequest?.systemCpuUs,
    }),
    // All of these per request.
    ...ofRound('number', {
      voluntary_switches: ({ perRequest }) => perRequest?.voluntarySwitches,
      involuntary_switches: ({ perRequest }) => perRequest?.involuntarySwitches,
      page_faults: ({ perRequest }) => perRequest?.pageFaults,
      call_read_bytes: ({ perRequest }) => perRequest?.readBytes,
      call_written_bytes: ({ perRequest }) => perRequest?.writtenBytes,
      connections_per_request: ({ perRequest }) => perRequest?.connections,
      handshakes_per_request: ({ perRequest }) => perRequest?.handshakes,
      segments_out: ({ perRequest }) => perRequest?.segmentsOut,
      segments_in: ({ perRequest }) => perRequest?.segmentsIn,
      resent_segments: ({ perRequest }) => perRequest?.resentSegments,
      wire_bytes_out: ({ perRequest }) => perRequest?.wireBytesOut,
      wire_bytes_in: ({ perRequest }) => perRequest?.wireBytesIn,
    }),
    ...ofRound('ratio', {
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
    }),
    ...ofRound('requests', {
      requests: ({ requests }) => requests,
      unsent: ({ unsent }) => unsent,
    }),
    ...ofRound('s', { seconds: ({ seconds }) => seconds }),
    ...ofRound('errors', { errors: ({ errors }) => errors.total }),
    ...errorCauseFields,
    ...ofRound('µs', {
      server_cpu_micros_per_request: ({ phases }) => serverCpuSecondsPerResponse(phases) * 1e6,
      generator_cpu_micros_per_request: (row) => (row.generatorCpuSeconds / responsesOf(row)) * 1e6,
    }),
    ...ofRound('ms', {
      p50_ms: ({ latencyMs }) => latencyMs.p50,
      p99_ms: ({ latencyMs }) => latencyMs.p99,
      max_ms: ({ latencyMs }) => latencyMs.max,
      connect_mean_ms: ({ connectMs }) => connectMs.mean,
      connect_max_ms: ({ connectMs }) => connectMs.max,
      first_byte_mean_ms: ({ firstByteMs }) => firstByteMs.mean,
      first_byte_max_ms: ({ firstByteMs }) => firstByteMs.max,
      send_delay_p99_ms: ({ sendDelayMs }) => sendDelayMs.p99,
    }),
    ...ofRound('bytes', {
      header_bytes: ({ bytes }) => bytes.headers,
      body_bytes: ({ bytes }) => bytes.body,
      total_bytes: ({ bytes }) => bytes.received,
      server_rss_bytes: ({ serverRssBytes }) => serverRssBytes,
    }),
    ...ofRound('number', { load_average: ({ noise }) => noise?.loadAverage }),
    ...ofRound('MHz', {
      server_mhz_begin: ({ noise }) => noise?.serverMhz?.[0],
      server_mhz_end: ({ noise }) => noise?.serverMhz?.[1],
    }),
    ...networkFields,
  },
} as const;

/** The interval of a ratio; undefined after the first round. */
export function intervalOf({
  roundRatios,
  ci95,
}: Pick<Comparison, 'roundRatios' | 'ci95'>): [number, number] | undefined {
  return roundRatios.length > 1 ? ci95 : undefined;
}

/** A variant's row of the table. */
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
  found: FoundRate | undefined;
  network: NetworkResult | null;
  /** Of all rounds. */
  phases: readonly Phase[];
}

const ofComparison = fieldsOf<ComparisonRow>();

/** A point per variant and run: a row of the table. Only measured variants have measured_rps; a baseline has no ratio. */
export const benchComparison = {
  measurement: 'bench_comparison',
  // `version` is the server's. `metric` is set if the ratio is not of requests/s; `within` (the limit in words) if requests/s are
  // the rate that a search found.
  tags: ['run', 'scenario', 'variant', 'server', 'version', 'baseline', 'metric', 'within'],
  fields: {
    ...ofComparison('number', {
      position: ({ position }) => position,
      // 1 or 0.
      found_at_least: ({ found }) => found && Number(found.atLeast),
    }),
    ...ofComparison('requests/s', {
      published_rps: ({ variant }) => variant.published?.rps,
      // For a search, the rate that it found.
      measured_rps: ({ variant }) => variant.rps?.median,
      found_low: ({ found }) => found?.ci95?.[0],
      found_high: ({ found }) => found?.ci95?.[1],
    }),
    ...ofComparison('ratio', {
      published_ratio: ({ comparison }) => comparison?.publishedRatio,
      ratio: ({ measured }) => measured?.ratio,
      ci_low: ({ interval }) => interval?.[0],
      ci_high: ({ interval }) => interval?.[1],
      cpu_ratio: ({ comparison }) => comparison?.cpu?.ratio,
      cpu_ci_low: ({ cpuInterval }) => cpuInterval?.[0],
      cpu_ci_high: ({ cpuInterval }) => cpuInterval?.[1],
      success_ratio: ({ variant }) => variant.successRatio,
      server_share: ({ variant }) => variant.serverShare,
      generator_share: ({ variant }) => variant.generatorShare,
    }),
    ...ofComparison('text', {
      // The ratio with its interval, e.g. ×1.09 [1.08, 1.10].
      effect: ({ measured, interval }) =>
        measured && (hasRatio(measured) ? effect(measured.ratio, interval) : '–'),
      verdict: ({ comparison, result }) => comparison && markedVerdict(comparison, result),
      why: ({ comparison, variant }) => comparison?.why ?? variant.publishedOnly,
      looks: ({ result }) => result.looks.join(', '),
      outliers: ({ measured }) => measured?.outliers.join(', '),
      disagreement: ({ measured }) => measured?.disagreement,
      note: ({ variant }) => variant.note,
    }),
    ...ofComparison('rounds', {
      rounds: ({ variant }) => variant.rounds.length,
      // The point is written again after each round. 0 replaces an earlier figure, which would stay if the field were left out.
      rounds_needed: ({ measured }) => measured && (measured.roundsNeeded ?? 0),
    }),
    ...ofComparison('requests', {
      requests: ({ phases }) => total(phases, (phase) => phase.requests),
    }),
    ...ofComparison('errors/million', {
      published_errors_per_million: ({ variant }) => variant.published?.errorsPerMillion,
      errors_per_million: ({ variant }) => variant.errorsPerMillion,
    }),
    ...errorCauseFields,
    ...ofComparison('µs', {
      server_cpu_micros_per_request: ({ variant }) => variant.serverCpuMicrosPerRequest?.median,
    }),
    ...ofComparison('ms', {
      p50_ms: ({ variant }) => variant.latencyMs?.p50,
      p99_ms: ({ variant }) => variant.latencyMs?.p99,
      max_ms: ({ variant }) => variant.latencyMs?.max,
    }),
    ...ofComparison('bytes', {
      header_bytes_per_request: ({ phases }) =>
        total(phases, ({ bytes }) => bytes.headers) / total(phases, responsesOf),
      total_bytes_per_request: ({ phases }) =>
        total(phases, ({ bytes }) => bytes.received) / total(phases, responsesOf),
    }),
    ...ofComparison('packets', {
      published_packets_per_request: ({ variant }) => variant.published?.packetsPerRequest,
    }),
    ...networkFields,
  },
} as const;

/** A load phase of a variant, as published and as measured here. */
interface PhaseRow {
  position: number;
  published: Published | undefined;
  measured: PhaseResult | undefined;
}

const ofPhase = fieldsOf<PhaseRow>();

/** The parts of a distribution in h2load's table. */
export type DistributionPart = 'min' | 'max' | 'mean' | 'sd' | 'within_sd';

/** The fields of a line of h2load's table, such as connect_ms_mean and published_connect_ms_mean. */
function distributionFields<Prefix extends string>(
  prefix: Prefix,
  unit: Unit,
  figures: 'latencyMs' | 'connectMs' | 'firstByteMs' | 'perConnectionRps' | 'perThreadRps',
): Record<`${'' | 'published_'}${Prefix}_${DistributionPart}`, Field<PhaseRow>> {
  const fields = (['min', 'max', 'mean', 'sd'] as const).map((part) =>
    ofPhase(unit as 'ms', {
      [`${prefix}_${part}`]: ({ measured }: PhaseRow) => measured?.[figures][part],
      [`published_${prefix}_${part}`]: ({ published }: PhaseRow) => published?.[figures]?.[part],
    }),
  );
  const shares = ofPhase('ratio', {
    [`${prefix}_within_sd`]: ({ measured }: PhaseRow) => measured?.[figures].withinSd,
    [`published_${prefix}_within_sd`]: ({ published }: PhaseRow) =>
      asShare(published?.[figures]?.withinSdPercent),
  });
  return Object.assign({}, ...fields, shares) as ReturnType<typeof distributionFields<Prefix>>;
}

/** A point per variant and load phase of a run: the figures of h2load and wrk, published beside measured. */
export const benchPhase = {
  measurement: 'bench_phase',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'protocol'],
  fields: {
    ...ofPhase('number', { position: ({ position }) => position }),
    ...ofPhase('s', {
      published_seconds: ({ published }) => published?.seconds,
      seconds: ({ measured }) => measured?.seconds,
    }),
    ...ofPhase('requests/s', {
      published_rps: ({ published }) => published?.rps,
      measured_rps: ({ measured }) => measured?.rps.median,
    }),
    ...ofPhase('ratio', {
      published_success_ratio: ({ published }) => published?.successRatio,
      success_ratio: ({ measured }) => measured?.successRatio,
      published_header_savings: ({ published }) => asShare(published?.headerSavingsPercent),
      header_savings: ({ measured }) => asShare(measured?.headerSavingsPercent),
    }),
    ...ofPhase('requests', {
      requests: ({ measured }) => measured?.requests,
      unsent: ({ measured }) => measured?.unsent,
    }),
    ...ofPhase('responses', { responses_4xx: ({ measured }) => measured?.responses['4xx'] }),
    ...ofPhase('errors', { errors: ({ measured }) => measured?.errors.total }),
    ...ofPhase('bytes/s', {
      published_bytes_per_second: ({ published }) => published?.transferBytesPerSecond,
      bytes_per_second: ({ measured }) => measured?.receivedBytesPerSecond,
    }),
    ...ofPhase('bytes', {
      published_total_bytes: ({ published }) => published?.receivedBytes,
      total_bytes: ({ measured }) => measured?.bytes.received,
      published_header_bytes: ({ published }) => published?.headerBytes,
      header_bytes: ({ measured }) => measured?.bytes.headers,
      published_body_bytes: ({ published }) => published?.bodyBytes,
      body_bytes: ({ measured }) => measured?.bytes.body,
    }),
    ...distributionFields('request_ms', 'ms', 'latencyMs'),
    ...distributionFields('connect_ms', 'ms', 'connectMs'),
    ...distributionFields('first_byte_ms', 'ms', 'firstByteMs'),
    ...distributionFields('client_rps', 'requests/s', 'perConnectionRps'),
    ...distributionFields('thread_rps', 'requests/s', 'perThreadRps'),
    ...ofPhase('ms', {
      p50_ms: ({ measured }) => measured?.latencyMs.p50,
      p99_ms: ({ measured }) => measured?.latencyMs.p99,
      send_delay_p99_ms: ({ measured }) => measured?.sendDelayMs.p99,
    }),
    ...ofPhase('text', {
      published_tls: ({ published }) => tlsText(published?.tls),
      tls: ({ measured }) => tlsText(measured?.tls),
    }),
  },
} as const;

/** Percent as a share of 1. */
function asShare(percent: number | null | undefined): number | null {
  return percent === null || percent === undefined ? null : percent / 100;
}

function tlsText(tls: LoadResult['tls'] | undefined): string | null {
  return tls ? `${tls.version} ${tls.cipher} ${tls.keyExchange}` : null;
}

/** A latency bucket, as published and as measured. */
interface BucketRow {
  position: number;
  bucket: BucketShare;
  published: BucketShare | undefined;
  measured: BucketShare | undefined;
}

const ofBucket = fieldsOf<BucketRow>();

/** A point per variant, load phase and latency bucket, in the buckets' order, if the load asks for buckets. */
export const benchBucket = {
  measurement: 'bench_bucket',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'bucket'],
  fields: {
    ...ofBucket('number', { position: ({ position }) => position }),
    ...ofBucket('ms', {
      from_ms: ({ bucket }) => bucket.fromMs,
      to_ms: ({ bucket }) => bucket.toMs,
    }),
    ...ofBucket('responses', {
      published_count: ({ published }) => published?.count,
      count: ({ measured }) => measured?.count,
    }),
    ...ofBucket('ratio', {
      published_share: ({ published }) => published?.share,
      share: ({ measured }) => measured?.share,
    }),
  },
} as const;

/** A point per number of streams of a sweep, most streams first, if the run has such a sweep beside HTTP/1.1. */
export const benchStreams = {
  measurement: 'bench_streams',
  tags: ['run', 'scenario', 'variant', 'server', 'streams'],
  fields: fieldsOf<{ rps: number; http1Rps: number | undefined }>()('requests/s', {
    measured_rps: ({ rps }) => rps,
    http1_rps: ({ http1Rps }) => http1Rps,
  }),
} as const;

const ofCurve = fieldsOf<CurvePoint & { position: number }>();

/** A point per rate with a latency: a step of a search, or a rate of a sweep, whose `variant` is the swept config. Lowest rates first. */
export const benchCurve = {
  measurement: 'bench_curve',
  tags: ['run', 'scenario', 'variant'],
  fields: {
    ...ofCurve('number', {
      // Among the points of the variant, by rate.
      position: ({ position }) => position,
      // 1 or 0; absent for a sweep.
      kept: ({ kept }) => (kept === undefined ? null : Number(kept)),
    }),
    ...ofCurve('requests/s', { rate: ({ rate }) => rate }),
    ...ofCurve('ms', { p50_ms: ({ p50 }) => p50, p99_ms: ({ p99 }) => p99 }),
  },
} as const;

/** A part of the CPU time of a request, while perf looked on. */
interface WhyRow {
  position: number;
  us: number;
  sdUs: number;
  /** Of the part's system call; undefined for another part. */
  perRequest: number | undefined;
}

const ofWhy = fieldsOf<WhyRow>();

/** A point per side and part of its CPU time, the largest first, if the run looked at causes. */
export const benchWhy = {
  measurement: 'bench_why',
  tags: ['run', 'scenario', 'variant', 'part'],
  fields: {
    ...ofWhy('number', {
      position: ({ position }) => position,
      calls_per_request: ({ perRequest }) => perRequest,
    }),
    ...ofWhy('µs', { cpu_us: ({ us }) => us, cpu_sd_us: ({ sdUs }) => sdUs }),
  },
} as const;

const ofPage = fieldsOf<PageSum & { position: number; effect: PageEffect | undefined }>();

/** A point per side and page of a mix, the greatest weights first. `effect` is on the time of an answer alone, against the baseline. */
export const benchPage = {
  measurement: 'bench_page',
  tags: ['run', 'scenario', 'variant', 'page'],
  fields: {
    ...ofPage('number', { position: ({ position }) => position }),
    ...ofPage('ratio', { share: ({ share }) => share }),
    ...ofPage('responses', { unexpected: ({ unexpected }) => unexpected }),
    ...ofPage('bytes', {
      body_bytes: ({ bodyBytes, responses }) => bodyBytes / Math.max(1, responses),
    }),
    ...ofPage('ms', { p50_ms: ({ p50Ms }) => p50Ms, p99_ms: ({ p99Ms }) => p99Ms }),
    ...ofPage('text', {
      effect: ({ effect: seen }) => seen && effect(seen.ratio, seen.ci95),
      verdict: ({ effect: seen }) => seen?.verdict,
    }),
  },
} as const;

type PageEffect = NonNullable<Comparison['pages']>[number];

/** A point per sentence about a finished run, findings before warnings. `kind` is a verdict of bench_comparison, `found` or `warning`. */
export const benchSentence = {
  measurement: 'bench_sentence',
  tags: ['run', 'scenario', 'kind'],
  fields: fieldsOf<{ text: string }>()('text', { text: ({ text }) => text }),
} as const;

/** A run as it is now. `ended` in ms since 1970; null while it goes on, and for good if bakeoff was killed. */
export interface RunRow extends Pick<
  Result,
  'title' | 'startedAt' | 'state' | 'integrity' | 'noiseFloor'
> {
  variants: readonly Pick<VariantResult, 'published' | 'rounds'>[];
  ended: number | null;
}

const ofRun = fieldsOf<RunRow>();

/** A point per run, at its start; written again when the run ends. */
export const benchRun = {
  measurement: 'bench_run',
  tags: ['run', 'scenario'],
  fields: {
    ...ofRun('text', {
      title: ({ title }) => title,
      state: ({ ended, state }) => (ended === null ? 'running' : state),
      // End of the time range that shows the run.
      shown_to: ({ ended }) => String(ended ?? 'now'),
      // If no article has figures of the run: tables leave out the columns whose names begin with this.
      unpublished: ({ variants }) =>
        variants.every(({ published }) => published === null) ? 'published' : null,
    }),
    ...ofRun('ms since 1970', {
      started: ({ startedAt }) => Date.parse(startedAt),
      ended: ({ ended }) => ended,
    }),
    ...ofRun('requests', {
      requests: ({ integrity }) => integrity?.requests,
      stored: ({ integrity }) => integrity?.stored,
      backfilled: ({ integrity }) => integrity?.backfilled,
      lost: ({ integrity }) => integrity?.lost,
    }),
    ...ofRun('rounds', {
      rounds: ({ variants }) => wholeRounds(variants),
      noise_floor_rounds: ({ noiseFloor }) => noiseFloor?.rounds,
    }),
    ...ofRun('ratio', {
      // The smallest detectable effect, as a share of requests/s. Ratios within the band may be noise.
      noise_floor: ({ noiseFloor }) => noiseFloor && noiseFloor.ratio - 1,
      noise_low: ({ noiseFloor }) => noiseFloor && 1 / noiseFloor.ratio,
      noise_high: ({ noiseFloor }) => noiseFloor?.ratio,
    }),
  },
} as const;

/** Everything that bakeoff's dashboards may ask for. */
export const measurements: readonly Measurement[] = [
  ...loadgenMeasurements,
  serverCpu,
  serverRss,
  benchRound,
  benchComparison,
  benchPhase,
  benchBucket,
  benchStreams,
  benchCurve,
  benchWhy,
  benchPage,
  benchSentence,
  benchRun,
];
