// The metrics of comparisons in words; those of servers have theirs in lib/result/server-metrics.ts.
import { responsesNeeded } from '../analysis/latency.ts';
import { perSecond, short, whole } from '../format.ts';
import { byName } from '../present.ts';
import type { Metric, Verdict } from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetricFacts } from '../result/server-metrics.ts';
import { latencyMetrics, type LatencyMetric } from '../scenario/latency-metrics.ts';

interface MetricWords extends Pick<
  ServerMetricFacts,
  'name' | 'axis' | 'text' | 'verdicts' | 'ends' | 'missing'
> {
  /** An effect is told as a share of this: "22 % of the CPU". */
  shareOf?: string;
  /** What it is of a server, if it is known only of those that bakeoff starts. */
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
