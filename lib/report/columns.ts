// The article's table, published beside measured.
import { comparisonOf } from '../analysis/comparisons.ts';
import { responsesOf, succeeded } from '../analysis/phases.ts';
import { rateOf } from '../analysis/rate.ts';
import { total } from '../analysis/statistics.ts';
import { comparable } from '../analysis/verdict.ts';
import { kilobytes, perMillion, perSecond, short, success, times } from '../format.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import type { Published } from '../scenario/model.ts';
import { ladderOf, publishedQuantile } from './bars.ts';
import { foundText } from './curve.ts';
import {
  countCell,
  figure,
  leftColumn,
  rightColumn,
  tableOf,
  type Column,
  type Table,
} from './table.ts';
import { cpuCell, verdictCell } from './verdict-words.ts';

interface Row {
  variant: VariantResult;
  comparison: Comparison | undefined;
}

/** The group of what was measured, beside "published". */
export const here = 'here';

/** One row per variant, in the order of the result. Columns with nothing in them (no published figures, no comparison) are left out. */
export function variantTable(result: Result): Table {
  const rows = result.variants.map((variant): Row => ({
    variant,
    comparison: comparisonOf(result, variant.name),
  }));
  const phases = hasPhases(result);
  const hasCpu = result.variants.some(
    ({ serverCpuMicrosPerRequest }) => serverCpuMicrosPerRequest !== null,
  );
  const withHeaders = comparesProtocols(result);
  const successBeside =
    phases || result.variants.some(({ successRatio }) => (successRatio ?? 1) < 1);
  const successColumn = measuredColumn('success', ({ successRatio }) =>
    figure(successRatio, success),
  );
  return tableOf(rows, [
    leftColumn('variant', ({ variant }) => variant.name),
    // With several load phases published figures are those of one of them, the measured ones here of all.
    ...(phases
      ? []
      : publishedColumns({
          withHeaders,
          withErrors: rows.some(({ variant }) => (variant.published?.errorsPerMillion ?? 0) > 0),
        })),
    measuredColumn('requests/s', (variant) => rateText(variant, result)),
    // Where some fail, or it may differ from phase to phase, it stands beside requests/s on any terminal.
    ...(successBeside ? [successColumn] : []),
    againstColumn(result, rows),
    ...(withHeaders
      ? [measuredColumn('headers kB', ({ traffic }) => figure(traffic?.bytes.headers, kilobytes))]
      : []),
    // A dash for what runs at an address, where others have a figure.
    measuredColumn('CPU µs/req', ({ serverCpuMicrosPerRequest: cpu, server }) =>
      hasCpu && server?.atAddress === true ? '–' : figure(cpu?.median, (value) => value.toFixed(1)),
    ),
    leftColumn(
      'CPU ratio',
      ({ variant, comparison }) => (comparison === undefined ? '' : cpuCell(comparison, variant)),
      { group: here, joined: true },
    ),
    measuredColumn('p50 ms', ({ latencyMs }) => figure(latencyMs?.p50, short)),
    measuredColumn('p99 ms', ({ latencyMs }) => figure(latencyMs?.p99, short), { joined: true }),
    measuredColumn('max ms', ({ latencyMs }) => figure(latencyMs?.max, short), { joined: true }),
    measuredColumn('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion)),
    // None is the rule.
    measuredColumn('hung', (variant) => countCell(total(variant.phases, (phase) => phase.hung)), {
      joined: true,
    }),
    measuredColumn(
      'unsent',
      (variant) => countCell(total(variant.phases, (phase) => phase.unsent)),
      { joined: true },
    ),
    ...(successBeside ? [] : [{ ...successColumn, joined: true as const }]),
  ]);
}

/**
 * The cell of requests/s: the median round's, of a rate that was not reached with "of 300,000", or what a search found. Where most
 * answers were errors, the successful ones "of" all: failing fast is no achievement.
 */
export function rateText(variant: VariantResult, { search }: Pick<Result, 'search'>): string {
  if (variant.server === null) return 'published only';
  const found = search?.found.find((one) => one.variant === variant.name);
  if (found !== undefined) return foundText(found);
  const rate = rateOf(variant);
  const { rps, phases } = variant;
  const share = total(phases, succeeded) / total(phases, responsesOf);
  if (rps !== null && share < 0.5)
    return `${perSecond(rps.median * share)} of ${perSecond(rps.median)}`;
  return (
    figure(variant.rps?.median, perSecond) +
    (rate === null || rate.reached ? '' : ` of ${perSecond(rate.asked)}`)
  );
}

/** Where an article had no errors there is nothing to stand beside. */
function publishedColumns({
  withHeaders,
  withErrors,
}: {
  withHeaders: boolean;
  withErrors: boolean;
}): Column<Row>[] {
  const group = 'published';
  const column = (title: string, cell: (published: Published) => string): Column<Row> =>
    rightColumn(
      title,
      ({ variant: { published } }) => (published === null ? '' : cell(published)),
      { group },
    );
  return [
    column('requests/s', ({ rps }) => figure(rps, perSecond)),
    leftColumn('ratio', ({ comparison }) => figure(comparison?.publishedRatio, times), { group }),
    ...(withHeaders
      ? [column('headers kB', ({ headerBytes }) => figure(headerBytes, kilobytes))]
      : []),
    // Of a histogram it is known between which two latencies they lie.
    column('p50', (published) => publishedQuantile(published, 0.5)),
    column('p99', (published) => publishedQuantile(published, 0.99)),
    ...(withErrors
      ? [column('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion))]
      : []),
  ];
}

function measuredColumn(
  title: string,
  cell: (variant: VariantResult) => string,
  more: { joined?: true } = {},
): Column<Row> {
  return rightColumn(title, ({ variant }) => cell(variant), { group: here, ...more });
}

/** Each row's comparison. The title says with what, or the cell where that is not the same for all. */
function againstColumn(result: Result, rows: readonly Row[]): Column<Row> {
  const [first, ...others] = new Set(rows.flatMap(({ comparison }) => comparison?.baseline ?? []));
  const steps = new Set(ladderOf(result).map(({ step }) => step));
  const isLadder = steps.size > 0;
  const title = isLadder
    ? 'against the row before'
    : others.length === 0
      ? `against ${first}`
      : 'against its baseline';
  return leftColumn(
    title,
    ({ variant, comparison }) => {
      if (!comparable(variant, comparison)) return '';
      const cell = verdictCell(comparison, result);
      const isTold = isLadder ? steps.has(comparison) : others.length === 0;
      return isTold ? cell : { ...cell, text: `${cell.text} (against ${comparison.baseline})` };
    },
    { group: here },
  );
}

/** Header bytes are what differs between protocols: they stand in the article's table where it compares these. */
export function comparesProtocols({ variants }: Result): boolean {
  return new Set(variants.map(({ load }) => load.protocol)).size > 1;
}

/** Whether a round has, or the article had, several load phases. */
export function hasPhases({ variants }: Result): boolean {
  return variants.some(
    ({ phases, published }) => phases.length > 1 || published?.phases !== undefined,
  );
}
