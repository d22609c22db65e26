// The outcomes of searches, and the curves of latency by rate.
import { queueGrows } from '../analysis/limit.ts';
import type { Curve, CurvePoint } from '../analysis/curves.ts';
import { scaledTime } from '../format.ts';
import type { FoundRate, RateStep, Result, VariantResult } from '../result/result.ts';
import type { Within } from '../scenario/model.ts';

/** The rates that a load in steps found. They take the place of the requests/s that were answered. */
export interface FoundRates {
  /** The figure that its comparisons judge: "the highest rate with …". */
  judgedBy: string;
  /** The limit of latency that the rates keep, also in words. */
  limit: Within & { text: string };
  rates: readonly FoundRate[];
  /** Returns a variant's steps. */
  pointsOf(variant: string): CurvePoint[];
  /** Words for the chart of the steps. They stand above it in the terminal, and below its title in report.html. */
  chart: { heading: string; text: string };
}

/** e.g. "p99 within 5 ms". */
export function limitText({ metric, ms }: Within): string {
  return `${metric} within ${scaledTime(ms)}`;
}

/** The rates and steps of a result; undefined without a search. */
export function foundIn({ search }: Pick<Result, 'search'>): FoundRates | undefined {
  if (search === undefined) return undefined;
  const { within, found, steps } = search;
  const text = limitText(within);
  return {
    judgedBy: `the highest rate with ${text}`,
    limit: { ...within, text },
    rates: found,
    pointsOf: (variant) => pointsOf(steps, variant),
    chart: {
      heading: `Latency by rate; bars are ${within.metric}, × where it was above ${scaledTime(within.ms)}, < where the rate was not reached, or requests failed:`,
      text: `Each mark is the ${within.metric} of a step of the search, filled if it kept the rate with ${text}; lines go through the medians of steps at about the same rate.`,
    },
  };
}

function pointsOf(steps: readonly RateStep[], name: string): CurvePoint[] {
  const ofVariant = steps.filter(({ variant }) => variant === name);
  return ofVariant.map(({ rate, kept, latencyMs }) => ({ rate, ...latencyMs, kept }));
}

/** Returns the rate that a search found for a variant. */
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

/** The variants of a config, each at its rate. A queue that grows has a latency for each length of a run. */
function seriesPoints(variants: readonly VariantResult[], name: string): CurvePoint[] {
  return variants.flatMap((variant) => {
    const { series, latencyMs } = variant;
    const { rate } = variant.load;
    if (series !== name || rate === undefined || latencyMs === null) return [];
    if (queueGrows(variant)) return [];
    return { rate, p50: latencyMs.p50, p99: latencyMs.p99 };
  });
}
