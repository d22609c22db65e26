// The catalogue of what bakeoff itself writes to InfluxDB, beside k6's loadgen_* samples: the one place for names, units and what each
// field holds. points.ts writes by it, and the dashboards read by it. What a figure means is said where it comes from, in lib/result.
// Numbers are stored as floats; a figure that is not there is left out.
import metrics from '../../xk6-loadgen/metrics.json' with { type: 'json' };
import { hasRatio, markedVerdict } from '../analysis/comparisons.ts';
import type { CurvePoint } from '../analysis/curve.ts';
import { delayText } from '../analysis/network.ts';
import {
  headerSavingsPercent,
  responsesOf,
  serverCpuSecondsPerResponse,
  successRatioOf,
  wholeRounds,
} from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { times } from '../format.ts';
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

/** One that bakeoff writes: `of` says what a field holds of what a point is made of. */
export interface Written<Row> extends Measurement {
  fields: Readonly<
    Record<string, Figure<Row> | { unit: 'text'; of: (row: Row) => string | null | undefined }>
  >;
}

interface Figure<Row> {
  unit: Unit;
  of: (row: Row) => number | null | undefined;
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
  | 'number';

/** Tags that every loadgen_* sample carries beside its metric's own ones; `instance_id` where several generators make a load together. */
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

/** k6's samples: a measurement per metric of xk6-loadgen/metrics.json, whose figure is the field `value`. */
export const loadgenMeasurements: readonly Measurement[] = metrics.map((metric) => ({
  measurement: metric.name,
  tags: [...sampleTags, ...metric.tags],
  fields: { value: { unit: metric.unit } },
}));

/** CPU seconds per second of the server's process tree since the sample before. */
export const serverCpu = {
  measurement: 'server_cpu',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: { value: { unit: 'cores', of: ({ cores }) => cores } },
} as const satisfies Written<{ cores: number }>;

/** Resident memory of the server's process tree. */
export const serverRss = {
  measurement: 'server_rss',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: { value: { unit: 'bytes', of: ({ rssBytes }) => rssBytes } },
} as const satisfies Written<{ rssBytes: number }>;

/** Of a network of the run's own, so left out on loopback: of one round, or the medians over the rounds. */
export const networkFields = {
  packets_to_server_per_request: {
    unit: 'packets',
    of: ({ network }) => network?.packetsPerRequest.toServer,
  },
  packets_to_client_per_request: {
    unit: 'packets',
    of: ({ network }) => network?.packetsPerRequest.toClient,
  },
  // Of the packets that came to the link, what the queue's limit dropped.
  dropped_to_server_share: { unit: 'ratio', of: ({ network }) => network?.droppedShare.toServer },
  dropped_to_client_share: { unit: 'ratio', of: ({ network }) => network?.droppedShare.toClient },
  // How late packets left the link, in the direction in which they were later.
  lateness_p50_ms: { unit: 'ms', of: ({ network }) => network?.latenessMs.p50 },
  lateness_p99_ms: { unit: 'ms', of: ({ network }) => network?.latenessMs.p99 },
  retransmits_per_request: { unit: 'packets', of: ({ network }) => network?.retransmitsPerRequest },
  listen_overflows: { unit: 'connections', of: ({ network }) => network?.listenOverflows },
  server_idle_share: { unit: 'ratio', of: ({ network }) => network?.serverIdleShare },
  // Held, or not held and by how much.
  delay: { unit: 'text', of: ({ network }) => network && (delayText(network) || null) },
} as const satisfies Written<{ network?: NetworkResult | null | undefined }>['fields'];

/** Attempts without a response by their cause, over all of the phases; without a phase nothing was counted. */
function errorsBy(
  cause: ErrorCause,
): Figure<{ phases: readonly Pick<LoadResult, 'errorCauses'>[] }> {
  return {
    unit: 'errors',
    of: ({ phases }) =>
      phases.length === 0 ? null : total(phases, ({ errorCauses }) => errorCauses[cause]),
  };
}

export const errorCauseFields = {
  errors_address_not_available: errorsBy('addressNotAvailable'),
  errors_refused: errorsBy('refused'),
  errors_reset: errorsBy('reset'),
  errors_timed_out: errorsBy('timedOut'),
  errors_short: errorsBy('short'),
  errors_other: errorsBy('other'),
};

/** One phase of a round. What it has beside the phase is not known of every one. */
export interface RoundRow {
  phase: Phase;
  /** Round and variant in words, for a mark on a time axis. */
  label: string;
  /** By what the comparison is by, to the baseline's of the same round and phase: known once that is there. */
  ratio?: number | undefined;
  /** Over the rounds up to this one. */
  soFar?: Pick<Comparison, 'ratio' | 'ci95' | 'roundRatios'> | undefined;
  /** Of the cores that the generator can use, as generatorShareOf. */
  generatorShare?: number | undefined;
  /** What the run's own network did in this round; none on loopback. */
  network?: NetworkResult | null | undefined;
  /** The phase alone. */
  phases: readonly [Phase];
}

/** One point per variant, round and phase, at the phase's start. */
export const benchRound = {
  measurement: 'bench_round',
  tags: ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol'],
  fields: {
    measured_rps: { unit: 'requests/s', of: ({ phase }) => phase.rps },
    ratio: { unit: 'ratio', of: ({ ratio }) => ratio },
    ratio_so_far: {
      unit: 'ratio',
      of: ({ soFar }) => (soFar && hasRatio(soFar) ? soFar.ratio : undefined),
    },
    ci_low: { unit: 'ratio', of: ({ soFar }) => soFar && intervalOf(soFar)?.[0] },
    ci_high: { unit: 'ratio', of: ({ soFar }) => soFar && intervalOf(soFar)?.[1] },
    label: { unit: 'text', of: ({ label }) => label },
    requests: { unit: 'requests', of: ({ phase }) => phase.requests },
    seconds: { unit: 's', of: ({ phase }) => phase.seconds },
    errors: { unit: 'errors', of: ({ phase }) => phase.errors.total },
    ...errorCauseFields,
    success_ratio: { unit: 'ratio', of: ({ phases }) => successRatioOf(phases) },
    server_cpu_micros_per_request: {
      unit: 'µs',
      of: ({ phases }) => serverCpuSecondsPerResponse(phases) * 1e6,
    },
    generator_cpu_micros_per_request: {
      unit: 'µs',
      of: ({ phase }) => (phase.generatorCpuSeconds / responsesOf(phase)) * 1e6,
    },
    p50_ms: { unit: 'ms', of: ({ phase }) => phase.latencyMs.p50 },
    p99_ms: { unit: 'ms', of: ({ phase }) => phase.latencyMs.p99 },
    max_ms: { unit: 'ms', of: ({ phase }) => phase.latencyMs.max },
    connect_mean_ms: { unit: 'ms', of: ({ phase }) => phase.connectMs.mean },
    connect_max_ms: { unit: 'ms', of: ({ phase }) => phase.connectMs.max },
    first_byte_mean_ms: { unit: 'ms', of: ({ phase }) => phase.firstByteMs.mean },
    first_byte_max_ms: { unit: 'ms', of: ({ phase }) => phase.firstByteMs.max },
    send_delay_p99_ms: { unit: 'ms', of: ({ phase }) => phase.sendDelayMs.p99 },
    unsent: { unit: 'requests', of: ({ phase }) => phase.unsent },
    header_bytes: { unit: 'bytes', of: ({ phase }) => phase.bytes.headers },
    header_savings: {
      unit: 'ratio',
      of: ({ phase }) => asShare(headerSavingsPercent(phase.bytes)),
    },
    body_bytes: { unit: 'bytes', of: ({ phase }) => phase.bytes.body },
    total_bytes: { unit: 'bytes', of: ({ phase }) => phase.bytes.received },
    server_rss_bytes: { unit: 'bytes', of: ({ phase }) => phase.serverRssBytes },
    generator_share: { unit: 'ratio', of: ({ generatorShare }) => generatorShare },
    server_steal_share: { unit: 'ratio', of: ({ phase }) => phase.noise?.serverStealShare },
    generator_steal_share: { unit: 'ratio', of: ({ phase }) => phase.noise?.generatorStealShare },
    server_others_share: { unit: 'ratio', of: ({ phase }) => phase.noise?.serverOthersShare },
    generator_others_share: { unit: 'ratio', of: ({ phase }) => phase.noise?.generatorOthersShare },
    load_average: { unit: 'number', of: ({ phase }) => phase.noise?.loadAverage },
    server_mhz_begin: { unit: 'MHz', of: ({ phase }) => phase.noise?.serverMhz?.[0] },
    server_mhz_end: { unit: 'MHz', of: ({ phase }) => phase.noise?.serverMhz?.[1] },
    ...networkFields,
  },
} as const satisfies Written<RoundRow>;

/** One round has no interval: what stands there has no width, and says nothing of how sure the ratio is. */
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
  /** The same where it was measured here. */
  measured: Comparison | undefined;
  /** Of its ratio, and of that of CPU time; one round has none. */
  interval: [number, number] | undefined;
  cpuInterval: [number, number] | undefined;
  found: FoundRate | undefined;
  network: NetworkResult | null;
  /** Of all rounds. */
  phases: readonly Phase[];
}

