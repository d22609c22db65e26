// How far the counts of two sides differ, and how sure that is.
import { extent, mean, studentQuantile, variance } from '../../analysis/statistics.ts';
import { countNames, type Counted, type CountName } from '../../result/counts.ts';

export type CountedSide = Counted['sides'][number];
export type CountDifference = Counted['differences'][number];

/**
 * Per request. Timers, the start of a connection and the like make this much in a pass of thousands of requests, so passes that are this
 * near are alike. Whether a server waits for a request, and needs new memory, depends on the moment.
 */
const grains: Readonly<Record<CountName, number>> = {
  syscalls: 0.01,
  bytes: 0.01,
  segments: 0.01,
  switches: 0.05,
  faults: 0.05,
};
/** Chance that an interval misses the difference: a gate on five counts must not fail by chance. */
const alpha = 0.001;

/** The mean of the passes; NaN if it was not counted. */
export const meanOf = (side: CountedSide, count: CountName): number => mean(side[count] ?? []);

const spreadOf = (passes: readonly number[]): number => {
  const [least, greatest] = extent(passes);
  return greatest - least;
};

/**
 * Returns the difference of the means with its interval: none if the passes of each side are alike, else Student's t with the variance
 * of both sides together. Each side has two passes or more.
 */
export function differenceOf(
  count: CountName,
  passes: readonly number[],
  baseline: readonly number[],
): Pick<CountDifference, 'difference' | 'low' | 'high'> {
  const difference = mean(passes) - mean(baseline);
  const grain = grains[count];
  if (spreadOf(passes) <= grain && spreadOf(baseline) <= grain) {
    const exact = Math.abs(difference) <= 2 * grain ? 0 : difference;
    return { difference: exact, low: exact, high: exact };
  }
  const freedom = [passes.length - 1, baseline.length - 1] as const;
  const df = freedom[0] + freedom[1];
  const pooled = (freedom[0] * variance(passes) + freedom[1] * variance(baseline)) / df;
  const error = Math.sqrt(pooled * (1 / passes.length + 1 / baseline.length));
  const half = studentQuantile(1 - alpha / 2, df) * error + 2 * grain;
  return { difference, low: difference - half, high: difference + half };
}

/** Returns the differences of each side to the first, for each count that both have. */
export function differencesOf([baseline, ...others]: readonly CountedSide[]): CountDifference[] {
  if (baseline === undefined) return [];
  return others.flatMap((side) =>
    countNames.flatMap((count) => {
      const [now, before] = [side[count], baseline[count]];
      if (now === undefined || before === undefined) return [];
      const of = { count, variant: side.variant, baseline: baseline.variant };
      return { ...of, ...differenceOf(count, now, before) };
    }),
  );
}

/** Returns whether the sides differ for sure. */
export const differs = ({ low, high }: Pick<CountDifference, 'low' | 'high'>): boolean =>
  low > 0 || high < 0;
