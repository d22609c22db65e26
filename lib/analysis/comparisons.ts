// Finds variants and comparisons of a result, and its curves: latency by rate, requests/s by streams.
import { median } from './statistics.ts';
import type { Comparison, Result, SearchStep, VariantResult } from '../result/result.ts';
import { isHttp2 } from '../scenario/load.ts';

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

/** The ratio of each round. `apart`: it is an outlier. */
export function roundRatiosOf({ variant, roundRatios, outliers }: Comparison, result: Result) {
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

/** ", not final" for a verdict of an interrupted run, else ''. */
export function notFinalMark({ state }: Pick<Result, 'state'>): string {
  return state === 'partial' ? ', not final' : '';
}

/** What limits a verdict, such as ", delay not held, not final"; else ''. */
export function marksOf(
  { verdict, delayNotHeld }: Comparison,
  result: Pick<Result, 'state'>,
): string {
  const delay = delayNotHeld.length === 0 ? '' : ', delay not held';
  return delay + (verdict === 'none' ? '' : notFinalMark(result));
}

/** In requests/s and milliseconds. `kept`: the step of a search kept its limit. */
export interface CurvePoint {
  rate: number;
  p50: number;
  p99: number;
  kept?: boolean;
}

type Curve = ReturnType<typeof curvesOf>[number];

/** A curve per variant of a search, or per config of a sweep. */
export function curvesOf({ search, variants }: Pick<Result, 'search' | 'variants'>) {
  const names = [...new Set(variants.map(({ name, series }) => series ?? name))];
  return names.flatMap((name) => {
    const points =
      search === undefined ? seriesPoints(variants, name) : searchPoints(search.steps, name);
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

function searchPoints(steps: readonly SearchStep[], name: string): CurvePoint[] {
  const ofVariant = steps.filter(({ variant }) => variant === name);
  return ofVariant.map(({ rate, kept, latencyMs: { p50, p99 } }) => ({ rate, p50, p99, kept }));
}

export type CurveRow = ReturnType<typeof curveRows>[number];

const mostRows = 12;

/**
 * The medians of the points in each range of rates, by name, in ascending rates: each rate of a sweep or a short search, else ranges
 * of equal width in ln. `rate` is the geometric mean of a range's ends.
 */
export function curveRows(curves: readonly Curve[]) {
  const all = curves.flatMap(({ points }) => points);
  const rates = [...new Set(all.map(({ rate }) => rate))].sort((a, b) => a - b);
  const [lowest = 1, highest = 1] = [rates[0], rates.at(-1)];
  const width = Math.log(highest / lowest) / mostRows;
  const isEach = rates.length <= mostRows || all.every(({ kept }) => kept === undefined);
  const rangeOf = (rate: number) =>
    isEach
      ? rates.indexOf(rate)
      : Math.min(mostRows - 1, Math.floor(Math.log(rate / lowest) / width));
  return [...new Set(rates.map(rangeOf))].map((range) => {
    const inRange = rates.filter((rate) => rangeOf(rate) === range);
    const middle = Math.sqrt((inRange[0] as number) * (inRange.at(-1) as number));
    const seen = new Map<string, CurvePoint>();
    for (const { name, points } of curves) {
      const together = points.filter(({ rate }) => rangeOf(rate) === range);
      if (together.length > 0) seen.set(name, typical(middle, together));
    }
    return { rate: middle, seen };
  });
}

function typical(rate: number, points: readonly CurvePoint[]): CurvePoint {
  const point: CurvePoint = {
    rate,
    p50: median(points.map(({ p50 }) => p50)),
    p99: median(points.map(({ p99 }) => p99)),
  };
  const judged = points.flatMap(({ kept }) => kept ?? []);
  if (judged.length > 0) point.kept = judged.filter(Boolean).length * 2 > judged.length;
  return point;
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