/**
 * One point per variant and run: a row of the article's table, with whole rounds' figures; bytes stand in bench_phase. A variant that is
 * published only has no measured_rps, a baseline no ratio.
 */
export const benchComparison = {
  measurement: 'bench_comparison',
  // `version` is the server's: a line over runs ends where another version begins.
  // `metric` is there where the ratio and the verdict are not by requests/s, `within` (the limit in words) where requests/s are the
  // highest rate within a limit, as a search found it: their points are lines of their own.
  tags: ['run', 'scenario', 'variant', 'server', 'version', 'baseline', 'metric', 'within'],
  fields: {
    position: { unit: 'number', of: ({ position }) => position },
    published_rps: { unit: 'requests/s', of: ({ variant }) => variant.published?.rps },
    published_ratio: { unit: 'ratio', of: ({ comparison }) => comparison?.publishedRatio },
    // Of a search the rate that it found.
    measured_rps: { unit: 'requests/s', of: ({ variant }) => variant.rps?.median },
    found_low: { unit: 'requests/s', of: ({ found }) => found?.ci95?.[0] },
    found_high: { unit: 'requests/s', of: ({ found }) => found?.ci95?.[1] },
    // 1 or 0.
    found_at_least: { unit: 'number', of: ({ found }) => found && Number(found.atLeast) },
    ratio: { unit: 'ratio', of: ({ measured }) => measured?.ratio },
    ci_low: { unit: 'ratio', of: ({ interval }) => interval?.[0] },
    ci_high: { unit: 'ratio', of: ({ interval }) => interval?.[1] },
    // The ratio with its interval, e.g. ×1.09 [1.08, 1.10].
    effect: {
      unit: 'text',
      of: ({ measured, interval }) =>
        measured && (hasRatio(measured) ? times(measured.ratio, interval) : '–'),
    },
    verdict: {
      unit: 'text',
      of: ({ comparison, result }) => comparison && markedVerdict(comparison, result),
    },
    why: {
      unit: 'text',
      of: ({ comparison, variant }) => comparison?.why ?? variant.publishedOnly,
    },
    // Written anew after each round: what a later round takes back must not be left out, or the database would keep it.
    rounds_needed: {
      unit: 'rounds',
      of: ({ measured }) => measured && (measured.roundsNeeded ?? 0),
    },
    looks: { unit: 'text', of: ({ result }) => result.looks.join(', ') },
    outliers: { unit: 'text', of: ({ measured }) => measured?.outliers.join(', ') },
    cpu_ratio: { unit: 'ratio', of: ({ comparison }) => comparison?.cpu?.ratio },
    cpu_ci_low: { unit: 'ratio', of: ({ cpuInterval }) => cpuInterval?.[0] },
    cpu_ci_high: { unit: 'ratio', of: ({ cpuInterval }) => cpuInterval?.[1] },
    disagreement: { unit: 'text', of: ({ measured }) => measured?.disagreement },
    note: { unit: 'text', of: ({ variant }) => variant.note },
    rounds: { unit: 'rounds', of: ({ variant }) => variant.rounds.length },
    requests: { unit: 'requests', of: ({ phases }) => total(phases, (phase) => phase.requests) },
    published_errors_per_million: {
      unit: 'errors/million',
      of: ({ variant }) => variant.published?.errorsPerMillion,
    },
    errors_per_million: { unit: 'errors/million', of: ({ variant }) => variant.errorsPerMillion },
    ...errorCauseFields,
    success_ratio: { unit: 'ratio', of: ({ variant }) => variant.successRatio },
    server_cpu_micros_per_request: {
      unit: 'µs',
      of: ({ variant }) => variant.serverCpuMicrosPerRequest?.median,
    },
    p50_ms: { unit: 'ms', of: ({ variant }) => variant.latencyMs?.p50 },
    p99_ms: { unit: 'ms', of: ({ variant }) => variant.latencyMs?.p99 },
    max_ms: { unit: 'ms', of: ({ variant }) => variant.latencyMs?.max },
    header_bytes_per_request: {
      unit: 'bytes',
      of: ({ phases }) => total(phases, ({ bytes }) => bytes.headers) / total(phases, responsesOf),
    },
    total_bytes_per_request: {
      unit: 'bytes',
      of: ({ phases }) => total(phases, ({ bytes }) => bytes.received) / total(phases, responsesOf),
    },
    server_share: { unit: 'ratio', of: ({ variant }) => variant.serverShare },
    generator_share: { unit: 'ratio', of: ({ variant }) => variant.generatorShare },
    published_packets_per_request: {
      unit: 'packets',
      of: ({ variant }) => variant.published?.packetsPerRequest,
    },
    ...networkFields,
  },
} as const satisfies Written<ComparisonRow>;

