// What two variants can be compared by: the figure of each round, and which way is better.
import type { LatencyMetric, Metric, Round } from '../result/result.ts';
import { mergedLatency, valuesIn } from './merged.ts';
import { total } from './statistics.ts';

export const latencyMetrics: readonly LatencyMetric[] = ['p50', 'p90', 'p99'];
export const metrics: readonly Metric[] = ['rps', 'cpu', ...latencyMetrics];

/** As they stand beside a figure. */
export const metricNames: Readonly<Record<Metric, string>> = {
  rps: 'requests/s',
  cpu: 'CPU per request',
  p50: 'p50',
  p90: 'p90',
  p99: 'p99',
};

/** So many responses a round has to have for that percentile: with fewer than 10 beyond it, it is a matter of chance. */
export const responsesNeeded: Readonly<Record<LatencyMetric, number>> = {
  p50: 20,
  p90: 100,
  p99: 1000,
};

/** In milliseconds, of all phases of each round; null where a round has too few responses for it. */
export function percentilePerRound(
  rounds: readonly Round[],
  metric: LatencyMetric,
): number[] | null {
  const figures = rounds.flatMap(({ phases }) => {
    const parts = phases.map(({ latencyMs }) => latencyMs);
    return total(parts, valuesIn) < responsesNeeded[metric] ? [] : [mergedLatency(parts)[metric]];
  });
  return figures.length < rounds.length ? null : figures;
}

/** Of times less is better. */
export function lessIsBetter(metric: Metric): boolean {
  return metric !== 'rps';
}

export function isLatency(metric: string): metric is LatencyMetric {
  return latencyMetrics.some((one) => one === metric);
}
