// A comparison in words, and as a cell of a table.
import { hasRatio, delayMark, notFinalMark } from '../analysis/comparisons.ts';
import { minimumRounds } from '../analysis/verdict.ts';
import { change, percent, times, tolerance } from '../format.ts';
import type {
  BesideRatio,
  Comparison,
  LatencyMetric,
  Metric,
  Result,
  Verdict,
} from '../result/result.ts';
import type { Cell } from './table.ts';
import { isLatency, latencyMetrics, metricNames } from '../analysis/latency.ts';

/** "+8.9 %", and from 2 on "6 times"; with `isShare` "22 %". The end of an interval is written `as` its ratio. */
export function amount(ratio: number, isShare = false, as = ratio): string {
  // The end of an interval of scattered rounds.
  if (ratio > 1e6) return 'over 1,000,000 times';
  if (as >= 2) return `${Number(ratio.toPrecision(3)).toLocaleString('en-US')} times`;
  if (!isShare) return change(ratio);
  return Math.abs(as - 1) < 0.1 ? `${Number((100 * ratio).toFixed(1))} %` : percent(ratio);
}

/** An effect with its metric: "+33 %", "p99 6 times", "22 % of the CPU", "8.13 times the CPU". */
export function effectText({ metric, ratio }: Pick<Comparison, 'metric' | 'ratio'>): string {
  if (metric !== 'cpu') return metricMark(metric) + amount(ratio);
  const text = amount(ratio, true);
  return `${text}${text.endsWith('%') ? ' of' : ''} the CPU`;
}

/** The metric before a ratio, "p99 "; '' for requests/s. */
export function metricMark(metric: Metric): string {
  return metric === 'rps' ? '' : `${metricNames[metric]} `;
}

/** The verdict in words; for CPU time "cheaper" and "costlier". */
export function verdictWord(metric: Metric, verdict: Verdict): string {
  if (metric !== 'cpu') return verdict;
  return verdict === 'faster' ? 'cheaper' : verdict === 'slower' ? 'costlier' : verdict;
}

/** The other percentiles that have a verdict, if the comparison is by latency. */
export function besideVerdicts({
  metric,
  latency,
}: Comparison): (BesideRatio & { metric: LatencyMetric })[] {
  if (!isLatency(metric)) return [];
  return latencyMetrics.flatMap((one) => {
    const beside = latency[one];
    return one === metric || beside === null || beside.verdict === 'none'
      ? []
      : [{ metric: one, ...beside }];
  });
}

/** Ratio and interval, and the verdict or why there is none. A marked verdict has the colour of inconclusive. */
export function verdictCell(
  comparison: Comparison,
  result: Pick<Result, 'sameWithin' | 'state'>,
): Exclude<Cell, string> {
  const { metric, ratio, ci95, verdict, why } = comparison;
  const delay = delayMark(comparison);
  const notFinal = notFinalMark(result);
  const inWords = (of: Metric, word: Verdict): string =>
    `${verdictWord(of, word)}${word === 'same' ? ` within ${tolerance(result.sameWithin)}` : ''}`;
  const beside = besideVerdicts(comparison)
    .map(
      (one) =>
        `, ${metricMark(one.metric)}${times(one.ratio, one.ci95)} ${inWords(one.metric, one.verdict)}${notFinal}`,
    )
    .join('');
  if (verdict === 'none') {
    const shown = hasRatio(comparison) ? `${metricMark(metric)}${times(ratio)}` : '–';
    return { text: `${shown} ${why}${delay}${beside}`, part: `${why}${delay}`, verdict };
  }
  const marks = `${delay}${notFinal}`;
  const words = `${inWords(metric, verdict)}${marks}`;
  const text = `${metricMark(metric)}${times(ratio, ci95)} ${words}${beside}`;
  return marks === ''
    ? { text, part: verdictWord(metric, verdict), verdict }
    : { text, part: words, verdict: 'inconclusive' };
}

/** The ratio of CPU time per request, with its interval from minimumRounds on; '' if unknown. */
export function cpuCell(cpu: Comparison['cpu'], rounds: number): string {
  return cpu === null ? '' : times(cpu.ratio, rounds < minimumRounds ? undefined : cpu.ci95);
}
