// Rounds whose ratio lies far from the others'. They are shown and count like all others.
import { median } from './statistics.ts';

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
const fewValues = [1.363, 1.206, 1.200, 1.140, 1.129, 1.107];

/** Nearer than 1 % no round is worth a word, however close together the others are: also when they are all the same. */
const worthAWord = Math.log(1.01);

/**
 * Indexes of the values that lie apart from the others; none of fewer than four.
 * @param logs ln(variant / baseline) per round
 */
export function outliersOf(logs: readonly number[]): number[] {
  const n = logs.length;
  if (n < fewestRounds) return [];
  const middle = median(logs);
  const mad = median(logs.map((d) => Math.abs(d - middle))) * (fewValues[n - fewestRounds] ?? n / (n - 0.8));
  const far = Math.max(farMads * mad, worthAWord);
  return [...logs.keys()].filter((round) => Math.abs(logs[round] as number - middle) > far);
}