/** A load phase of a variant: what the article has of it, and what was measured here. */
interface PhaseRow {
  position: number;
  published: Published | undefined;
  measured: PhaseResult | undefined;
}

/** The parts of a distribution as h2load prints them. */
const distributionParts = ['min', 'max', 'mean', 'sd', 'within_sd'] as const;
export type DistributionPart = (typeof distributionParts)[number];

/** The fields of one line of h2load's table, e.g. connect_ms_mean, and what the article printed, published_connect_ms_mean. */
function distributionFields<Prefix extends string>(
  prefix: Prefix,
  unit: Unit,
  figures: 'latencyMs' | 'connectMs' | 'firstByteMs' | 'perConnectionRps' | 'perThreadRps',
): Readonly<
  Record<
    `${Prefix}_${DistributionPart}` | `published_${Prefix}_${DistributionPart}`,
    Figure<PhaseRow>
  >
> {
  const entries = distributionParts.flatMap((part): [string, Figure<PhaseRow>][] =>
    part === 'within_sd'
      ? [
          [
            `${prefix}_${part}`,
            { unit: 'ratio', of: ({ measured }) => measured?.[figures].withinSd },
          ],
          [
            `published_${prefix}_${part}`,
            {
              unit: 'ratio',
              of: ({ published }) => asShare(published?.[figures]?.withinSdPercent),
            },
          ],
        ]
      : [
          [`${prefix}_${part}`, { unit, of: ({ measured }) => measured?.[figures][part] }],
          [
            `published_${prefix}_${part}`,
            { unit, of: ({ published }) => published?.[figures]?.[part] },
          ],
        ],
  );
  return Object.fromEntries(entries) as ReturnType<typeof distributionFields<Prefix>>;
}

