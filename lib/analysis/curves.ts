// Latency by rate: the points of curves.
import { median, extent } from './statistics.ts';

/** A point in requests/s and milliseconds. `p90`: known only for steps. `kept`: the step of a load in steps kept its limit. */
export interface CurvePoint {
  rate: number;
  p50: number;
  p90?: number;
  p99: number;
  kept?: boolean;
}

export interface Curve {
  name: string;
  points: CurvePoint[];
}

export type CurveRow = ReturnType<typeof curveRows>[number];

const mostRows = 12;

/**
 * The medians of the points in each range of rates, by name, in ascending rates: each rate of a sweep or of few steps, else ranges
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
    const [least, most] = extent(rates.filter((rate) => rangeOf(rate) === range));
    const middle = Math.sqrt(least * most);
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
  const p90s = points.flatMap(({ p90 }) => p90 ?? []);
  if (p90s.length > 0) point.p90 = median(p90s);
  const judged = points.flatMap(({ kept }) => kept ?? []);
  if (judged.length > 0) point.kept = judged.filter(Boolean).length * 2 > judged.length;
  return point;
}
