// Figures as a person reads them. One unit per column; the unit stands in the heading, not here.
import type { Comparison } from '../runner/result.ts';

/** 60411.8 is "60,412". */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Times: as many decimals as matter, at most two: 0.43, 8.4, 206. */
export function short(value: number): string {
  return value.toFixed(value < 0.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** ×1.33; with the interval: ×1.33 [1.31, 1.35]. */
export function times(ratio: number, interval?: readonly [number, number]): string {
  return `×${ratio.toFixed(2)}${interval === undefined ? '' : ` [${interval[0].toFixed(2)}, ${interval[1].toFixed(2)}]`}`;
}

/** The change that a ratio means: 1.33 is "+33 %", 0.998 is "−0.2 %". Below 10 % with one decimal. */
export function change(ratio: number): string {
  const percent = (ratio - 1) * 100;
  const size = Math.abs(percent).toFixed(Math.abs(percent) < 9.95 ? 1 : 0);
  return `${Number(size) === 0 ? '±' : percent < 0 ? '−' : '+'}${size.replace(/\.0$/, '')} %`;
}

/** Errors per million; a few that round to none are not none. */
export function perMillion(value: number): string {
  return value > 0 && value < 1 ? '<1' : whole(value);
}

/** A share of one as percent. Rounded down, so that "100 %" means all. */
export function success(ratio: number): string {
  return ratio === 1 ? '100 %' : `${(Math.floor(ratio * 10_000) / 100).toFixed(2)} %`;
}

/** A share of one as percent, below 10 % with one decimal. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** 140 is "2 min 20 s". */
export function duration(seconds: number): string {
  const rounded = Math.max(1, Math.round(seconds));
  const minutes = Math.floor(rounded / 60);
  const rest = rounded % 60;
  return [minutes > 0 ? `${minutes} min` : '', rest > 0 ? `${rest} s` : ''].filter((part) => part !== '').join(' ');
}

/** The comparison's cell: ratio, interval and verdict, or why there is none. */
export function comparisonText(comparison: Comparison): string {
  const { ratio, ci95, verdict, why } = comparison;
  if (ratio === 0) return `– ${why}`;
  const hasInterval = ci95[0] !== ci95[1];
  return `${times(ratio, hasInterval ? ci95 : undefined)} ${verdict === 'none' ? why : verdict}`;
}
