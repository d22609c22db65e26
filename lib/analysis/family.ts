// The verdicts of a run, made together: all comparisons that are judged in it are one family.
import type { Verdict } from '../result/result.ts';
import { exponential, meanInterval, type Interval, type RatioInterval } from './statistics.ts';

/** A verdict and the interval that it is read from. */
export interface Judged { interval: RatioInterval['interval']; verdict: Exclude<Verdict, 'none'> }

/**
 * Judges all comparisons of a family so that in at most a share `alpha` of runs any verdict is false: `faster` or `slower`
 * where the ratio is 1, or `same` where it is not within the tolerance. Only one of these two can be false of a comparison.
 *
 * Holm, A Simple Sequentially Rejective Multiple Test Procedure (Scand. J. Stat. 6, 1979), holds the k-th lowest p of m against
 * α / (m − k + 1) and ends with the first that is above: those before it were told from 1 rightly, or it is too late already,
 * so that no more than m − k + 1 ratios are 1. Here these k − 1, told from 1 rightly, may have been called `same` wrongly instead,
 * and steps that forget it err in 7 % of runs where 5 % are allowed (test/unit/simulation.test.ts). So `same` is always read from the
 * interval at α / m, which lies wholly below or above a ratio in α / 2m of runs; k − 1 of them take (k − 1) · α / 2m of α,
 * and the m − k + 1 others share the rest: the k-th is held against (α/m + α/(m − k + 1)) / 2, half Bonferroni's, half Holm's.
 *
 * An interval is that at α / m, so that all of these hold together, or where the narrower one of its place decides between
 * faster and slower, that one. It agrees with its verdict: told from 1 at a level is that the interval of this level leaves
 * out 1 (Student's t is the same in both), and where the order ended all those at α / m include 1, since it is the lower level.
 * The wrong side of a ratio near 1 is a false verdict, too; with independent comparisons Holm's steps hold for these as well
 * (Shaffer, Control of Directional Errors with Stagewise Multiple Test Procedures, Ann. Stat. 8, 1980).
 * @param family of each comparison ln(variant / baseline) per round, at least two, the same number for all
 * @param alpha of the whole family at one look
 */
export function judgeFamily(family: readonly (readonly number[])[], alpha: number, sameWithin: number): Judged[] {
  const m = family.length;
  const all = family.map((logs) => meanInterval(logs, alpha / m));
  const intervals = [...all];
  // With as many rounds each, p falls with the distance from 0 in standard errors, which is this up to a factor.
  const distance = ({ middle, half }: Interval): number => (middle === 0 ? 0 : Math.abs(middle) / half);
  const order = [...all.keys()].sort((a, b) => distance(all[b] as Interval) - distance(all[a] as Interval));
  for (const [place, index] of order.entries()) {
    const narrower = meanInterval(family[index] as readonly number[], (alpha / m + alpha / (m - place)) / 2);
    if (Math.abs(narrower.middle) <= narrower.half) break;
    if (verdictOf(exponential(narrower), sameWithin) !== 'same') intervals[index] = narrower;
  }
  return intervals.map((one) => ({ interval: exponential(one), verdict: verdictOf(exponential(one), sameWithin) }));
}

/**
 * What an interval of the ratio says. `same` lies wholly between 1 / (1 + sameWithin) and 1 + sameWithin, so that it does not
 * matter which of the two is the baseline; it goes before faster and slower, since a difference that nobody would notice is none.
 */
export function verdictOf([low, high]: RatioInterval['interval'], sameWithin: number): Judged['verdict'] {
  if (low >= 1 / (1 + sameWithin) && high <= 1 + sameWithin) return 'same';
  if (low > 1) return 'faster';
  return high < 1 ? 'slower' : 'inconclusive';
}
