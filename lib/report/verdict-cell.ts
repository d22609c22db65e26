// A comparison as a cell of a table.
import { delayMark, minimumRounds, notFinalMark } from '../analysis/verdict.ts';
import { times, tolerance } from '../format.ts';
import type { Comparison, Result } from '../runner/result.ts';
import type { Cell } from './table.ts';

/**
 * Ratio, interval and verdict, or why there is none; then the interval says nothing (of two rounds it may reach into the millions).
 * Where a delay did not hold, or the run ended before its time, the verdict says so and is no longer shown as one on the servers.
 */
export function verdictCell(comparison: Comparison, result: Pick<Result, 'sameWithin' | 'state'>): Exclude<Cell, string> {
  const { ratio, ci95, verdict, why } = comparison;
  const mark = delayMark(comparison);
  if (verdict === 'none') return { text: `${ratio === 0 ? '–' : times(ratio)} ${why}${mark}`, part: `${why}${mark}`, verdict };
  const marks = `${mark}${notFinalMark(result)}`;
  const words = `${verdict}${verdict === 'same' ? ` within ${tolerance(result.sameWithin)}` : ''}${marks}`;
  const shown = marks === '' ? { part: verdict, verdict } : { part: words, verdict: 'inconclusive' as const };
  return { text: `${times(ratio, ci95)} ${words}`, ...shown };
}

/** The ratio of CPU time per request, which has no verdict; its interval where there are enough rounds for one. '' without it. */
export function cpuCell({ cpu, roundRatios }: Comparison): string {
  if (cpu === null) return '';
  return roundRatios.length < minimumRounds ? times(cpu.ratio) : times(cpu.ratio, cpu.ci95);
}
