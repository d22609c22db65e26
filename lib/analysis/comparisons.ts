// Variants and comparisons of a result by their names, and the marks of verdicts.
import type { Comparison, Result, VariantResult } from '../result/result.ts';

export function variantOf(
  { variants }: Pick<Result, 'variants'>,
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
    (one) => one.variant === name && (baseline === undefined || one.baseline === baseline),
  );
}

export function measuredComparisons(
  result: Pick<Result, 'variants' | 'comparisons'>,
): Comparison[] {
  return result.comparisons.filter((one) => comparable(variantOf(result, one.variant), one));
}

/** A ratio of 0 means that nothing could be compared. */
export function hasRatio({ ratio }: Pick<Comparison, 'ratio'>): boolean {
  return ratio > 0;
}

/** The ratio of a round. `apart`: it is an outlier. */
interface RoundRatio {
  round: number;
  ratio: number;
  apart: boolean;
}

export function roundRatiosOf(
  { variant, roundRatios, outliers }: Comparison,
  result: Pick<Result, 'variants'>,
): RoundRatio[] {
  return roundRatios.map((ratio, index) => {
    const round = variantOf(result, variant)?.rounds[index]?.round ?? index + 1;
    return { round, ratio, apart: outliers.includes(round) };
  });
}

export function comparable(
  variant: VariantResult | undefined,
  comparison: Comparison | undefined,
): comparison is Comparison {
  return comparison !== undefined && variant !== undefined && variant.rounds.length > 0;
}

/** ", delay not held" for a verdict that may be due to the link, else ''. */
export function delayMark({ delayNotHeld }: Pick<Comparison, 'delayNotHeld'>): string {
  return delayNotHeld.length === 0 ? '' : ', delay not held';
}

/** ", not final" for a verdict of an interrupted run, else ''. */
export function notFinalMark({ state }: Pick<Result, 'state'>): string {
  return state === 'partial' ? ', not final' : '';
}

/** A verdict with its marks, such as "faster, delay not held, not final". */
export function markedVerdict(
  { verdict, delayNotHeld }: Pick<Comparison, 'verdict' | 'delayNotHeld'>,
  result: Pick<Result, 'state'>,
): string {
  return `${verdict}${delayMark({ delayNotHeld })}${verdict === 'none' ? '' : notFinalMark(result)}`;
}
