// A result as a flat table for other programs: RFC 4180, one row per variant, units in the columns' names.
import { comparisonOf, hasRatio, comparable } from '../analysis/comparisons.ts';
import { mergedLatency } from '../analysis/latency.ts';
import { wholeRounds } from '../analysis/phases.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';

type Value = string | number | null | undefined;

interface Row {
  result: Result;
  variant: VariantResult;
  p90: number | null;
  comparison: Comparison | undefined;
}

/** In their order; new ones are added behind the last. docs/ci.md says what they are. */
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
  p90_ms: ({ p90 }) => p90,
  p99_ms: ({ variant }) => variant.latencyMs?.p99,
  max_ms: ({ variant }) => variant.latencyMs?.max,
  server_cpu_us_per_request: ({ variant }) => variant.serverCpuMicrosPerRequest?.median,
  errors_per_million: ({ variant }) => exact(variant.errorsPerMillion),
  success_ratio: ({ variant }) => exact(variant.successRatio),
  baseline: ({ comparison }) => comparison?.baseline,
  metric: ({ comparison }) => comparison?.metric,
  ratio: ({ comparison }) => measured(comparison, ({ ratio }) => ratio),
  ratio_low: ({ comparison }) => measured(comparison, ({ ci95 }) => ci95[0]),
  ratio_high: ({ comparison }) => measured(comparison, ({ ci95 }) => ci95[1]),
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

/** A line of titles and one per variant that was run, each ended by CRLF. A figure that is not there is an empty cell. */
export function csvReport(result: Result): string {
  const rows = result.variants
    .filter(({ rounds }) => rounds.length > 0)
    .map((variant): Row => {
      const found = comparisonOf(result, variant.name);
      const latencies = variant.rounds.flatMap(({ phases }) =>
        phases.map(({ latencyMs }) => latencyMs),
      );
      return {
        result,
        variant,
        p90: variant.latencyMs === null ? null : mergedLatency(latencies).p90,
        comparison: comparable(variant, found) ? found : undefined,
      };
    });
  return [
    Object.keys(columns),
    ...rows.map((row) => Object.values(columns).map((valueOf) => valueOf(row))),
  ]
    .map((cells) => `${cells.map(cellOf).join(',')}\r\n`)
    .join('');
}

function measured(
  comparison: Comparison | undefined,
  valueOf: (comparison: Comparison) => number,
): Value {
  return comparison === undefined || !hasRatio(comparison) ? null : valueOf(comparison);
}

/** What was asked for and what was counted: one failure of ten million is none in six digits. */
function exact(value: number | null | undefined): Value {
  return value?.toString();
}

/** No figure that was measured is known to more than six digits. */
function cellOf(value: Value): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(Number(value.toPrecision(6)));
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
