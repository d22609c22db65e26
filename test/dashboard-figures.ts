// The rows that the dashboards' tables must have for a result.
import { expect } from 'vitest';
import { tablePoints } from '../lib/store/points.ts';
import { parsed } from './fixtures/points.ts';
import type { Phase, Result, Round, VariantResult } from '../lib/result/result.ts';

export type Cell = string | number | null;

/** Rows of these columns in the points of a result, in their order. InfluxDB has no row without any of the fields. */
function rowsOf(
  measurement: string,
  columns: readonly string[],
  result: Result,
): Record<string, Cell>[] {
  return tablePoints(result)
    .filter((line) => line.startsWith(`${measurement},`))
    .map(parsed)
    .filter(({ fields }) => columns.some((column) => column in fields))
    .map(({ tags, fields }) =>
      Object.fromEntries(columns.map((column) => [column, fields[column] ?? tags[column] ?? null])),
    );
}

/** A row per variant. */
export const expectedRows = (columns: readonly string[], result: Result): Record<string, Cell>[] =>
  rowsOf('bench_comparison', columns, result);

/** A row per variant and load phase. */
export const expectedPhaseRows = (
  columns: readonly string[],
  result: Result,
): Record<string, Cell>[] => rowsOf('bench_phase', columns, result);

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

/** A load phase of a round of a variant. */
interface RoundRow {
  variant: VariantResult;
  round: Round;
  index: number;
  phase: Phase;
}

/** What each column of the table of rounds has to say, from result.json alone. */
const roundFigures: Record<string, (row: RoundRow, result: Result) => Cell | undefined> = {
  round: ({ round }) => String(round.round),
  phase: ({ index }) => String(index + 1),
  variant: ({ variant }) => variant.name,
  measured_rps: ({ phase }) => phase.rps,
  ratio: ({ variant, round, index, phase }, result) => {
    const baseline = result.variants.find(
      ({ name }) => name === comparisonOf(variant, result)?.baseline,
    );
    const other = baseline?.rounds.find((one) => one.round === round.round)?.phases[index];
    return other && answered(phase) / phase.seconds / (answered(other) / other.seconds);
  },
  server_cpu_micros_per_request: ({ phase }) =>
    ((phase.serverCpuSeconds ?? NaN) / answered(phase)) * 1e6,
  // What a link carries to the generator is of its cores as well, of which it has what is left.
  generator_share: ({ variant, phase }, { environment: { generatorCpus } }) => {
    const left =
      generatorCpus.length *
      (1 - ((phase.noise?.generatorStealShare ?? 0) + (phase.noise?.generatorOthersShare ?? 0)));
    return Math.min(
      1,
      Math.max(
        phase.generatorCpuSeconds / (phase.seconds * Math.min(variant.load.threads, left)),
        (phase.generatorCpuSeconds + (phase.network?.linkCpuSeconds.toClient ?? 0)) /
          (phase.seconds * left),
      ),
    );
  },
  server_steal_share: ({ phase }) => phase.noise?.serverStealShare,
  generator_steal_share: ({ phase }) => phase.noise?.generatorStealShare,
  server_others_share: ({ phase }) => phase.noise?.serverOthersShare,
  load_average: ({ phase }) => phase.noise?.loadAverage,
  server_mhz_begin: ({ phase }) => phase.noise?.serverMhz?.[0],
  server_mhz_end: ({ phase }) => phase.noise?.serverMhz?.[1],
};

/** A row per round, variant and load phase, in the order in which they began. */
export function expectedRoundRows(
  columns: readonly string[],
  result: Result,
): Record<string, Cell>[] {
  const rows = result.variants.flatMap((variant) =>
    variant.rounds.flatMap((round) =>
      round.phases.map((phase, index) => ({ variant, round, index, phase })),
    ),
  );
  return rows
    .toSorted((a, b) => a.phase.startedAt.localeCompare(b.phase.startedAt))
    .map((row) => cellsOf(columns, row, result));
}

/** The cells of a row. Of a fraction the last digit is left open: a sum in another order ends with another. */
function cellsOf(columns: readonly string[], row: RoundRow, result: Result): Record<string, Cell> {
  return Object.fromEntries(
    columns.map((column) => {
      const figure = roundFigures[column];
      if (figure === undefined)
        throw new Error(`a panel shows ${column}, which this test cannot check`);
      const cell = figure(row, result) ?? null;
      return [column, Number.isInteger(cell) ? cell : closeTo(cell)];
    }),
  );
}

const closeTo = (cell: Cell): Cell =>
  typeof cell === 'number' ? (expect.closeTo(cell, 9) as Cell) : cell;

/** What the histogram of a variant has to show. */
export function expectedBuckets({ phases, published }: VariantResult): Record<string, Cell>[] {
  const all = (published?.buckets ?? []).reduce((sum, { count }) => sum + count, 0);
  return (phases[0]?.buckets ?? []).map(({ count, share }, index) => {
    const article = published?.buckets?.[index]?.count ?? null;
    return {
      published_count: article,
      published_share: article === null ? null : article / all,
      count,
      share,
    };
  });
}

function comparisonOf(
  variant: VariantResult,
  result: Result,
): Result['comparisons'][number] | undefined {
  return result.comparisons.find((comparison) => comparison.variant === variant.name);
}

/** A figure of all phases of all rounds. */
export function total(variant: VariantResult, of: (phase: Phase) => number): number {
  return variant.rounds.flatMap((round) => round.phases).reduce((sum, phase) => sum + of(phase), 0);
}

function answered({ responses }: Phase): number {
  return Object.values(responses).reduce((sum, count) => sum + count, 0);
}
