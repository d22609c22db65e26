// The metrics of comparisons. A new one of servers is an object in lib/result/server-metrics.ts, a percentile a name in lib/scenario, another
// one an object here, its words (lib/report/metric-words.ts) and its name in lib/result/result.ts.
import { byName, present } from '../present.ts';
import type { BesideRatio, Comparison, Metric, Result, Round } from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';
import { mergedLatency, responsesNeeded, valuesIn } from './latency.ts';
import { roundRps, serverCpuSecondsPerResponse } from './phases.ts';
import { median, total } from './statistics.ts';
import { latencyMetrics, type LatencyMetric } from '../scenario/latency-metrics.ts';

interface Loads {
  /** Latencies are of pages with several files. */
  ofPages: boolean;
  atRate: boolean;
  /** Both servers used all that they could. */
  atLimit: boolean;
}

interface MetricFacts {
  lessIsBetter: boolean;
  /** NaN if unknown. */
  of: (round: Round) => number;
  /** A round needs so many. */
  responsesNeeded?: number;
  /** The generator and other programs can change it. */
  isOfSpeed: boolean;
  /** Its part on such loads; absent: only if asked for. */
  decides?: (loads: Loads) => 'first' | 'beside' | undefined;
}

const percentileDecides: Readonly<Partial<Record<LatencyMetric, MetricFacts['decides']>>> = {
  p50: ({ ofPages, atRate }) => {
    if (ofPages) return 'first';
    return atRate ? 'beside' : undefined;
  },
  p99: ({ ofPages, atRate }) => (!ofPages && atRate ? 'first' : undefined),
};

function percentile(metric: LatencyMetric): MetricFacts {
  return {
    lessIsBetter: true,
    of: ({ phases }) => mergedLatency(phases.map(({ latencyMs }) => latencyMs))[metric],
    responsesNeeded: responsesNeeded[metric],
    isOfSpeed: true,
    ...present({ decides: percentileDecides[metric] }),
  };
}

function ofServer(metric: ServerMetric): MetricFacts {
  const { field, perUnit } = factsOf(metric);
  return {
    lessIsBetter: true,
    of: ({ [field]: figure = NaN }) => figure / perUnit,
    isOfSpeed: false,
  };
}

/** In the order of naming. */
export const metrics: Readonly<Record<Metric, MetricFacts>> = {
  rps: {
    lessIsBetter: false,
    of: ({ phases }) => roundRps(phases),
    isOfSpeed: true,
    decides: ({ ofPages, atRate }) => (ofPages || atRate ? undefined : 'first'),
  },
  cpu: {
    lessIsBetter: true,
    of: ({ phases }) => 1e6 * serverCpuSecondsPerResponse(phases),
    isOfSpeed: false,
    // At its limit a server has the requests/s that its CPU time per request allows.
    decides: ({ ofPages, atRate, atLimit }) =>
      !ofPages && !atRate && atLimit ? 'beside' : undefined,
  },
  ...byName(latencyMetrics, percentile),
  ...byName(serverMetricNames, ofServer),
};

export const metricNames = Object.keys(metrics) as Metric[];

export function isLatency(metric: string): metric is LatencyMetric {
  return latencyMetrics.some((name) => name === metric);
}

/** In the unit of `of`, NaN: unknown; null if a round has too few responses. */
export function figuresPerRound(metric: Metric, rounds: readonly Round[]): number[] | null {
  const { of, responsesNeeded: needed = 0 } = metrics[metric];
  const isEnough = ({ phases }: Round) =>
    needed === 0 || total(phases, ({ latencyMs }) => valuesIn(latencyMs)) >= needed;
  return rounds.every(isEnough) ? rounds.map(of) : null;
}

/** null if unknown. */
export function besideOf(
  { cpu, latency, ofServer = {} }: Pick<Comparison, 'cpu' | 'latency' | 'ofServer'>,
  metric: Metric,
): BesideRatio | null {
  if (metric === 'rps') return null;
  if (metric === 'cpu') return cpu;
  return isLatency(metric) ? latency[metric] : (ofServer[metric] ?? null);
}

/** undefined if unknown in a round. */
export function typicalOf(metric: Metric, rounds: readonly Round[]): number | undefined {
  const figures = figuresPerRound(metric, rounds) ?? [];
  return figures.length > 0 && figures.every(Number.isFinite) ? median(figures) : undefined;
}

export function inColumn(metric: ServerMetric, rounds: readonly Round[]): number | undefined {
  const { perUnit, columnUnit } = factsOf(metric);
  const typical = typicalOf(metric, rounds);
  if (typical === undefined) return undefined;
  return columnUnit === 'bytes' ? Math.round(perUnit * typical) : perUnit * typical;
}

export function askedOf({
  comparisons,
  alsoAsked = [],
}: Pick<Result, 'comparisons' | 'alsoAsked'>): ServerMetric[] {
  const asked = new Set<Metric>([...comparisons.map(({ metric }) => metric), ...alsoAsked]);
  return serverMetricNames.filter((metric) => asked.has(metric));
}

/** The first decides, the others have a verdict beside it. */
export function judgedBy(loads: Loads): readonly [Metric, ...Metric[]] {
  const having = (place: 'first' | 'beside') =>
    metricNames.filter((metric) => metrics[metric].decides?.(loads) === place);
  return [...having('first'), ...having('beside')] as [Metric, ...Metric[]];
}
