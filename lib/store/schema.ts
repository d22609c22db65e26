// The catalogue of what bakeoff itself writes to InfluxDB, beside k6's loadgen_* samples: one place for names and units,
// used by the writers in points.ts and by the dashboards. Numbers are stored as floats; a figure that is not there is left out.
import metrics from '../../xk6-loadgen/metrics.json' with { type: 'json' };

export const database = 'bakeoff';

/** `unit: 'text'` marks a string field. */
export interface Measurement {
  measurement: string;
  tags: readonly string[];
  fields: Readonly<Record<string, { unit: string; about: string }>>;
}

/** Tags that every loadgen_* sample carries beside its metric's own ones; `instance_id` where several generators make a load together. */
const sampleTags = ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol', 'instance', 'instance_id'] as const;

/** k6's samples: a measurement per metric of xk6-loadgen/metrics.json, whose figure is the field `value`. */
export const loadgenMeasurements: readonly Measurement[] = metrics.map((metric) => ({
  measurement: metric.name,
  tags: [...sampleTags, ...metric.tags],
  fields: { value: { unit: metric.unit, about: metric.about } },
}));

export const serverCpu = {
  measurement: 'server_cpu',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: { value: { unit: 'cores', about: 'CPU seconds per second of the server\'s process tree since the sample before' } },
} as const satisfies Measurement;

export const serverRss = {
  measurement: 'server_rss',
  tags: ['run', 'scenario', 'variant', 'round', 'server'],
  fields: { value: { unit: 'bytes', about: 'resident memory of the server\'s process tree' } },
} as const satisfies Measurement;

/** Of a network of the run's own, so left out on loopback: of one round, or the medians over the rounds. */
export const networkFields = {
  packets_to_server_per_request: { unit: 'packets', about: 'packets that came to the link on their way to the server, per request' },
  packets_to_client_per_request: { unit: 'packets', about: 'packets that came to the link on their way to the client, per request' },
  dropped_to_server_share: { unit: 'ratio', about: 'share of the packets to the server that the queue\'s limit dropped' },
  dropped_to_client_share: { unit: 'ratio', about: 'share of the packets to the client that the queue\'s limit dropped' },
  lateness_p50_ms: { unit: 'ms', about: 'median of how late packets left the link, in the direction in which they were later' },
  lateness_p99_ms: { unit: 'ms', about: '99th percentile of how late packets left the link, in the direction in which they were later' },
  retransmits_per_request: { unit: 'packets', about: 'TCP segments that the two sides sent again, per request' },
  listen_overflows: { unit: 'connections', about: 'connections that the server\'s full accept queue turned away' },
  server_idle_share: { unit: 'ratio', about: 'share of its cores that the server left unused' },
  delay: { unit: 'text', about: 'held, or not held and by how much' },
} as const;

/** Of one load phase, or of all rounds; they add up to the attempts that ended without a response. */
export const errorCauseFields = {
  errors_address_not_available: { unit: 'errors', about: 'attempts for which no address and port was left to connect from' },
  errors_refused: { unit: 'errors', about: 'attempts that the server refused' },
  errors_reset: { unit: 'errors', about: 'attempts that the server reset' },
  errors_timed_out: { unit: 'errors', about: 'attempts without an answer in time' },
  errors_short: { unit: 'errors', about: 'attempts that ended before the whole answer was there' },
  errors_other: { unit: 'errors', about: 'attempts that failed for another reason' },
} as const;

