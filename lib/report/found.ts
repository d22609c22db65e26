// Asks the features what a load in steps found, and makes the curves of a result.
import type { Curve, CurvePoint } from '../analysis/curves.ts';
import type { FoundRates } from '../feature.ts';
import { features } from '../features.ts';
import { firstOf } from '../present.ts';
import type { FoundRate, Result, VariantResult } from '../result/result.ts';

/** What a load in steps found; undefined for other loads. */
export function foundIn(result: Result): FoundRates | undefined {
  return firstOf(features, (feature) => feature.found?.(result));
}

/** Returns the rate that a search found for a variant. The result has it even if the feature that searches is left out of the program. */
export function foundRateOf({ search }: Result, variant: string): FoundRate | undefined {
  return search?.found.find((foundRate) => foundRate.variant === variant);
}

/** A curve per variant of a load in steps, or per config of a sweep. */
export function curvesOf(result: Result): Curve[] {
  const { variants } = result;
  const rates = foundIn(result);
  const names = [...new Set(variants.map(({ name, series }) => series ?? name))];
  return names.flatMap((name) => {
    const points = rates === undefined ? seriesPoints(variants, name) : rates.pointsOf(name);
    return points.length === 0 ? [] : [{ name, points: points.sort((a, b) => a.rate - b.rate) }];
  });
}

/** The variants of a config, each at its rate. */
function seriesPoints(variants: readonly VariantResult[], name: string): CurvePoint[] {
  return variants.flatMap(({ series, load: { rate }, latencyMs }) => {
    if (series !== name || rate === undefined || latencyMs === null) return [];
    return { rate, p50: latencyMs.p50, p99: latencyMs.p99 };
  });
}
