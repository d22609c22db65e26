// The figures of the metrics of comparisons. A new one of servers is an object in lib/result/server-metrics.ts, a percentile of the latency
// a name in lib/scenario/latency-metrics.ts. Another one is an object here, its words (lib/report/metric-words.ts), and its name in the
// format of results (lib/result/result.ts).
import { byName, present, keysOf } from '../present.ts';
import type { BesideRatio, Comparison, Metric, Result, Round } from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';
import { mergedLatency, responsesNeeded, valuesIn } from './latency.ts';
import { roundRps, serverCpuSecondsPerResponse } from './phases.ts';
import { median, total } from './statistics.ts';
import { latencyMetrics, type LatencyMetric } from '../scenario/latency-metrics.ts';

/** What a pair's loads are like. */
interface Loads {
  /** A latency is of a page with several files. */
  ofPages: boolean;
  /** They set requests/s. */
  atRate: boolean;
  /** Both servers used all that they could of their cores. */
  atLimit: boolean;
}

interface MetricFacts {
  lessIsBetter: boolean;
  /** A round's figure; NaN if it is unknown. */
  of: (round: Round) => number;
  /** Responses that a round needs for it. */
  responsesNeeded?: number;
  /** The metric depends on the load's speed, which the generator and other programs can change. */
  isOfSpeed: boolean;
  /** Returns whether it decides on such loads, or has a verdict beside the metric that does. If absent, only users ask for its verdict. */
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

/** In the order in which they are named. */
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

export const metricNames = keysOf(metrics);

export function isLatency(metric: string): metric is LatencyMetric {
  return latencyMetrics.some((name) => name === metric);
}

/** The figures of rounds, in the unit of `of`; null if a round has too few responses for it. NaN: unknown. */
export function figuresPerRound(metric: Metric, rounds: readonly Round[]): number[] | null {
  const { of, responsesNeeded: needed = 0 } = metrics[metric];
  const isEnough = ({ phases }: Round) =>
    needed === 0 || total(phases, ({ latencyMs }) => valuesIn(latencyMs)) >= needed;
  return rounds.every(isEnough) ? rounds.map(of) : null;
}

/** A comparison's ratio by another metric than requests/s; null if it is not known. */
export function besideOf(
  { cpu, latency, ofServer = {} }: Pick<Comparison, 'cpu' | 'latency' | 'ofServer'>,
  metric: Metric,
): BesideRatio | null {
  if (metric === 'rps') return null;
  if (metric === 'cpu') return cpu;
  return isLatency(metric) ? latency[metric] : (ofServer[metric] ?? null);
}

/** The median of the rounds' figures; undefined if a round's is not known. */
export function typicalOf(metric: Metric, rounds: readonly Round[]): number | undefined {
  const figures = figuresPerRound(metric, rounds) ?? [];
  return figures.length > 0 && figures.every(Number.isFinite) ? median(figures) : undefined;
}

/** Like typicalOf, but in the unit of the metric's column. */
export function inColumn(metric: ServerMetric, rounds: readonly Round[]): number | undefined {
  const { perUnit, columnUnit } = factsOf(metric);
  const typical = typicalOf(metric, rounds);
  if (typical === undefined) return undefined;
  return columnUnit === 'bytes' ? Math.round(perUnit * typical) : perUnit * typical;
}

/** The metrics of servers that a run was asked for. */
export function askedOf({
  comparisons,
  alsoAsked = [],
}: Pick<Result, 'comparisons' | 'alsoAsked'>): ServerMetric[] {
  const asked = new Set<Metric>([...comparisons.map(({ metric }) => metric), ...alsoAsked]);
  return serverMetricNames.filter((metric) => asked.has(metric));
}

/** The metrics that judge a pair: the first decides, the others have a verdict beside it. */
export function judgedBy(loads: Loads): readonly [Metric, ...Metric[]] {
  const having = (place: 'first' | 'beside') =>
    metricNames.filter((metric) => metrics[metric].decides?.(loads) === place);
  return [...having('first'), ...having('beside')] as [Metric, ...Metric[]];
}
