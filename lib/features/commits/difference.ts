// What the sides of a search differ by: a time, or with --counts a count.
import { isFailing } from '../../analysis/phases.ts';
import { differenceText, effect } from '../../format.ts';
import { verdictWord } from '../../report/metric-words.ts';
import { countNames, type CountName } from '../../result/counts.ts';
import type { Result, Verdict } from '../../result/result.ts';

/** The difference of a side to the first one of its run. */
export interface Difference {
  /** ln(ratio), or how many more per request. */
  size: number;
  /** The least and the greatest that it may be. */
  range: readonly [number, number];
  /** 'none': neither a difference nor that there is none is sure. */
  direction: 'more' | 'less' | 'same' | 'none';
  /** The difference with its interval. */
  text: string;
  /** As a sentence says it: "is −12 % [−14, −10] slower". */
  words: string;
}

/** Returns the difference of a side; undefined if it was not measured. */
export type Reading = (result: Result, side: string) => Difference | undefined;

/** By the metric that the comparison is judged by. */
export const byTime: Reading = ({ comparisons, variants }, side) => {
  const found = comparisons.find(({ variant, ratio }) => variant === side && ratio > 0);
  const measured = variants.find(({ name }) => name === side);
  if (found === undefined || measured === undefined || isFailing(measured)) return undefined;
  const { metric, ratio, ci95, verdict } = found;
  const text = effect(ratio, ci95);
  return {
    size: Math.log(ratio),
    range: [Math.log(ci95[0]), Math.log(ci95[1])],
    direction: directions[verdict],
    text,
    words: `is ${text} ${verdictWord(metric, verdict)}`,
  };
};

const directions: Readonly<Record<Verdict, Difference['direction']>> = {
  faster: 'more',
  slower: 'less',
  same: 'same',
  inconclusive: 'none',
  none: 'none',
};

/** By one count. */
export const byCount =
  (name: CountName): Reading =>
  ({ counts }, side) => {
    const found = counts?.differences.find(
      ({ variant, count }) => variant === side && count === name,
    );
    if (found === undefined) return undefined;
    const { difference, low, high } = found;
    const text = `${differenceText(found)} ${name}`;
    return {
      size: difference,
      range: [low, high],
      direction: directionOf(low, high),
      text,
      words: `has ${text} per request`,
    };
  };

function directionOf(low: number, high: number): Difference['direction'] {
  if (low > 0) return 'more';
  if (high < 0) return 'less';
  return low === high ? 'same' : 'none';
}

/** The first count that surely differs, since the most telling ones come first; undefined if none does. */
export const countThatDiffers = (result: Result, side: string): CountName | undefined =>
  countNames.find((name) => {
    const direction = byCount(name)(result, side)?.direction;
    return direction === 'more' || direction === 'less';
  });
