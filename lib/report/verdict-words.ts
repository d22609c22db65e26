// A comparison in words, and as a cell of a table.
import { hasRatio } from '../analysis/comparisons.ts';
import { amount, effect, short, tolerance } from '../format.ts';
import type { NetworkResult } from '../result/network-use.ts';
import type { BesideRatio, Comparison, Metric, Result, Verdict } from '../result/result.ts';
import type { Cell } from './table.ts';
import { isLatency } from '../analysis/metrics.ts';
import { metricWords, verdictWord } from './metric-words.ts';
import { latencyMetrics, type LatencyMetric } from '../scenario/latency-metrics.ts';

/** ", not final" for a verdict of an interrupted run, else ''. */
export function notFinalMark({ state }: Pick<Result, 'state'>): string {
  return state === 'partial' ? ', not final' : '';
}

/** Returns the limits of a verdict, such as ", delay not held, not final", or ''. */
export function marksOf(
  { verdict, delayNotHeld }: Comparison,
  result: Pick<Result, 'state'>,
): string {
  const delay = delayNotHeld.length === 0 ? '' : ', delay not held';
  return delay + (verdict === 'none' ? '' : notFinalMark(result));
}

/** "held", "not held: p99 +138 ms", or '' without a delay. */
export function delayText({ spec, delayHeld, latenessMs }: NetworkResult): string {
  if (spec.toServer.delayMs === 0 && spec.toClient.delayMs === 0) return '';
  return delayHeld ? 'held' : `not held: p99 +${short(latenessMs.p99)} ms`;
}

/** Returns an effect with its metric: "+33 %", "p99 6 times", "22 % of the CPU", "8.13 times the CPU". */
export function effectText({ metric, ratio }: Pick<Comparison, 'metric' | 'ratio'>): string {
  const { shareOf } = metricWords[metric];
  if (shareOf === undefined) return metricMark(metric) + amount(ratio);
  const text = amount(ratio, true);
  return text.endsWith('%') ? `${text} of ${shareOf}` : `${text} ${shareOf}`;
}

/** The metric before a ratio, "p99 "; '' for requests/s. */
export function metricMark(metric: Metric): string {
  return metric === 'rps' ? '' : `${metricWords[metric].name} `;
}

/** Returns the other percentiles that have a verdict, if the comparison is by latency. */
export function besideVerdicts({
  metric,
  latency,
}: Comparison): (BesideRatio & { metric: LatencyMetric })[] {
  if (!isLatency(metric)) return [];
  return latencyMetrics.flatMap((name) => {
    const beside = latency[name];
    if (name === metric || beside === null || beside.verdict === 'none') return [];
    return [{ metric: name, ...beside }];
  });
}

/** Characters of a reason in a cell: as long as a failed share and a name. */
const longestReason = 40;

/** Returns whether a cell has the reason for a missing verdict; otherwise only the comparison's sentence has it. */
export const fitsCell = (why: string): boolean => why.length <= longestReason;

/** Returns ratio and interval, and the verdict or why there is none. A doubtful verdict has the colour of an inconclusive one. */
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
    // The sentence below the table has it whole.
    const reason = fitsCell(why) ? why : 'no verdict';
    return { text: `${shown} ${reason}${marks}${beside}`, part: reason + marks, verdict };
  }
  const marked = inWords(metric, verdict) + marks;
  const text = `${metricMark(metric)}${effect(ratio, ci95)} ${marked}${beside}`;
  if (marks === '') return { text, part: verdictWord(metric, verdict), verdict };
  return { text, part: marked, verdict: 'inconclusive' };
}
