// A comparison as a cell of a table.
import { minimumRounds } from '../analysis/verdict.ts';
import { times, tolerance } from '../format.ts';
import type { Comparison, Result } from '../runner/result.ts';
import type { Cell } from './table.ts';

/** Ratio, interval and verdict, or why there is none; then the interval says nothing (of two rounds it may reach into the millions). */
export function verdictCell({ ratio, ci95, verdict, why }: Comparison, { sameWithin }: Pick<Result, 'sameWithin'>): Exclude<Cell, string> {
  if (verdict === 'none') return { text: `${ratio === 0 ? '–' : times(ratio)} ${why}`, part: why, verdict };
  return { text: `${times(ratio, ci95)} ${verdict}${verdict === 'same' ? ` within ${tolerance(sameWithin)}` : ''}`, part: verdict, verdict };
}

/** The ratio of CPU time per request, which has no verdict; its interval where there are enough rounds for one. '' without it. */
export function cpuCell({ cpu, roundRatios }: Comparison): string {
  if (cpu === null) return '';
  return roundRatios.length < minimumRounds ? times(cpu.ratio) : times(cpu.ratio, cpu.ci95);
}