/** One point per variant, round and phase, at the phase's start. */
export const benchRound = {
  measurement: 'bench_round',
  tags: ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol'],
  fields: {
    measured_rps: { unit: 'requests/s', about: 'responses per second in this round' },
    ratio: { unit: 'ratio', about: 'requests/s, or the figure that bench_comparison\'s tag metric names, divided by the baseline\'s of the same round and phase' },
    ratio_so_far: { unit: 'ratio', about: 'as bench_comparison\'s ratio, over the rounds up to this one' },
    ci_low: { unit: 'ratio', about: 'lower end of its 95 % interval; left out for one round, which has none' },
    ci_high: { unit: 'ratio', about: 'upper end of its 95 % interval' },
    label: { unit: 'text', about: 'round and variant in words, for a mark on a time axis' },
    requests: { unit: 'requests', about: 'responses and errors' },
    seconds: { unit: 's', about: 'length of the measured window' },
    errors: { unit: 'errors', about: 'attempts that ended without a response' },
    ...errorCauseFields,
    success_ratio: { unit: 'ratio', about: 'responses with the right class of status per request' },
    server_cpu_micros_per_request: { unit: 'µs', about: 'the server\'s CPU time per response' },
    generator_cpu_micros_per_request: { unit: 'µs', about: 'the generator\'s CPU time per response' },
    p50_ms: { unit: 'ms', about: 'median latency' },
    p99_ms: { unit: 'ms', about: '99th percentile of latency' },
    max_ms: { unit: 'ms', about: 'highest latency' },
    connect_mean_ms: { unit: 'ms', about: 'mean time to connect, TLS included' },
    connect_max_ms: { unit: 'ms', about: 'longest time to connect, TLS included' },
    first_byte_mean_ms: { unit: 'ms', about: 'mean time from the start of a connection to its first byte' },
    first_byte_max_ms: { unit: 'ms', about: 'longest time from the start of a connection to its first byte' },
    send_delay_p99_ms: { unit: 'ms', about: '99th percentile of how late requests left; open model only' },
    unsent: { unit: 'requests', about: 'requests that were due and could not be sent; open model only' },
    header_bytes: { unit: 'bytes', about: 'response header bytes received' },
    header_savings: { unit: 'ratio', about: 'share of the headers\' own size that HPACK saved' },
    body_bytes: { unit: 'bytes', about: 'response body bytes received' },
    total_bytes: { unit: 'bytes', about: 'all bytes received' },
    server_rss_bytes: { unit: 'bytes', about: 'resident memory of the server\'s process tree' },
    generator_share: { unit: 'ratio', about: 'share of the cores it can use that the generator used' },
    server_steal_share: { unit: 'ratio', about: 'share of the server\'s cores that the hypervisor gave to others' },
    generator_steal_share: { unit: 'ratio', about: 'share of the generator\'s cores that the hypervisor gave to others' },
    server_others_share: { unit: 'ratio', about: 'share of the server\'s cores that others than the server used' },
    generator_others_share: { unit: 'ratio', about: 'share of the generator\'s cores that others than the generator used' },
    load_average: { unit: 'number', about: 'one minute\'s load average at the window\'s end' },
    server_mhz_begin: { unit: 'MHz', about: 'mean clock of the server\'s cores at the window\'s begin' },
    server_mhz_end: { unit: 'MHz', about: 'mean clock of the server\'s cores at the window\'s end' },
    ...networkFields,
  },
} as const satisfies Measurement;

/**
 * One point per variant and run: a row of the article's table, with whole rounds' figures; bytes stand in bench_phase. A variant that is
 * published only has no measured_rps.
 */
