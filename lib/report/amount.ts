// The one notation of an effect in words. The plots of a page use it, too.
import { change, percent } from '../format.ts';

/** From this ratio on an effect is given in times, below it in percent. */
const double = 2;

/** Only the end of an interval is more, of rounds that are far apart. */
const most = 1e6;

/**
 * A ratio as an effect: "+8.9 %", and from double on "6 times". `isShare`: as a share of the baseline's, "22 %", as for CPU time.
 * An end of an interval has the notation of the ratio that it belongs to, `as`.
 */
export function amount(ratio: number, isShare = false, as = ratio): string {
  if (ratio > most) return 'over 1,000,000 times';
  if (as >= double) return `${Number(ratio.toPrecision(3)).toLocaleString('en-US')} times`;
  if (!isShare) return change(ratio);
  return Math.abs(as - 1) < 0.1 ? `${Number((100 * ratio).toFixed(1))} %` : percent(ratio);
}
