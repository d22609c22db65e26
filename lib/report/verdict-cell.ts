// A comparison as a cell of a table.
import { delayMark, minimumRounds, notFinalMark } from '../analysis/verdict.ts';
import { times, tolerance } from '../format.ts';
import type { Comparison, Metric, Result, Verdict } from '../result/result.ts';
import { besideVerdicts, metricMark, verdictWord } from './metric-words.ts';
import type { Cell } from './table.ts';

/**
 * Ratio, interval and verdict, or why there is none; then the interval says nothing (of two rounds it may reach into the millions).
 * Where a delay did not hold, or the run ended before its time, the verdict says so and is no longer shown as one on the servers.
 */
export function verdictCell(comparison: Comparison, result: Pick<Result, 'sameWithin' | 'state'>): Exclude<Cell, string> {
  const { metric, ratio, ci95, verdict, why } = comparison;
  const by = metricMark(metric);
  const mark = delayMark(comparison);
  if (verdict === 'none') return { text: `${ratio === 0 ? '–' : `${by}${times(ratio)}`} ${why}${mark}${besideText(comparison, result)}`, part: `${why}${mark}`, verdict };
  const marks = `${mark}${notFinalMark(result)}`;
  const words = `${wordsOf(metric, verdict, result)}${marks}`;
  const shown = marks === '' ? { part: verdictWord(metric, verdict), verdict } : { part: words, verdict: 'inconclusive' as const };
  return { text: `${by}${times(ratio, ci95)} ${words}${besideText(comparison, result)}`, ...shown };
}

function wordsOf(metric: Metric, verdict: Verdict, { sameWithin }: Pick<Result, 'sameWithin'>): string {
  return `${verdictWord(metric, verdict)}${verdict === 'same' ? ` within ${tolerance(sameWithin)}` : ''}`;
}

/** ", p50 ×1.01 [1.00, 1.02] same within 1 %". */
function besideText(comparison: Comparison, result: Pick<Result, 'sameWithin'>): string {
  return besideVerdicts(comparison).map(({ metric, beside: { ratio, ci95, verdict } }) => `, ${metricMark(metric)}${times(ratio, ci95)} ${wordsOf(metric, verdict, result)}`).join('');
}

/** The ratio of CPU time per request, which has no verdict; its interval where there are enough rounds for one. '' without it. */
export function cpuCell({ cpu, roundRatios }: Comparison): string {
  if (cpu === null) return '';
  return roundRatios.length < minimumRounds ? times(cpu.ratio) : times(cpu.ratio, cpu.ci95);
}
