// The catalogue of what bakeoff itself writes to InfluxDB, beside k6's loadgen_* samples: one place for names and units,
// used by the writers below and by the dashboards. Numbers are stored as floats; a figure that is not there is left out.
import metrics from '../../xk6-loadgen/metrics.json' with { type: 'json' };
import type { Comparison, Integrity, Phase, Result, VariantResult } from '../runner/result.ts';
import { line, toNanoseconds } from './line-protocol.ts';

export const database = 'bakeoff';

/** `unit: 'text'` marks a string field. */
interface Measurement {
  measurement: string;
  tags: readonly string[];
  fields: Readonly<Record<string, { unit: string; about: string }>>;
}

/** Tags that every loadgen_* sample carries beside its metric's own ones. */
export const sampleTags = ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol', 'instance'] as const;

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

/** One point per variant, round and phase, at the phase's start. */
export const benchRound = {
  measurement: 'bench_round',
  tags: ['run', 'scenario', 'variant', 'round', 'phase', 'server', 'protocol'],
  fields: {
    position: { unit: 'number', about: 'the variant\'s place in the scenario, from 0' },
    published_rps: { unit: 'requests/s', about: 'what the article saw' },
    measured_rps: { unit: 'requests/s', about: 'what was measured here in this round' },
    ratio: { unit: 'ratio', about: 'measured requests/s by the baseline\'s of the same round' },
    requests: { unit: 'requests', about: 'responses and errors' },
    seconds: { unit: 's', about: 'length of the measured window' },
    errors: { unit: 'errors', about: 'attempts that ended without a response' },
    errors_per_million: { unit: 'errors/million', about: 'attempts without a response per million requests' },
    success_ratio: { unit: 'ratio', about: '2xx and 3xx responses per request' },
    server_cpu_micros_per_request: { unit: 'µs', about: 'the server\'s CPU time per request' },
    generator_cpu_micros_per_request: { unit: 'µs', about: 'the generator\'s CPU time per request' },
    p50_ms: { unit: 'ms', about: 'median latency' },
    p99_ms: { unit: 'ms', about: '99th percentile of latency' },
    max_ms: { unit: 'ms', about: 'highest latency' },
    header_bytes: { unit: 'bytes', about: 'response header bytes received' },
    total_bytes: { unit: 'bytes', about: 'all bytes received' },
    server_rss_bytes: { unit: 'bytes', about: 'resident memory of the server\'s process tree' },
  },
} as const satisfies Measurement;

/** One point per variant and run: a row of the article's table. A variant that is published only has no measured_rps. */
export const benchComparison = {
  measurement: 'bench_comparison',
  tags: ['run', 'scenario', 'variant', 'server', 'baseline'],
  fields: {
    position: { unit: 'number', about: 'the variant\'s place in the table, from 0' },
    published_rps: { unit: 'requests/s', about: 'what the article saw' },
    published_ratio: { unit: 'ratio', about: 'the article\'s requests/s by its baseline\'s' },
    measured_rps: { unit: 'requests/s', about: 'median over the rounds measured here' },
    ratio: { unit: 'ratio', about: 'exp(mean of ln(variant / baseline)) within rounds; left out for a baseline' },
    ci_low: { unit: 'ratio', about: 'lower end of the ratio\'s 95 % interval' },
    ci_high: { unit: 'ratio', about: 'upper end of the ratio\'s 95 % interval' },
    verdict: { unit: 'text', about: 'faster, slower, same, inconclusive or none; left out for a baseline' },
    why: { unit: 'text', about: 'why that verdict' },
    note: { unit: 'text', about: 'why the variant stands in the table' },
    rounds: { unit: 'rounds', about: 'rounds measured here' },
    requests: { unit: 'requests', about: 'responses and errors in all rounds' },
    errors_per_million: { unit: 'errors/million', about: 'attempts without a response per million requests' },
    success_ratio: { unit: 'ratio', about: '2xx and 3xx responses per request' },
    server_cpu_micros_per_request: { unit: 'µs', about: 'median of the server\'s CPU time per request' },
    p50_ms: { unit: 'ms', about: 'median latency' },
    p99_ms: { unit: 'ms', about: '99th percentile of latency' },
    max_ms: { unit: 'ms', about: 'highest latency' },
    header_bytes_per_request: { unit: 'bytes', about: 'response header bytes received per request' },
    total_bytes_per_request: { unit: 'bytes', about: 'all bytes received per request' },
    server_share: { unit: 'ratio', about: 'median share of its cores that the server used' },
    generator_share: { unit: 'ratio', about: 'median share of its core that the generator used' },
    server_version: { unit: 'text', about: 'version of the server' },
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
    rounds: { unit: 'rounds', about: 'rounds of the run that are whole' },
    requests: { unit: 'requests', about: 'requests that k6 counted' },
    stored: { unit: 'requests', about: 'requests that the database holds' },
    backfilled: { unit: 'requests', about: 'requests that had to be written again' },
    lost: { unit: 'requests', about: 'requests that the database does not hold' },
  },
} as const satisfies Measurement;

