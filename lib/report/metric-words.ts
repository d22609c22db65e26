// What a comparison is by, and its verdict, in words.
import { isLatency, latencyMetrics, metricName } from '../analysis/metric.ts';
import type { Comparison, LatencyMetric, Metric, Verdict } from '../result/result.ts';

/** What stands before a ratio: nothing before one of requests/s, which is the rule. */
export function metricMark(metric: Metric): string {
  return metric === 'rps' ? '' : `${metricName(metric)} `;
}

/** Less CPU time is not faster. */
export function verdictWord(metric: Metric, verdict: Verdict): string {
  return metric !== 'cpu' ? verdict : { faster: 'cheaper', slower: 'dearer', same: 'same', inconclusive: 'inconclusive', none: 'none' }[verdict];
}

/** Further percentiles of the latency that have a verdict of their own. */
export function besideVerdicts({ metric, latency }: Pick<Comparison, 'metric' | 'latency'>): { metric: LatencyMetric; beside: NonNullable<Comparison['latency'][LatencyMetric]> }[] {
  if (!isLatency(metric)) return [];
  return latencyMetrics.flatMap((one) => {
    const beside = latency[one];
    return one === metric || beside === null || beside.verdict === 'none' ? [] : [{ metric: one, beside }];
  });
}
