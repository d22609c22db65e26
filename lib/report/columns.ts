// The columns of the article's table, published beside measured; the terminal and Markdown write the same ones.
import type { Comparison, Result, VariantResult } from '../runner/result.ts';
import { comparisonText, perMillion, short, success, times, whole } from './format.ts';

export interface Column {
  /** Stands above the titles of neighbouring columns, e.g. "published". */
  group: string;
  title: string;
  align: 'left' | 'right';
  cell(row: Row): string;
}

export interface Row { variant: VariantResult; comparison: Comparison | undefined }

/** One row per variant, in the order of the result. */
export function rowsOf(result: Result): Row[] {
  return result.variants.map((variant) => ({
    variant,
    comparison: result.comparisons.find((one) => one.variant === variant.name),
  }));
}

/** The columns; those with nothing in them (no published figures, no comparison) are left out. */
export function columnsOf(result: Result): Column[] {
  const rows = rowsOf(result);
  const here = 'here';
  const baselines = new Set(result.comparisons.map((comparison) => comparison.baseline));
  const against = baselines.size === 1 ? `against ${[...baselines][0]}` : 'against its baseline';
  const columns: Column[] = [
    { group: '', title: 'variant', align: 'left', cell: ({ variant }) => variant.name },
    { group: 'published', title: 'requests/s', align: 'right', cell: ({ variant }) => (variant.published === null ? '' : whole(variant.published.rps)) },
    {
      group: 'published', title: 'ratio', align: 'left',
      cell: ({ comparison }) => (comparison === undefined || comparison.publishedRatio === null ? '' : times(comparison.publishedRatio)),
    },
    { group: here, title: 'requests/s', align: 'right', cell: ({ variant }) => (variant.rps === null ? 'published only' : whole(variant.rps.median)) },
    { group: here, title: against, align: 'left', cell: ({ comparison }) => (comparison === undefined ? '' : comparisonText(comparison)) },
    { group: here, title: 'CPU µs/req', align: 'right', cell: figure((variant) => variant.serverCpuMicrosPerRequest?.median, (value) => value.toFixed(1)) },
    { group: here, title: 'p50 ms', align: 'right', cell: figure((variant) => variant.latencyMs?.p50, short) },
    { group: here, title: 'p99 ms', align: 'right', cell: figure((variant) => variant.latencyMs?.p99, short) },
    { group: here, title: 'max ms', align: 'right', cell: figure((variant) => variant.latencyMs?.max, short) },
    { group: here, title: 'errors/M', align: 'right', cell: figure((variant) => variant.errorsPerMillion, perMillion) },
    { group: here, title: 'success', align: 'right', cell: figure((variant) => variant.successRatio, success) },
  ];
  return columns.filter((column) => rows.some((row) => column.cell(row) !== ''));
}

function figure(of: (variant: VariantResult) => number | null | undefined, format: (value: number) => string): Column['cell'] {
  return ({ variant }) => {
    const value = of(variant);
    return value === null || value === undefined ? '' : format(value);
  };
}
