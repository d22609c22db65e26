// The names of metrics in sentences (those of server metrics are in lib/result/server-metrics.ts), and the main metric by round.
import { responsesNeeded } from '../analysis/latency.ts';
import { perSecond, short, whole } from '../format.ts';
import { byName } from '../present.ts';
import type { Metric, Result, Verdict } from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetricFacts } from '../result/server-metrics.ts';
import { latencyMetrics, type LatencyMetric } from '../scenario/latency-metrics.ts';
import { metrics } from '../analysis/metrics.ts';
import { isFailing } from '../analysis/phases.ts';

interface MetricWords extends Pick<
  ServerMetricFacts,
  'name' | 'axis' | 'text' | 'verdicts' | 'ends' | 'missing'
> {
  /** An effect is told as a share of this: "22 % of the CPU". */
  shareOf?: string;
  /** Its name in messages, if it is known only for servers that bakeoff starts. */
  ofProcesses?: string;
}

const speed: Pick<MetricWords, 'verdicts' | 'ends'> = {
  verdicts: { faster: 'faster', slower: 'slower', same: 'as fast' },
  ends: ['slower', 'faster'],
};

function percentile(metric: LatencyMetric): MetricWords {
  return {
    ...speed,
    name: metric,
    axis: `${metric}, ms`,
    text: short,
    missing: `${metric} needs ${whole(responsesNeeded[metric])} responses in each round: give it a longer --duration`,
  };
}

export const metricWords: Readonly<Record<Metric, MetricWords>> = {
  rps: {
    ...speed,
    name: 'requests/s',
    axis: 'requests/s',
    text: perSecond,
    missing: 'nothing was answered in a whole round',
  },
  cpu: {
    name: 'CPU per request',
    axis: 'CPU µs per request',
    text: short,
    verdicts: { faster: 'cheaper', slower: 'costlier', same: 'as cheap' },
    ends: ['more CPU', 'less CPU'],
    shareOf: 'the CPU',
    missing: 'no CPU time was measured in a whole round',
    ofProcesses: 'CPU time',
  },
  ...byName(latencyMetrics, percentile),
  ...byName(serverMetricNames, factsOf),
};

/** The verdict in words; for CPU time "cheaper" and "costlier". */
export function verdictWord(metric: Metric, verdict: Verdict): string {
  if (verdict === 'faster' || verdict === 'slower') return metricWords[metric].verdicts[verdict];
  return verdict;
}

/**
 * Returns the axis of a run's main metric, how its values are printed, and a point for each round of each variant whose requests
 * succeed.
 */
export function pointsByRound(result: Result) {
  const metric = result.comparisons[0]?.metric ?? 'rps';
  const { of } = metrics[metric];
  const { axis, text } = metricWords[metric];
  const points = [];
  for (const { name, rounds, successRatio } of result.variants) {
    if (isFailing({ successRatio })) continue;
    for (const round of rounds) {
      const value = of(round);
      if (Number.isFinite(value)) points.push({ name, round: round.round, value });
    }
  }
  return { axis, text, points };
}
