// What a result says of its variants and their comparisons, by their names.
import type { Comparison, Result, VariantResult } from '../result/result.ts';

export function variantOf(
  { variants }: Pick<Result, 'variants'>,
  name: string,
): VariantResult | undefined {
  return variants.find((variant) => variant.name === name);
}

/** That of a variant's row, or with another baseline: further comparisons of a variant stand behind its row's own. */
export function comparisonOf(
  { comparisons }: Pick<Result, 'comparisons'>,
  name: string,
  baseline?: string,
): Comparison | undefined {
  return comparisons.find(
    (one) => one.variant === name && (baseline === undefined || one.baseline === baseline),
  );
}

/** Those of variants that were measured here. */
export function measuredComparisons(
  result: Pick<Result, 'variants' | 'comparisons'>,
): Comparison[] {
  return result.comparisons.filter((one) => comparable(variantOf(result, one.variant), one));
}

/** Whether there is one: a ratio of 0 says that nothing could be compared. */
export function hasRatio({ ratio }: Pick<Comparison, 'ratio'>): boolean {
  return ratio > 0;
}

/** A comparison's ratio in a round; `apart`: it lies far from the others'. */
export interface RoundRatio {
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

/** Whether the comparison is one that was measured here. */
export function comparable(
  variant: VariantResult | undefined,
  comparison: Comparison | undefined,
): comparison is Comparison {
  return comparison !== undefined && variant !== undefined && variant.rounds.length > 0;
}

/** What stands behind a verdict that may be the link's: ", delay not held", or ''. */
export function delayMark({ delayNotHeld }: Pick<Comparison, 'delayNotHeld'>): string {
  return delayNotHeld.length === 0 ? '' : ', delay not held';
}

/** What stands behind a verdict that was made before its time, after which more rounds may take it back: ", not final", or ''. */
export function notFinalMark({ state }: Pick<Result, 'state'>): string {
  return state === 'partial' ? ', not final' : '';
}

/** A verdict with what stands behind it, e.g. "faster, delay not held, not final". */
export function markedVerdict(
  { verdict, delayNotHeld }: Pick<Comparison, 'verdict' | 'delayNotHeld'>,
  result: Pick<Result, 'state'>,
): string {
  return `${verdict}${delayMark({ delayNotHeld })}${verdict === 'none' ? '' : notFinalMark(result)}`;
}
