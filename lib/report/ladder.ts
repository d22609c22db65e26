// A ladder: rows that build on each other, each compared with the row before it.
import { comparisonOf } from '../analysis/comparisons.ts';
import { comparable } from '../analysis/verdict.ts';
import { bar, perSecond, times } from '../format.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { figure, tableOf, type Part } from './table.ts';
import { verdictCell } from './verdict-cell.ts';

const barWidth = 24;

/** From this many steps on it is a ladder. */
const fewestSteps = 3;

/** A rung, with its comparison with the one before it; null where a flight of steps begins. */
interface Rung { variant: VariantResult; step: Comparison | null }

/** The rows of a result that are the start or the end of a step, in the table's order; none where there are too few steps. */
export function ladderOf({ variants, comparisons }: Pick<Result, 'variants' | 'comparisons'>): Rung[] {
  const rungs = variants.map((variant, index): Rung => ({
    variant,
    step: index === 0 ? null : comparisonOf({ comparisons }, variant.name, (variants[index - 1] as VariantResult).name) ?? null,
  }));
  // Of a sweep with two variants each other row is compared with the one before it, and none of it is a step.
  if (rungs.filter(({ step }) => step !== null).length < fewestSteps || variants.some(({ series }) => series !== undefined)) return [];
  return rungs.filter(({ step }, index) => step !== null || (rungs[index + 1]?.step ?? null) !== null);
}

/** Bars of requests/s, step by step, with the effect of each step, published beside measured. */
export function ladderPart(result: Result): Part[] {
  const rungs = ladderOf(result);
  const highest = Math.max(0, ...rungs.map(({ variant }) => variant.rps?.median ?? 0));
  if (highest === 0) return [];
  const table = tableOf(rungs, [
    { group: '', title: 'step', align: 'left', cell: ({ variant }) => variant.name },
    { group: '', title: 'requests/s', align: 'right', cell: ({ variant: { rps, server } }) => (server === null ? 'published only' : figure(rps?.median, perSecond)) },
    { group: '', title: '', align: 'left', joined: true, cell: ({ variant: { rps } }) => bar((rps?.median ?? 0) / highest, barWidth) },
    { group: '', title: 'effect of the step', align: 'left', cell: ({ variant, step }) => (step !== null && comparable(variant, step) ? verdictCell(step, result) : '') },
    { group: '', title: 'published', align: 'left', joined: true, cell: ({ step }) => figure(step?.publishedRatio, times) },
  ]);
  return [{ title: 'Step by step, each against the row before it:', tables: [table], below: [] }];
}
