// A comparison in words, and as a cell of a table.
import { hasRatio, marksOf, notFinalMark } from '../analysis/comparisons.ts';
import { amount, effect, tolerance } from '../format.ts';
import type {
  BesideRatio,
  Comparison,
  LatencyMetric,
  Metric,
  Result,
  Verdict,
} from '../result/result.ts';
import type { Cell } from './table.ts';
import { isLatency, latencyMetrics, metrics, verdictWord } from '../analysis/metrics.ts';

/** An effect with its metric: "+33 %", "p99 6 times", "22 % of the CPU", "8.13 times the CPU". */
export function effectText({ metric, ratio }: Pick<Comparison, 'metric' | 'ratio'>): string {
  const { shareOf } = metrics[metric];
  if (shareOf === undefined) return metricMark(metric) + amount(ratio);
  const text = amount(ratio, true);
  return text.endsWith('%') ? `${text} of ${shareOf}` : `${text} ${shareOf}`;
}

/** The metric before a ratio, "p99 "; '' for requests/s. */
export function metricMark(metric: Metric): string {
  return metric === 'rps' ? '' : `${metrics[metric].name} `;
}

/** The other percentiles that have a verdict, if the comparison is by latency. */
export function besideVerdicts({
  metric,
  latency,
}: Comparison): (BesideRatio & { metric: LatencyMetric })[] {
  if (!isLatency(metric)) return [];
  return latencyMetrics.flatMap((one) => {
    const beside = latency[one];
    if (one === metric || beside === null || beside.verdict === 'none') return [];
    return [{ metric: one, ...beside }];
  });
}

/** Ratio and interval, and the verdict or why there is none. A marked verdict has the colour of inconclusive. */
export function verdictCell(
  comparison: Comparison,
  result: Pick<Result, 'sameWithin' | 'state'>,
): Exclude<Cell, string> {
  const { metric, ratio, ci95, verdict, why } = comparison;
  const marks = marksOf(comparison, result);
  const inWords = (of: Metric, word: Verdict) => {
    const within = word === 'same' ? ` within ${tolerance(result.sameWithin)}` : '';
    return verdictWord(of, word) + within;
  };
  let beside = '';
  for (const other of besideVerdicts(comparison)) {
    const effectOf = metricMark(other.metric) + effect(other.ratio, other.ci95);
    beside += `, ${effectOf} ${inWords(other.metric, other.verdict)}${notFinalMark(result)}`;
  }
  if (verdict === 'none') {
    const shown = hasRatio(comparison) ? `${metricMark(metric)}${effect(ratio)}` : '–';
    return { text: `${shown} ${why}${marks}${beside}`, part: why + marks, verdict };
  }
  const marked = inWords(metric, verdict) + marks;
  const text = `${metricMark(metric)}${effect(ratio, ci95)} ${marked}${beside}`;
  if (marks === '') return { text, part: verdictWord(metric, verdict), verdict };
  return { text, part: marked, verdict: 'inconclusive' };
}