export const benchComparison = {
  measurement: 'bench_comparison',
  // `version` is the server's: a line over runs ends where another version begins.
  // `metric` is there where the ratio and the verdict are not by requests/s, `within` (the limit in words) where requests/s are the
  // highest rate within a limit, as a search found it: their points are lines of their own.
  tags: ['run', 'scenario', 'variant', 'server', 'version', 'baseline', 'metric', 'within'],
  fields: {
    position: { unit: 'number', about: 'the variant\'s place in the table, from 0' },
    published_rps: { unit: 'requests/s', about: 'what the article saw' },
    published_ratio: { unit: 'ratio', about: 'the article\'s requests/s divided by its baseline\'s' },
    measured_rps: { unit: 'requests/s', about: 'responses per second: median over the rounds measured here; of a search the rate that it found' },
    found_low: { unit: 'requests/s', about: 'lower end of the found rate\'s 95 % interval; left out with fewer than 4 rounds' },
    found_high: { unit: 'requests/s', about: 'upper end of the found rate\'s 95 % interval' },
    found_at_least: { unit: 'number', about: '1 where the generator was at its limit beyond the found rate, which may be higher then; else 0' },
    ratio: { unit: 'ratio', about: 'exp(mean of ln(variant / baseline)) within rounds; left out for a baseline' },
    ci_low: { unit: 'ratio', about: 'lower end of the ratio\'s 95 % interval; left out for one round, which has none' },
    ci_high: { unit: 'ratio', about: 'upper end of the ratio\'s 95 % interval' },
    effect: { unit: 'text', about: 'the ratio with its interval, e.g. ×1.09 [1.08, 1.10]' },
    verdict: { unit: 'text', about: 'faster, slower, same, inconclusive or none, and behind it "delay not held" where that holds for one of the two, and "not final" until the run is complete; left out for a baseline' },
    why: { unit: 'text', about: 'why that verdict' },
    rounds_needed: { unit: 'rounds', about: 'how many rounds would probably decide an inconclusive comparison; 0 where it is decided, or no number would' },
    looks: { unit: 'text', about: 'after how many rounds the verdicts were to be looked at, e.g. 5, 10, 20' },
    outliers: { unit: 'text', about: 'numbers of the rounds whose ratio lies far from the others\'; they count like all others' },
    cpu_ratio: { unit: 'ratio', about: 'the server\'s CPU time per request divided by the baseline\'s, within rounds; left out for a baseline' },
    cpu_ci_low: { unit: 'ratio', about: 'lower end of that ratio\'s 95 % interval' },
    cpu_ci_high: { unit: 'ratio', about: 'upper end of that ratio\'s 95 % interval' },
    disagreement: { unit: 'text', about: 'why requests/s and CPU per request may say different things; empty where they agree' },
    note: { unit: 'text', about: 'why the variant stands in the table' },
    rounds: { unit: 'rounds', about: 'rounds measured here' },
    requests: { unit: 'requests', about: 'responses and errors in all rounds' },
    published_errors_per_million: { unit: 'errors/million', about: 'attempts without a response per million requests in the article' },
    errors_per_million: { unit: 'errors/million', about: 'attempts without a response per million requests' },
    ...errorCauseFields,
    success_ratio: { unit: 'ratio', about: 'responses with the right class of status per request' },
    server_cpu_micros_per_request: { unit: 'µs', about: 'median of the server\'s CPU time per response' },
    p50_ms: { unit: 'ms', about: 'median latency' },
    p99_ms: { unit: 'ms', about: '99th percentile of latency' },
    max_ms: { unit: 'ms', about: 'highest latency' },
    header_bytes_per_request: { unit: 'bytes', about: 'response header bytes received per response' },
    total_bytes_per_request: { unit: 'bytes', about: 'all bytes received per response' },
    server_share: { unit: 'ratio', about: 'median share of its cores that the server used' },
    generator_share: { unit: 'ratio', about: 'median share of its core that the generator used' },
    published_packets_per_request: { unit: 'packets', about: 'packets per request in the article, of both directions' },
    ...networkFields,
  },
} as const satisfies Measurement;

/** The parts of a distribution as h2load prints them. */
const distributionParts = { min: 'lowest', max: 'highest', mean: 'mean', sd: 'standard deviation of the', within_sd: 'share within one standard deviation of the' } as const;
export type DistributionPart = keyof typeof distributionParts;

export type DistributionFields<Prefix extends string> = Readonly<Record<`${Prefix}_${DistributionPart}` | `published_${Prefix}_${DistributionPart}`, { unit: string; about: string }>>;