/** One point per variant and load phase of a run, most runs have one phase: all that h2load and wrk print, published beside measured. */
export const benchPhase = {
  measurement: 'bench_phase',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'protocol'],
  fields: {
    position: { unit: 'number', of: ({ position }) => position },
    published_seconds: { unit: 's', of: ({ published }) => published?.seconds },
    seconds: { unit: 's', of: ({ measured }) => measured?.seconds },
    published_rps: { unit: 'requests/s', of: ({ published }) => published?.rps },
    measured_rps: { unit: 'requests/s', of: ({ measured }) => measured?.rps.median },
    published_success_ratio: { unit: 'ratio', of: ({ published }) => published?.successRatio },
    success_ratio: { unit: 'ratio', of: ({ measured }) => measured?.successRatio },
    requests: { unit: 'requests', of: ({ measured }) => measured?.requests },
    responses_4xx: { unit: 'responses', of: ({ measured }) => measured?.responses['4xx'] },
    errors: { unit: 'errors', of: ({ measured }) => measured?.errors.total },
    unsent: { unit: 'requests', of: ({ measured }) => measured?.unsent },
    published_bytes_per_second: {
      unit: 'bytes/s',
      of: ({ published }) => published?.transferBytesPerSecond,
    },
    bytes_per_second: { unit: 'bytes/s', of: ({ measured }) => measured?.receivedBytesPerSecond },
    published_total_bytes: { unit: 'bytes', of: ({ published }) => published?.receivedBytes },
    total_bytes: { unit: 'bytes', of: ({ measured }) => measured?.bytes.received },
    published_header_bytes: { unit: 'bytes', of: ({ published }) => published?.headerBytes },
    header_bytes: { unit: 'bytes', of: ({ measured }) => measured?.bytes.headers },
    published_header_savings: {
      unit: 'ratio',
      of: ({ published }) => asShare(published?.headerSavingsPercent),
    },
    header_savings: {
      unit: 'ratio',
      of: ({ measured }) => asShare(measured?.headerSavingsPercent),
    },
    published_body_bytes: { unit: 'bytes', of: ({ published }) => published?.bodyBytes },
    body_bytes: { unit: 'bytes', of: ({ measured }) => measured?.bytes.body },
    ...distributionFields('request_ms', 'ms', 'latencyMs'),
    ...distributionFields('connect_ms', 'ms', 'connectMs'),
    ...distributionFields('first_byte_ms', 'ms', 'firstByteMs'),
    ...distributionFields('client_rps', 'requests/s', 'perConnectionRps'),
    ...distributionFields('thread_rps', 'requests/s', 'perThreadRps'),
    p50_ms: { unit: 'ms', of: ({ measured }) => measured?.latencyMs.p50 },
    p99_ms: { unit: 'ms', of: ({ measured }) => measured?.latencyMs.p99 },
    send_delay_p99_ms: { unit: 'ms', of: ({ measured }) => measured?.sendDelayMs.p99 },
    published_tls: { unit: 'text', of: ({ published }) => tlsText(published?.tls) },
    tls: { unit: 'text', of: ({ measured }) => tlsText(measured?.tls) },
  },
} as const satisfies Written<PhaseRow>;

