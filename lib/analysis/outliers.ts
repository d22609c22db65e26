// Rounds whose ratio lies far from the others'. They are shown and count like all others, but for one that is measured again.
import type { Comparison, Verdict } from '../result/result.ts';
import { mean, median, studentQuantile, variance } from './statistics.ts';

/** With fewer rounds there are no others to be far from. */
const fewestRounds = 4;

/**
 * 5 on the modified z-score 0.6745 · (x − median) / MAD of Iglewicz & Hoaglin, How to Detect and Handle Outliers (1993). Their
 * 3.5 would find some in 10 to 15 of 100 undisturbed comparisons of so few rounds; 5 does in 1 to 8.
 */
const farMads = 5 / 0.6745;

/**
 * The MAD of few values is too small on average: Croux & Rousseeuw, Time-Efficient Algorithms for Two Highly Robust
 * Estimators of Scale (COMPSTAT 1992), give these factors for 4 to 9 values, and n / (n − 0.8) for more.
 */
const fewValues = [1.363, 1.206, 1.2, 1.14, 1.129, 1.107];

/** Nearer than 1 % no round is worth a word, however close together the others are: also when they are all the same. */
const worthAWord = Math.log(1.01);

/** Indexes of the values that lie apart from the others; none of fewer than four. @param logs ln(variant / baseline) per round */
export function outliersOf(logs: readonly number[]): number[] {
  const n = logs.length;
  if (n < fewestRounds) return [];
  const middle = median(logs);
  const mad =
    median(logs.map((d) => Math.abs(d - middle))) * (fewValues[n - fewestRounds] ?? n / (n - 0.8));
  const far = Math.max(farMads * mad, worthAWord);
  return [...logs.keys()].filter((round) => Math.abs((logs[round] as number) - middle) > far);
}

/**
 * The only outlier of a comparison, if it alone decides or prevents a verdict, and the verdict `without` it; null otherwise, and
 * where too few rounds would be left. @param verdictOf what some of the rounds say
 */
export function swayingRound(
  logs: readonly number[],
  verdictOf: (logs: readonly number[]) => Verdict,
): { index: number; without: Verdict } | null {
  const [index, ...others] = outliersOf(logs);
  if (index === undefined || others.length > 0 || logs.length === fewestRounds) return null;
  const without = verdictOf(logs.toSpliced(index, 1));
  return (verdictOf(logs) === 'inconclusive') === (without === 'inconclusive')
    ? null
    : { index, without };
}

/** The chance that undisturbed rounds have one so far from the others that it is measured again. More would add to false verdicts. */
const falseRepeats = 0.001;

/** The round to measure again once all rounds are over, and why; undefined in most runs. The rule: docs/verdicts.md, "Outliers". */
export function roundToRepeat(
  comparisons: readonly Comparison[],
): { round: number; why: string } | undefined {
  const judged = comparisons.filter(({ verdict }) => verdict !== 'none');
  for (const { variant, baseline, verdict, swayedBy, roundRatios } of judged) {
    if (swayedBy === null) continue;
    const { round, without } = swayedBy;
    const pair = `${variant} against ${baseline}`;
    if (verdict !== 'inconclusive') return { round, why: `an outlier, it alone decided ${pair}` };
    if (
      without !== 'same' &&
      hidesDifference(roundRatios.map(Math.log), falseRepeats / judged.length)
    )
      return { round, why: `an outlier, it alone prevented a verdict on ${pair}` };
  }
  return undefined;
}

/** Whether the only outlier of these has not changed the direction, and is beyond the limit of Grubbs, Procedures for Detecting Outlying Observations in Samples (Technometrics 11, 1969). */
function hidesDifference(logs: readonly number[], alpha: number): boolean {
  const [index] = outliersOf(logs) as [number];
  const others = logs.toSpliced(index, 1);
  const n = others.length;
  const limit =
    studentQuantile(1 - alpha / 2 / logs.length, n - 1) * Math.sqrt(variance(others) * (1 + 1 / n));
  return mean(logs) * mean(others) > 0 && Math.abs((logs[index] as number) - mean(others)) > limit;
}
