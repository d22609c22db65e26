// Percentiles of the latency that a limit and a comparison can be about. A new one is a name here. Scripts of k6 load this file too.
export const latencyMetrics = ['p50', 'p90', 'p99'] as const;
export type LatencyMetric = (typeof latencyMetrics)[number];