/** Percent as a share of one. */
function asShare(percent: number | null | undefined): number | null {
  return percent === null || percent === undefined ? null : percent / 100;
}

function tlsText(tls: LoadResult['tls'] | undefined): string | null {
  return tls ? `${tls.version} ${tls.cipher} ${tls.keyExchange}` : null;
}

/** A latency bucket: its ends, and what the article and this run have of it. */
interface BucketRow {
  position: number;
  bucket: BucketShare;
  published: BucketShare | undefined;
  measured: BucketShare | undefined;
}

/** One point per variant, load phase and latency bucket of a run, in the buckets' order; only where the load asks for buckets. */
export const benchBucket = {
  measurement: 'bench_bucket',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'bucket'],
  fields: {
    position: { unit: 'number', of: ({ position }) => position },
    from_ms: { unit: 'ms', of: ({ bucket }) => bucket.fromMs },
    to_ms: { unit: 'ms', of: ({ bucket }) => bucket.toMs },
    published_count: { unit: 'responses', of: ({ published }) => published?.count },
    published_share: { unit: 'ratio', of: ({ published }) => published?.share },
    count: { unit: 'responses', of: ({ measured }) => measured?.count },
    share: { unit: 'ratio', of: ({ measured }) => measured?.share },
  },
} as const satisfies Written<BucketRow>;

