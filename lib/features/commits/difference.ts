// What the sides of a search differ by: a time, or with --counts a count.
import { effect, hundredths } from '../../format.ts';
import { verdictWord } from '../../report/metric-words.ts';
import { countNames, type CountName } from '../../result/counts.ts';
import type { Result, Verdict } from '../../result/result.ts';

/** Of a side to the first one of its run. */
export interface Difference {
  /** ln(ratio), or how many more per request. */
  size: number;
  /** The least and the greatest that it may be. */
  range: readonly [number, number];
  /** Undefined: without a verdict; 0: there may be no difference. */
  direction: -1 | 0 | 1 | undefined;
  /** With its interval. */
  text: string;
  /** As a sentence says it: "is −12 % [−14, −10] slower". */
  words: string;
}

/** Returns the difference of a side; undefined if it was not measured. */
export type Reading = (result: Result, side: string) => Difference | undefined;

/** By the metric that the comparison is judged by. */
export const byTime: Reading = ({ comparisons }, side) => {
  const found = comparisons.find(({ variant, ratio }) => variant === side && ratio > 0);
  if (found === undefined) return undefined;
  const { metric, ratio, ci95, verdict } = found;
  const text = effect(ratio, ci95);
  return {
    size: Math.log(ratio),
    range: [Math.log(ci95[0]), Math.log(ci95[1])],
    direction: directionOf(verdict),
    text,
    words: `is ${text} ${verdictWord(metric, verdict)}`,
  };
};

function directionOf(verdict: Verdict): Difference['direction'] {
  if (verdict === 'none') return undefined;
  if (verdict === 'faster') return 1;
  return verdict === 'slower' ? -1 : 0;
}

/** By one count. */
export const byCount =
  (name: CountName): Reading =>
  ({ counts }, side) => {
    const found = counts?.differences.find(
      ({ variant, count }) => variant === side && count === name,
    );
    if (found === undefined) return undefined;
    const { difference, low, high } = found;
    const ends = low === high ? '' : ` [${signed(low)}, ${signed(high)}]`;
    const text = `${signed(difference)}${ends} ${name}`;
    return {
      size: difference,
      range: [low, high],
      direction: signOf(low, high),
      text,
      words: `has ${text} per request`,
    };
  };

function signOf(low: number, high: number): -1 | 0 | 1 {
  if (low > 0) return 1;
  return high < 0 ? -1 : 0;
}

/** The first count that surely differs, since the most telling ones come first; undefined if none does. */
export const countThatDiffers = (result: Result, side: string): CountName | undefined =>
  countNames.find((name) => byCount(name)(result, side)?.direction);

function signed(value: number): string {
  if (Math.abs(value) < 0.005) return '0';
  const shown = hundredths(Math.abs(value)).replace(/\.?0+$/, '');
  return `${value < 0 ? '−' : '+'}${shown}`;
}
