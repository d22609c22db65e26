// The points that bakeoff writes to InfluxDB for each round: samples of its servers, and a wide point per phase.
import { hasRatio } from '../../analysis/comparisons.ts';
import {
  headerSavingsPercent,
  responsesOf,
  serverCpuSecondsPerResponse,
  successRatioOf,
  type PerRequest,
} from '../../analysis/phases.ts';
import type { NetworkResult } from '../../result/network-use.ts';
import type { Comparison, Phase } from '../../result/result.ts';
import { factsOf, serverColumns, type ServerFigures } from '../../result/server-metrics.ts';
import { written, type Field } from './fields.ts';
import { asShare, errorCauseFields, intervalOf, networkFields } from './shared-fields.ts';

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

/** A phase of a round, with the figures of the round's server. The comparison is added later, when it is known. */
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
      resumed_per_request: perRequest('resumed'),
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