/** The fields of one line of h2load's table, e.g. connect_ms_mean, and what the article printed, published_connect_ms_mean. */
function distributionFields<Prefix extends string>(prefix: Prefix, unit: string, what: string): DistributionFields<Prefix> {
  const entries = Object.entries(distributionParts).flatMap(([part, words]) => {
    const ofPart = part === 'within_sd' ? 'ratio' : unit;
    return [
      [`${prefix}_${part}`, { unit: ofPart, about: `${words} ${what}, over all rounds` }],
      [`published_${prefix}_${part}`, { unit: ofPart, about: `${words} ${what}, in the article` }],
    ];
  });
  return Object.fromEntries(entries) as DistributionFields<Prefix>;
}

/** One point per variant and load phase of a run, most runs have one phase: all that h2load and wrk print, published beside measured. */
export const benchPhase = {
  measurement: 'bench_phase',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'protocol'],
  fields: {
    position: { unit: 'number', about: 'the variant\'s place in the table, from 0' },
    published_seconds: { unit: 's', about: 'how long the article\'s load took' },
    seconds: { unit: 's', about: 'median length of the measured window' },
    published_rps: { unit: 'requests/s', about: 'what the article saw' },
    measured_rps: { unit: 'requests/s', about: 'median over the rounds measured here' },
    published_success_ratio: { unit: 'ratio', about: '2xx and 3xx responses per request in the article' },
    success_ratio: { unit: 'ratio', about: 'responses with the right class of status per request' },
    requests: { unit: 'requests', about: 'median over the rounds of responses and errors' },
    responses_4xx: { unit: 'responses', about: '4xx responses in all rounds' },
    errors: { unit: 'errors', about: 'attempts without a response in all rounds' },
    unsent: { unit: 'requests', about: 'requests in all rounds that were due and could not be sent; open model only' },
    published_bytes_per_second: { unit: 'bytes/s', about: 'all bytes received per second in the article' },
    bytes_per_second: { unit: 'bytes/s', about: 'median over the rounds of all bytes received per second' },
    published_total_bytes: { unit: 'bytes', about: 'all bytes that the article\'s generator received' },
    total_bytes: { unit: 'bytes', about: 'median over the rounds of all bytes received' },
    published_header_bytes: { unit: 'bytes', about: 'response header bytes that the article saw' },
    header_bytes: { unit: 'bytes', about: 'median over the rounds of the response header bytes received' },
    published_header_savings: { unit: 'ratio', about: 'share of the headers\' own size that HPACK saved in the article' },
    header_savings: { unit: 'ratio', about: 'share of the headers\' own size that HPACK saved' },
    published_body_bytes: { unit: 'bytes', about: 'response body bytes that the article saw' },
    body_bytes: { unit: 'bytes', about: 'median over the rounds of the response body bytes received' },
    ...distributionFields('request_ms', 'ms', 'time for a request'),
    ...distributionFields('connect_ms', 'ms', 'time to connect, TLS included'),
    ...distributionFields('first_byte_ms', 'ms', 'time from the start of a connection to its first byte'),
    ...distributionFields('client_rps', 'requests/s', 'requests/s of a connection'),
    ...distributionFields('thread_rps', 'requests/s', 'requests/s of a thread of the generator in a tenth of a second'),
    p50_ms: { unit: 'ms', about: 'median latency, over all rounds' },
    p99_ms: { unit: 'ms', about: '99th percentile of latency, over all rounds' },
    send_delay_p99_ms: { unit: 'ms', about: '99th percentile of how late requests left, over all rounds; open model only' },
    published_tls: { unit: 'text', about: 'TLS version, cipher and key exchange in the article' },
    tls: { unit: 'text', about: 'TLS version, cipher and key exchange as negotiated; left out without TLS' },
  },
} as const satisfies Measurement;

