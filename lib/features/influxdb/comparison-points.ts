// What bakeoff writes to InfluxDB of each row of the table.
import { hasRatio } from '../../analysis/comparisons.ts';
import { queueGrows, rateOf } from '../../analysis/limit.ts';
import { besideOf, inColumn } from '../../analysis/metrics.ts';
import { clientErrorsOf, headerBytesOf, responsesOf } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { effect, whole } from '../../format.ts';
import { marksOf } from '../../report/verdict-words.ts';
import type { NetworkResult } from '../../result/network-use.ts';
import type { Comparison, FoundRate, Phase, Result, VariantResult } from '../../result/result.ts';
import {
  factsOf,
  serverColumns,
  serverMetricNames,
  type ServerMetric,
} from '../../result/server-metrics.ts';
import { written, type Field } from './fields.ts';
import { errorCauseFields, intervalOf, networkFields } from './shared-fields.ts';

interface ComparisonRow {
  /** Counted from 0. */
  position: number;
  result: Pick<Result, 'state' | 'looks'>;
  variant: VariantResult;
  comparison: Comparison | undefined;
  /** The comparison if both sides were measured here. */
  measured: Comparison | undefined;
  /** Intervals of the ratio and of CPU time's ratio; undefined after the first round. */
  interval: [number, number] | undefined;
  cpuInterval: [number, number] | undefined;
  /** The reference of the bars: the first row that is published and measured, or else the first measured row. */
  first: VariantResult | undefined;
  foundRate: FoundRate | undefined;
  network: NetworkResult | null;
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

/** A point per row of the table. Only measured variants have measured_rps; a baseline has no ratio. */
export const benchComparison = written<ComparisonRow>()({
  measurement: 'bench_comparison',
  // `metric` is set if the ratio is not of requests/s; `within` (the limit in words) if a load in steps found the requests/s.
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
      found_at_least: ({ foundRate }) => foundRate && Number(foundRate.atLeast),
    },
    'requests/s': {
      published_rps: ({ variant }) => variant.published?.rps,
      // For a load in steps: the rate found.
      measured_rps: ({ variant }) => variant.rps?.median,
      found_low: ({ foundRate }) => foundRate?.ci95?.[0],
      found_high: ({ foundRate }) => foundRate?.ci95?.[1],
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
      verdict: ({ comparison, result }) =>
        comparison && comparison.verdict + marksOf(comparison, result),
      why: ({ comparison, variant }) => comparison?.why ?? variant.publishedOnly,
      looks: ({ result }) => result.looks.join(', '),
      outliers: ({ measured }) => measured?.outliers.join(', '),
      disagreement: ({ measured }) => measured?.disagreement,
      note: ({ variant }) => variant.note,
      // Whether the article counts its difference as an effect: yes or none.
      published_effect: ({ variant }) => variant.published?.effect,
      // Kinds of lines in the server's log, joined by semicolons; client_errors also has how often each was there.
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
