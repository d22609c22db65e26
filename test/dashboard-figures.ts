// The expected rows of the dashboards' tables for a result.
import { curvesOf, foundIn } from '../lib/report/found.ts';
import { tablePoints } from '../lib/features/influxdb/points.ts';
import { parsed } from './fixtures/points.ts';
import type { Phase, Result, VariantResult } from '../lib/result/result.ts';

export type Cell = string | number | null;

/** Rows with these columns from the points of a result, in order. InfluxDB omits rows without any of the fields. */
const rowsOf =
  (measurement: string) =>
  (columns: readonly string[], result: Result): Record<string, Cell>[] =>
    tablePoints(result, curvesOf(result), foundIn(result))
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

export function total(variant: VariantResult, of: (phase: Phase) => number): number {
  return variant.rounds.flatMap((round) => round.phases).reduce((sum, phase) => sum + of(phase), 0);
}
