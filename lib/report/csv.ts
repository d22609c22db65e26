// A result as CSV for other programs (RFC 4180): a row per variant, units in the titles.
import { comparisonOf, hasRatio } from '../analysis/comparisons.ts';
import { wholeRounds } from '../analysis/phases.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { mergedLatency } from '../analysis/latency.ts';

type Value = string | number | null | undefined;

interface Row {
  result: Result;
  variant: VariantResult;
  comparison: Comparison | undefined;
  /** The comparison, if it has a ratio. */
  measured: Comparison | undefined;
}

/** In this order; new columns go to the end. docs/ci.md explains them. */
const columns: Readonly<Record<string, (row: Row) => Value>> = {
  variant: ({ variant }) => variant.name,
  server: ({ variant }) => variant.server?.name,
  version: ({ variant }) => variant.server?.version,
  load: ({ variant }) => variant.load.command,
  protocol: ({ variant }) => variant.load.protocol,
  rate_asked_per_s: ({ variant }) => exact(variant.load.rate),
  rounds: ({ variant }) => wholeRounds([variant]),
  requests_per_s: ({ variant }) => variant.rps?.median,
  p50_ms: ({ variant }) => variant.latencyMs?.p50,
  p90_ms: ({ variant: { latencyMs, rounds } }) =>
    latencyMs &&
    mergedLatency(rounds.flatMap(({ phases }) => phases.map((one) => one.latencyMs))).p90,
  p99_ms: ({ variant }) => variant.latencyMs?.p99,
  max_ms: ({ variant }) => variant.latencyMs?.max,
  server_cpu_us_per_request: ({ variant }) => variant.serverCpuMicrosPerRequest?.median,
  errors_per_million: ({ variant }) => exact(variant.errorsPerMillion),
  success_ratio: ({ variant }) => exact(variant.successRatio),
  baseline: ({ comparison }) => comparison?.baseline,
  metric: ({ comparison }) => comparison?.metric,
  ratio: ({ measured }) => measured?.ratio,
  ratio_low: ({ measured }) => measured?.ci95[0],
  ratio_high: ({ measured }) => measured?.ci95[1],
  verdict: ({ comparison }) => comparison?.verdict,
  why: ({ comparison }) => comparison?.why,
  cpu_ratio: ({ comparison }) => comparison?.cpu?.ratio,
  cpu_ratio_low: ({ comparison }) => comparison?.cpu?.ci95[0],
  cpu_ratio_high: ({ comparison }) => comparison?.cpu?.ci95[1],
  state: ({ result }) => result.state,
  run: ({ result }) => result.run,
  at_least: ({ result, variant }) =>
    result.search?.found.find((one) => one.variant === variant.name)?.atLeast.toString(),
  delay_not_held: ({ comparison }) => comparison?.delayNotHeld.join(' '),
};

/** A line of titles and a line per variant that ran, each ended by CRLF; unknown figures are empty cells. */
export function csvReport(result: Result): string {
  const rows = result.variants
    .filter(({ rounds }) => rounds.length > 0)
    .map((variant): Row => {
      const comparison = comparisonOf(result, variant.name);
      return {
        result,
        variant,
        comparison,
        measured: comparison !== undefined && hasRatio(comparison) ? comparison : undefined,
      };
    });
  return [
    Object.keys(columns),
    ...rows.map((row) => Object.values(columns).map((valueOf) => valueOf(row))),
  ]
    .map((cells) => `${cells.map(cellOf).join(',')}\r\n`)
    .join('');
}

/** All digits: one failure of ten million would be none in six. */
function exact(value: number | null | undefined): Value {
  return value?.toString();
}

/** Numbers with six digits. */
function cellOf(value: Value): string {
  if (typeof value === 'number') return String(Number(value.toPrecision(6)));
  return /[",\r\n]/.test(value ?? '') ? `"${value?.replaceAll('"', '""')}"` : (value ?? '');
}
