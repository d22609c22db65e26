// The rows that the dashboards' tables must have for a result.
import { tablePoints } from '../lib/store/points.ts';
import { parsed } from './fixtures/points.ts';
import type { Phase, Result, VariantResult } from '../lib/result/result.ts';

export type Cell = string | number | null;

/** Rows of these columns in the points of a result, in their order. InfluxDB has no row without any of the fields. */
const rowsOf =
  (measurement: string) =>
  (columns: readonly string[], result: Result): Record<string, Cell>[] =>
    tablePoints(result)
      .filter((line) => line.startsWith(`${measurement},`))
      .map(parsed)
      .filter(({ fields }) => columns.some((column) => column in fields))
      .map(({ tags, fields }) =>
        Object.fromEntries(
          columns.map((column) => [column, fields[column] ?? tags[column] ?? null]),
        ),
      );

/** A row per variant. */
export const expectedRows = rowsOf('bench_comparison');
/** A row per variant and load phase. */
export const expectedPhaseRows = rowsOf('bench_phase');

/** What the plot of intervals draws of a run: a row for each variant, from -1 down, and what stands at which ratio in it. */
export function expectedIntervals(result: Result): {
  names: Record<string, Cell>[];
  marks: Record<string, Cell>[];
} {
  const rows = expectedRows(
    ['position', 'variant', 'verdict', 'ci_low', 'ci_high', 'ratio', 'published_ratio'],
    result,
  ).map((row, index): Record<string, Cell> => ({ ...row, one: 1, row: -1 - index }));
  const marks = (
    [
      ['one', 'one'],
      ['ci_low', 'interval'],
      ['ci_high', 'interval'],
      ['ratio', 'measured'],
      ['published_ratio', 'published'],
    ] as const
  ).map(([figure, name]) =>
    rows
      .filter((row) => row[figure] !== null)
      .map(({ variant = null, verdict = null, row = null, [figure]: ratio = null }) => ({
        variant,
        verdict,
        ratio,
        [name]: row,
      })),
  );
  return {
    names: rows.map(({ variant = null, row = null }) => ({ variant, row })),
    marks: marks.flat(),
  };
}

/** A figure of all phases of all rounds. */
export function total(variant: VariantResult, of: (phase: Phase) => number): number {
  return variant.rounds.flatMap((round) => round.phases).reduce((sum, phase) => sum + of(phase), 0);
}
