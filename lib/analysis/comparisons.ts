// Finds variants and comparisons of a result, and its curve of requests/s by streams.
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { isHttp2 } from '../scenario/load.ts';

export function variantOf(
  { variants }: { variants: readonly VariantResult[] },
  name: string,
): VariantResult | undefined {
  return variants.find((variant) => variant.name === name);
}

/** The comparison of a variant's row, or with the given baseline. */
export function comparisonOf(
  { comparisons }: Pick<Result, 'comparisons'>,
  name: string,
  baseline?: string,
): Comparison | undefined {
  return comparisons.find(
    (comparison) =>
      comparison.variant === name && (baseline === undefined || comparison.baseline === baseline),
  );
}

/** The comparisons whose variant was run. */
export function measuredComparisons<Compared extends Pick<Comparison, 'variant'>>(
  result: Pick<Result, 'variants'> & { comparisons: readonly Compared[] },
): Compared[] {
  return result.comparisons.filter((comparison) =>
    comparable(variantOf(result, comparison.variant), comparison),
  );
}

export function judgedOf<Judged extends Pick<Comparison, 'verdict'>>(
  all: readonly Judged[],
): Judged[] {
  return all.filter(({ verdict }) => verdict !== 'none');
}

/** The variants of a comparison: the baseline first. */
export function sidesOf(
  { variant, baseline }: Pick<Comparison, 'variant' | 'baseline'>,
  { variants }: { variants: readonly VariantResult[] },
): VariantResult[] {
  return [baseline, variant].flatMap((name) => variantOf({ variants }, name) ?? []);
}

/** A ratio of 0 means that nothing could be compared. */
export function hasRatio({ ratio }: Pick<Comparison, 'ratio'>): boolean {
  return ratio > 0;
}

/** The ratio of each round. `apart`: it is an outlier. */
export function roundRatiosOf({ variant, roundRatios, outliers }: Comparison, result: Result) {
  return roundRatios.map((ratio, index) => {
    const round = variantOf(result, variant)?.rounds[index]?.round ?? index + 1;
    return { round, ratio, apart: outliers.includes(round) };
  });
}

export function comparable<Compared>(
  variant: VariantResult | undefined,
  comparison: Compared | undefined,
): comparison is Compared {
  return comparison !== undefined && variant !== undefined && variant.rounds.length > 0;
}

const fewestPoints = 3;

/** A variant, its requests/s, the ratio to HTTP/1.1's, and the comparison with it. */
export interface Point {
  variant: VariantResult;
  rps: number;
  ratio: number;
  comparison?: Comparison | undefined;
}

export type StreamSweep = NonNullable<ReturnType<typeof streamSweep>>;

export function streamsOf({ load }: VariantResult): number {
  return load.streams ?? 1;
}

/** HTTP/1.1, and HTTP/2 with several numbers of streams, most first; undefined if there is none, or nothing was answered over HTTP/1.1. */
export function streamSweep(result: Result) {
  const measured = result.variants.flatMap((variant) =>
    variant.rps === null ? [] : [{ variant, rps: variant.rps.median }],
  );
  const http1 = measured.find(({ variant }) => variant.load.protocol.startsWith('http/'));
  const http2 = measured.filter(({ variant }) => isHttp2(variant.load.protocol));
  if (
    result.comparisons.some(({ metric }) => metric !== 'rps') ||
    http1 === undefined ||
    http1.rps === 0 ||
    new Set(http2.map(({ variant }) => streamsOf(variant))).size < fewestPoints
  )
    return undefined;
  const curve = http2.map(({ variant, rps }): Point => {
    const comparison = comparisonOf(result, variant.name, http1.variant.name);
    return { variant, rps, ratio: comparison?.ratio || rps / http1.rps, comparison };
  });
  return {
    line: { ...http1, ratio: 1 },
    curve: curve.sort((a, b) => streamsOf(b.variant) - streamsOf(a.variant)),
  };
}
