// Percentiles at the border between fast and slow responses, where chance decides which of the two a round shows.
import { variantOf } from '../analysis/comparisons.ts';
import { shareAbove } from '../analysis/latency.ts';
import { figuresPerRound, isLatency } from '../analysis/metrics.ts';
import { phasesIn } from '../analysis/phases.ts';
import { extent } from '../analysis/statistics.ts';
import { percent, scaledTime } from '../format.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { metricWords } from './metric-words.ts';
import type { LatencyMetric } from '../scenario/latency-metrics.ts';

/** From the quickest to the slowest round. */
const leastLeap = 10;

/** The shares of slow responses, for comparisons that a leap of the percentile leaves open. */
export function tailLines(result: Result): string[] {
  return result.comparisons.flatMap((comparison) => tailLine(comparison, result) ?? []);
}

function tailLine(
  { metric, verdict, variant, baseline }: Comparison,
  result: Result,
): string | undefined {
  if (!isLatency(metric) || verdict !== 'inconclusive') return undefined;
  const sides = [baseline, variant].map((name) => variantOf(result, name) as VariantResult);
  const [low, high] = extent(sides.flatMap(({ rounds }) => figuresPerRound(metric, rounds) ?? []));
  if (high < leastLeap * low) return undefined;
  const betweenMs = Math.sqrt(low * high);
  const [base, other] = sides.map(({ name, rounds }) => {
    const parts = phasesIn(rounds).map(({ latencyMs }) => latencyMs);
    return `${percent(shareAbove(parts, betweenMs))} of ${name}'s`;
  });
  return `${leapText(metric, low, high)}: more than ${scaledTime(betweenMs)} took ${base} responses, and ${other}.`;
}

const leapText = (metric: LatencyMetric, low: number, high: number): string =>
  `By round ${metricWords[metric].name} leaps between ${scaledTime(low)} and ${scaledTime(high)}, so its ratio is chance`;
