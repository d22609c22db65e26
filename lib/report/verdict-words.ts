// The one notation of an effect in words. The plots of a page use it, too.
import { hasRatio, delayMark, notFinalMark } from '../analysis/comparisons.ts';
import { isLatency, latencyMetrics, metricNames } from '../analysis/latency.ts';
import { minimumRounds } from '../analysis/verdict.ts';
import { change, percent, times, tolerance } from '../format.ts';
import type { Cell } from './table.ts';
import type {
  BesideRatio,
  Comparison,
  LatencyMetric,
  Metric,
  Result,
  VariantResult,
  Verdict,
} from '../result/result.ts';

/** From this ratio on an effect is given in times, below it in percent. */
const double = 2;

/** Only the end of an interval is more, of rounds that are far apart. */
const most = 1e6;

/**
 * A ratio as an effect: "+8.9 %", and from double on "6 times". `isShare`: as a share of the baseline's, "22 %", as for CPU time.
 * An end of an interval has the notation of the ratio that it belongs to, `as`.
 */
export function amount(ratio: number, isShare = false, as = ratio): string {
  if (ratio > most) return 'over 1,000,000 times';
  if (as >= double) return `${Number(ratio.toPrecision(3)).toLocaleString('en-US')} times`;
  if (!isShare) return change(ratio);
  return Math.abs(as - 1) < 0.1 ? `${Number((100 * ratio).toFixed(1))} %` : percent(ratio);
}

// A comparison in words, and as a cell of a table.

/** An effect with what it is of: "+33 %", "p99 6 times", "22 % of the CPU", "8.13 times the CPU". */
export function effectText({ metric, ratio }: Pick<Comparison, 'metric' | 'ratio'>): string {
  const text = amount(ratio, metric === 'cpu');
  return metric === 'cpu'
    ? `${text}${text.endsWith('%') ? ' of' : ''} the CPU`
    : `${metricMark(metric)}${text}`;
}

/** What stands before a ratio: nothing before one of requests/s, which is the rule. */
export function metricMark(metric: Metric): string {
  return metric === 'rps' ? '' : `${metricNames[metric]} `;
}

/** Less CPU time is not faster. */
export function verdictWord(metric: Metric, verdict: Verdict): string {
  return metric !== 'cpu'
    ? verdict
    : {
        faster: 'cheaper',
        slower: 'dearer',
        same: 'same',
        inconclusive: 'inconclusive',
        none: 'none',
      }[verdict];
}

/** Further percentiles of the latency that have a verdict of their own. */
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

/**
 * Ratio, interval and verdict, or why there is none; then the interval says nothing (of two rounds it may reach into the millions).
 * Where a delay did not hold, or the run ended before its time, the verdict says so and is no longer shown as one on the servers.
 */
export function verdictCell(
  comparison: Comparison,
  result: Pick<Result, 'sameWithin' | 'state'>,
): Exclude<Cell, string> {
  const { metric, ratio, ci95, verdict, why } = comparison;
  const by = metricMark(metric);
  const mark = delayMark(comparison);
  if (verdict === 'none')
    return {
      text: `${hasRatio(comparison) ? `${by}${times(ratio)}` : '–'} ${why}${mark}${besideText(comparison, result)}`,
      part: `${why}${mark}`,
      verdict,
    };
  const marks = `${mark}${notFinalMark(result)}`;
  const words = `${wordsOf(metric, verdict, result)}${marks}`;
  const shown =
    marks === ''
      ? { part: verdictWord(metric, verdict), verdict }
      : { part: words, verdict: 'inconclusive' as const };
  return { text: `${by}${times(ratio, ci95)} ${words}${besideText(comparison, result)}`, ...shown };
}

function wordsOf(
  metric: Metric,
  verdict: Verdict,
  { sameWithin }: Pick<Result, 'sameWithin'>,
): string {
  return `${verdictWord(metric, verdict)}${verdict === 'same' ? ` within ${tolerance(sameWithin)}` : ''}`;
}

/** ", p50 ×1.01 [1.00, 1.02] same within 1 %". */
function besideText(comparison: Comparison, result: Pick<Result, 'sameWithin' | 'state'>): string {
  return besideVerdicts(comparison)
    .map(
      ({ metric, ratio, ci95, verdict }) =>
        `, ${metricMark(metric)}${times(ratio, ci95)} ${wordsOf(metric, verdict, result)}${notFinalMark(result)}`,
    )
    .join('');
}

/** The ratio of CPU time per request, which has no verdict; its interval where there are enough rounds for one. '' without it. */
export function cpuCell({ cpu }: Comparison, { rounds }: Pick<VariantResult, 'rounds'>): string {
  if (cpu === null) return '';
  return rounds.length < minimumRounds ? times(cpu.ratio) : times(cpu.ratio, cpu.ci95);
}
