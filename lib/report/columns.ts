// The article's table, published beside measured.
import { comparisonOf } from '../analysis/comparisons.ts';
import { hungOf } from '../analysis/phases.ts';
import { rateOf } from '../analysis/rate.ts';
import { total } from '../analysis/statistics.ts';
import { comparable } from '../analysis/verdict.ts';
import { kilobytes, perMillion, perSecond, short, success, times } from '../format.ts';
import type { Comparison, Phase, Result, VariantResult } from '../result/result.ts';
import type { Published } from '../scenario/model.ts';
import { foundText } from './curve.ts';
import { publishedQuantile } from './histogram.ts';
import { ladderOf } from './ladder.ts';
import { countCell, figure, tableOf, type Cell, type Column, type Table } from './table.ts';
import { cpuCell, verdictCell } from './verdict-cell.ts';

interface Row { variant: VariantResult; comparison: Comparison | undefined }

/** The group of what was measured, beside "published". */
export const here = 'here';

/** One row per variant, in the order of the result. Columns with nothing in them (no published figures, no comparison) are left out. */
export function variantTable(result: Result): Table {
  const rows = result.variants.map((variant): Row => ({ variant, comparison: comparisonOf(result, variant.name) }));
  const phases = hasPhases(result);
  const hasCpu = result.variants.some(({ serverCpuMicrosPerRequest }) => serverCpuMicrosPerRequest !== null);
  const withHeaders = comparesProtocols(result);
  const against = againstColumn(result, rows);
  const successColumn = measuredColumn('success', ({ successRatio }) => figure(successRatio, success));
  return tableOf(rows, [
    { group: '', title: 'variant', align: 'left', cell: ({ variant }) => variant.name },
    // With several load phases published figures are those of one of them, the measured ones here of all.
    ...(phases ? [] : publishedColumns({ withHeaders, withErrors: rows.some(({ variant }) => (variant.published?.errorsPerMillion ?? 0) > 0) })),
    {
      group: here, title: 'requests/s', align: 'right',
      cell({ variant }) {
        if (variant.server === null) return 'published only';
        const found = result.search?.found.find((one) => one.variant === variant.name);
        return found === undefined ? figure(variant.rps?.median, perSecond) + missedPart(variant) : foundText(found);
      },
    },
    // Where it may differ from phase to phase it stands beside requests/s on any terminal.
    ...(phases ? [successColumn] : []),
    { group: here, title: against.title, align: 'left', cell: against.cell },
    ...(withHeaders ? [measuredColumn('headers kB', ({ traffic }) => figure(traffic?.bytes.headers, kilobytes))] : []),
    // A dash for what runs at an address, where others have a figure.
    measuredColumn('CPU µs/req', ({ serverCpuMicrosPerRequest: cpu, server }) => (
      hasCpu && server?.atAddress === true ? '–' : figure(cpu?.median, (value) => value.toFixed(1))
    )),
    { group: here, title: 'CPU ratio', align: 'left', joined: true, cell: ({ comparison }) => (comparison === undefined ? '' : cpuCell(comparison)) },
    measuredColumn('p50 ms', ({ latencyMs }) => figure(latencyMs?.p50, short)),
    joined(measuredColumn('p99 ms', ({ latencyMs }) => figure(latencyMs?.p99, short))),
    joined(measuredColumn('max ms', ({ latencyMs }) => figure(latencyMs?.max, short))),
    measuredColumn('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion)),
    // None is the rule.
    joined(measuredColumn('hung', ({ rounds }) => countCell(hungOf(phasesOf(rounds))))),
    joined(measuredColumn('unsent', ({ rounds }) => countCell(total(phasesOf(rounds), (phase) => phase.unsent)))),
    ...(phases ? [] : [joined(successColumn)]),
  ]);
}

/** " of 300,000", behind the figure of a rate that was not reached. */
function missedPart(variant: VariantResult): string {
  const rate = rateOf(variant);
  return rate === null || rate.reached ? '' : ` of ${perSecond(rate.asked)}`;
}

function phasesOf(rounds: VariantResult['rounds']): Phase[] {
  return rounds.flatMap(({ phases }) => phases);
}

/** Where an article had no errors there is nothing to stand beside. */
function publishedColumns({ withHeaders, withErrors }: { withHeaders: boolean; withErrors: boolean }): Column<Row>[] {
  const column = (title: string, align: Column<Row>['align'], cell: (published: Published, row: Row) => string): Column<Row> => (
    { group: 'published', title, align, cell: (row) => (row.variant.published === null ? '' : cell(row.variant.published, row)) }
  );
  return [
    column('requests/s', 'right', ({ rps }) => figure(rps, perSecond)),
    column('ratio', 'left', (_, { comparison }) => figure(comparison?.publishedRatio, times)),
    ...(withHeaders ? [column('headers kB', 'right', ({ headerBytes }) => figure(headerBytes, kilobytes))] : []),
    // Of a histogram it is known between which two latencies they lie.
    column('p50', 'right', (published) => publishedQuantile(published, 0.5)),
    column('p99', 'right', (published) => publishedQuantile(published, 0.99)),
    ...(withErrors ? [column('errors/M', 'right', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion))] : []),
  ];
}

function measuredColumn(title: string, cell: (variant: VariantResult) => string): Column<Row> {
  return { group: here, title, align: 'right', cell: ({ variant }) => cell(variant) };
}

function joined(column: Column<Row>): Column<Row> {
  return { ...column, joined: true };
}

/** Each row's comparison. The title says with what, or the cell where that is not the same for all. */
function againstColumn(result: Result, rows: readonly Row[]): Pick<Column<Row>, 'title' | 'cell'> {
  const [first, ...others] = new Set(rows.flatMap(({ comparison }) => comparison?.baseline ?? []));
  const steps = new Set(ladderOf(result).map(({ step }) => step));
  const isLadder = steps.size > 0;
  return {
    title: isLadder ? 'against the row before' : others.length === 0 ? `against ${first}` : 'against its baseline',
    cell({ variant, comparison }): Cell {
      if (!comparable(variant, comparison)) return '';
      const cell = verdictCell(comparison, result);
      const isTold = isLadder ? steps.has(comparison) : others.length === 0;
      return isTold ? cell : { ...cell, text: `${cell.text} (against ${comparison.baseline})` };
    },
  };
}

/** Header bytes are what differs between protocols: they stand in the article's table where it compares these. */
export function comparesProtocols({ variants }: Result): boolean {
  return new Set(variants.map(({ load }) => load.protocol)).size > 1;
}

/** Whether a round has, or the article had, several load phases. */
export function hasPhases({ variants }: Result): boolean {
  return variants.some(({ phases, published }) => phases.length > 1 || published?.phases !== undefined);
}