/** All that bakeoff's dashboards may ask for. */
export const measurements: readonly Measurement[] = [...loadgenMeasurements, serverCpu, serverRss, benchRound, benchComparison, benchRun];

type Tags<M extends Measurement> = { [T in M['tags'][number]]: string | undefined };
type Fields<M extends Measurement> = { [F in keyof M['fields']]: (M['fields'][F]['unit'] extends 'text' ? string : number) | null | undefined };

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
export interface RoundContext {
  tags: Tags<typeof benchRound>;
  position: number;
  publishedRps?: number | undefined;
  ratio?: number | undefined;
}

/** The bench_round point of one phase. Written twice (later with the ratio) it stays one point. */
export function roundPoint(context: RoundContext, phase: Phase): string {
  const { requests } = phase;
  return pointOf(benchRound, context.tags, {
    position: context.position,
    published_rps: context.publishedRps,
    measured_rps: phase.rps,
    ratio: context.ratio,
    requests,
    seconds: phase.seconds,
    errors: phase.errors.total,
    errors_per_million: (phase.errors.total / requests) * 1e6,
    success_ratio: (phase.responses['2xx'] + phase.responses['3xx']) / requests,
    server_cpu_micros_per_request: (phase.serverCpuSeconds / requests) * 1e6,
    generator_cpu_micros_per_request: (phase.generatorCpuSeconds / requests) * 1e6,
    p50_ms: phase.latencyMs.p50,
    p99_ms: phase.latencyMs.p99,
    max_ms: phase.latencyMs.max,
    header_bytes: phase.bytes.headers,
    total_bytes: phase.bytes.received,
    server_rss_bytes: phase.serverRssBytes,
  }, toNanoseconds(phase.startedAt));
}

/** The rows of the table: one bench_comparison point per variant, at the run's start plus its position in ns. */
export function comparisonPoints(result: Result): string[] {
  const start = toNanoseconds(result.startedAt);
  return result.variants.map((variant, position) => {
    const comparison = result.comparisons.find((one) => one.variant === variant.name && one.metric === 'rps');
    const tags = {
      run: result.run, scenario: result.scenario, variant: variant.name, server: variant.server.name, baseline: comparison?.baseline,
    };
    return pointOf(benchComparison, tags, comparisonFields(variant, position, comparison), start + BigInt(position));
  });
}

function comparisonFields(variant: VariantResult, position: number, comparison: Comparison | undefined): Fields<typeof benchComparison> {
  const phases = variant.rounds.flatMap((round) => round.phases);
  const requests = sum(phases, (phase) => phase.requests);
  return {
    position,
    published_rps: variant.published?.rps,
    published_ratio: comparison?.publishedRatio,
    measured_rps: variant.rps?.median,
    ratio: comparison?.ratio,
    ci_low: comparison?.ci95[0],
    ci_high: comparison?.ci95[1],
    verdict: comparison?.verdict,
    why: comparison?.why,
    note: variant.note,
    rounds: variant.rounds.length,
    requests,
    errors_per_million: variant.errorsPerMillion,
    success_ratio: variant.successRatio,
    server_cpu_micros_per_request: variant.serverCpuMicrosPerRequest?.median,
    p50_ms: variant.latencyMs?.p50,
    p99_ms: variant.latencyMs?.p99,
    max_ms: variant.latencyMs?.max,
    header_bytes_per_request: sum(phases, (phase) => phase.bytes.headers) / requests,
    total_bytes_per_request: sum(phases, (phase) => phase.bytes.received) / requests,
    server_share: variant.serverShare,
    generator_share: variant.generatorShare,
    server_version: variant.server.version,
  };
}

/** What a bench_run point says; `ended` and `integrity` come with the run's end. */
export interface RunState {
  run: string;
  scenario: string;
  title: string;
  state: 'running' | Result['state'];
  /** ISO 8601, as in result.json. The same text at every writing: it is the point's timestamp. */
  startedAt: string;
  endedAt?: string;
  rounds?: number;
  integrity?: Integrity | null;
}

/** The bench_run point. Writing it again with the same startedAt replaces the fields of the one before. */
export function runPoint(run: RunState): string {
  return pointOf(benchRun, { run: run.run, scenario: run.scenario }, {
    title: run.title,
    state: run.state,
    started: Date.parse(run.startedAt),
    ended: run.endedAt === undefined ? null : Date.parse(run.endedAt),
    rounds: run.rounds,
    requests: run.integrity?.requests,
    stored: run.integrity?.stored,
    backfilled: run.integrity?.backfilled,
    lost: run.integrity?.lost,
  }, toNanoseconds(run.startedAt));
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