/** One point per number of streams of a sweep, most streams first; only where a run has such a sweep beside HTTP/1.1. */
export const benchStreams = {
  measurement: 'bench_streams',
  tags: ['run', 'scenario', 'variant', 'server', 'streams'],
  fields: {
    measured_rps: { unit: 'requests/s', of: ({ rps }) => rps },
    // That of HTTP/1.1 in the same run.
    http1_rps: { unit: 'requests/s', of: ({ http1Rps }) => http1Rps },
  },
} as const satisfies Written<{ rps: number; http1Rps: number | undefined }>;

/** One point per rate at which latency was measured: a step of a search, or a rate of a sweep, whose `variant` is what was swept. The lowest rates of all variants come first. */
export const benchCurve = {
  measurement: 'bench_curve',
  tags: ['run', 'scenario', 'variant'],
  fields: {
    // Among those of the variant, by rate.
    position: { unit: 'number', of: ({ position }) => position },
    rate: { unit: 'requests/s', of: ({ rate }) => rate },
    p50_ms: { unit: 'ms', of: ({ p50 }) => p50 },
    p99_ms: { unit: 'ms', of: ({ p99 }) => p99 },
    // 1 or 0; left out of a sweep.
    kept: { unit: 'number', of: ({ kept }) => (kept === undefined ? null : Number(kept)) },
  },
} as const satisfies Written<CurvePoint & { position: number }>;

/**
 * One point per sentence on a run that has ended, in their order: what was found, then what warns. Its kind is the verdict that it
 * tells of, as in bench_comparison, or found, or warning.
 */
export const benchSentence = {
  measurement: 'bench_sentence',
  tags: ['run', 'scenario', 'kind'],
  fields: { text: { unit: 'text', of: ({ text }) => text } },
} as const satisfies Written<{ text: string }>;

/** A run as it is now. `ended` in milliseconds since 1970; null while it goes on, and for ever when the runner was killed. */
export interface RunRow extends Pick<
  Result,
  'title' | 'startedAt' | 'state' | 'integrity' | 'noiseFloor'
> {
  variants: readonly Pick<VariantResult, 'published' | 'rounds'>[];
  ended: number | null;
}

/** One point per run, at its start; written again when the run ends. */
export const benchRun = {
  measurement: 'bench_run',
  tags: ['run', 'scenario'],
  fields: {
    title: { unit: 'text', of: ({ title }) => title },
    state: { unit: 'text', of: ({ ended, state }) => (ended === null ? 'running' : state) },
    started: { unit: 'ms since 1970', of: ({ startedAt }) => Date.parse(startedAt) },
    ended: { unit: 'ms since 1970', of: ({ ended }) => ended },
    // End of the time range that shows the run.
    shown_to: { unit: 'text', of: ({ ended }) => String(ended ?? 'now') },
    rounds: { unit: 'rounds', of: ({ variants }) => wholeRounds(variants) },
    requests: { unit: 'requests', of: ({ integrity }) => integrity?.requests },
    stored: { unit: 'requests', of: ({ integrity }) => integrity?.stored },
    backfilled: { unit: 'requests', of: ({ integrity }) => integrity?.backfilled },
    lost: { unit: 'requests', of: ({ integrity }) => integrity?.lost },
    // The smallest effect that is told from noise, as a share of requests/s; ratios within the band cannot be told from 1.
    noise_floor: { unit: 'ratio', of: ({ noiseFloor }) => noiseFloor && noiseFloor.ratio - 1 },
    noise_floor_rounds: { unit: 'rounds', of: ({ noiseFloor }) => noiseFloor?.rounds },
    noise_low: { unit: 'ratio', of: ({ noiseFloor }) => noiseFloor && 1 / noiseFloor.ratio },
    noise_high: { unit: 'ratio', of: ({ noiseFloor }) => noiseFloor?.ratio },
    // Where no article has figures of the run: tables leave out the columns whose names begin so.
    unpublished: {
      unit: 'text',
      of: ({ variants }) =>
        variants.every(({ published }) => published === null) ? 'published' : null,
    },
  },
} as const satisfies Written<RunRow>;

/** All that bakeoff's dashboards may ask for. */
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
  benchSentence,
  benchRun,
];