/** One point per variant, load phase and latency bucket of a run, in the buckets' order; only where the load asks for buckets. */
export const benchBucket = {
  measurement: 'bench_bucket',
  tags: ['run', 'scenario', 'variant', 'phase', 'server', 'bucket'],
  fields: {
    position: { unit: 'number', about: 'the bucket\'s place, from 0' },
    from_ms: { unit: 'ms', about: 'lower end, which belongs to the bucket' },
    to_ms: { unit: 'ms', about: 'upper end, which does not; left out for the last bucket' },
    published_count: { unit: 'responses', about: 'responses in the bucket in the article' },
    published_share: { unit: 'ratio', about: 'share of the article\'s responses that fell into the bucket' },
    count: { unit: 'responses', about: 'responses in the bucket in all rounds' },
    share: { unit: 'ratio', about: 'share of the responses that fell into the bucket' },
  },
} as const satisfies Measurement;

/** One point per number of streams of a sweep, most streams first; only where a run has such a sweep beside HTTP/1.1. */
export const benchStreams = {
  measurement: 'bench_streams',
  tags: ['run', 'scenario', 'variant', 'server', 'streams'],
  fields: {
    measured_rps: { unit: 'requests/s', about: 'median over the rounds measured here' },
    http1_rps: { unit: 'requests/s', about: 'that of HTTP/1.1 in the same run' },
  },
} as const satisfies Measurement;

/** One point per rate at which latency was measured: a step of a search, or a rate of a sweep, whose `variant` is what was swept. The lowest rates of all variants come first. */
export const benchCurve = {
  measurement: 'bench_curve',
  tags: ['run', 'scenario', 'variant'],
  fields: {
    position: { unit: 'number', about: 'the point\'s place among those of the variant, by rate, from 0' },
    rate: { unit: 'requests/s', about: 'the rate that was asked for' },
    p50_ms: { unit: 'ms', about: 'median latency at that rate' },
    p99_ms: { unit: 'ms', about: '99th percentile of latency at that rate' },
    kept: { unit: 'number', about: '1 where the limit of the search was kept, 0 where it was not; left out of a sweep' },
  },
} as const satisfies Measurement;

/** One point per sentence on a run that has ended, in their order: what was found, then what warns. */
export const benchSentence = {
  measurement: 'bench_sentence',
  tags: ['run', 'scenario', 'kind'],
  fields: {
    text: { unit: 'text', about: 'the sentence, as the report has it; its kind is the verdict that it tells of, as in bench_comparison, or found, or warning' },
  },
} as const satisfies Measurement;

/** One point per run, at its start; written again when the run ends. */
export const benchRun = {
  measurement: 'bench_run',
  tags: ['run', 'scenario'],
  fields: {
    title: { unit: 'text', about: 'the scenario in words' },
    state: { unit: 'text', about: 'running, complete or partial; running for ever when the runner was killed' },
    started: { unit: 'ms since 1970', about: 'start of the run' },
    ended: { unit: 'ms since 1970', about: 'end of the run' },
    shown_to: { unit: 'text', about: 'end of the time range that shows the run: "now" while it goes on, then its end in ms since 1970' },
    rounds: { unit: 'rounds', about: 'rounds of the run that are whole' },
    requests: { unit: 'requests', about: 'requests that k6 counted' },
    stored: { unit: 'requests', about: 'requests that the database holds' },
    backfilled: { unit: 'requests', about: 'requests that had to be written again' },
    lost: { unit: 'requests', about: 'requests that the database does not hold' },
    noise_floor: { unit: 'ratio', about: 'of a config against itself: the smallest effect that is told from noise, as a share of requests/s' },
    noise_floor_rounds: { unit: 'rounds', about: 'with how many rounds' },
    noise_low: { unit: 'ratio', about: 'ratios between this and noise_high cannot be told from 1' },
    noise_high: { unit: 'ratio', about: '1 and the noise floor' },
    unpublished: { unit: 'text', about: '"published", where no article has figures of the run: tables leave out the columns whose names begin so; else left out' },
  },
} as const satisfies Measurement;

/** All that bakeoff's dashboards may ask for. */
export const measurements: readonly Measurement[] = [...loadgenMeasurements, serverCpu, serverRss, benchRound, benchComparison, benchPhase, benchBucket, benchStreams, benchCurve, benchSentence, benchRun];
