// How much of one variant's effect another one has alone.
import type { Share } from '../result/result.ts';
import { mean } from './statistics.ts';
import { studentQuantile } from './student.ts';
import { minimumRounds } from './verdict.ts';

/**
 * mean ln(variant / baseline) / mean ln(of / baseline), with Fieller's interval of a quotient of means (E. C. Fieller,
 * Some problems in interval estimation, J. R. Stat. Soc. B 16, 1954, 175–185): all θ for which the mean over rounds of
 * ln(variant / baseline) − θ · ln(of / baseline) may be 0 by Student's t. It is null with fewer rounds than a verdict needs
 * and where it has no end, since `of` may be without an effect. Returns null when a round has no requests/s, or `of` no effect.
 * @param baseline requests/s per round; of the others in the same order
 * @param alpha the chance that the interval misses; it is no verdict, so only the looks divide it
 */
export function effectShare(baseline: readonly number[], variant: readonly number[], of: readonly number[], alpha: number): Pick<Share, 'share' | 'ci95'> | null {
  const n = baseline.length;
  const part = baseline.map((rps, round) => Math.log((variant[round] as number) / rps));
  const whole = baseline.map((rps, round) => Math.log((of[round] as number) / rps));
  const [meanPart, meanWhole] = [mean(part), mean(whole)];
  const share = meanPart / meanWhole;
  if (!Number.isFinite(share)) return null;
  if (n < minimumRounds) return { share, ci95: null };
  // t² times the variances of the means and their covariance.
  const tSquared = studentQuantile(1 - alpha / 2, n - 1) ** 2;
  const [parts, wholes] = [part.map((d) => d - meanPart), whole.map((d) => d - meanWhole)];
  const spread = (x: readonly number[], y: readonly number[]): number => (tSquared * mean(x.map((d, round) => d * (y[round] as number)))) / (n - 1);
  // a θ² − 2 b θ + c ≤ 0
  const a = meanWhole ** 2 - spread(wholes, wholes);
  const b = meanPart * meanWhole - spread(parts, wholes);
  const c = meanPart ** 2 - spread(parts, parts);
  if (a <= 0) return { share, ci95: null };
  const root = Math.sqrt(Math.max(0, b ** 2 - a * c));
  return { share, ci95: [(b - root) / a, (b + root) / a] };
}
