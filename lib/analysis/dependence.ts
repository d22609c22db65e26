// Whether rounds depend on each other, which Student's t takes them not to do. The formulas: docs/verdicts.md, "What has to hold".
import { mean, studentQuantile, total } from './statistics.ts';

/** The chance that any comparison of a run whose rounds are independent gets a note. */
export const falseNotes = 0.02;

/** The same, of going on to the next look of --precision: that costs rounds, and no verdict. */
export const falseHolds = 0.1;

/** Where rounds scatter by less, however they depend on each other is of no matter. */
const leastScatter = 0.001;

/** `drift`: the ratio moved by this factor from the first round to the last. `echo`: rounds resemble the one before, by this correlation. */
export type Dependence = { kind: 'drift'; ratio: number } | { kind: 'echo'; correlation: number };

/**
 * Tests for a drift and for rounds that resemble the one before, with half of `alpha` each. Rounds unlike it only widen the interval.
 * @param logs ln(variant / baseline) per round, in the order in which they were run
 * @param alpha the chance to find something in independent rounds
 */
export function dependenceOf(logs: readonly number[], alpha: number): Dependence | null {
  const n = logs.length;
  const middle = mean(logs);
  const squares = total(logs, (log) => (log - middle) ** 2);
  if (n < 4 || squares < n * leastScatter ** 2) return null;
  const timeSquares = (n ** 3 - n) / 12;
  const slope =
    logs.reduce((sum, log, round) => sum + (log - middle) * (round - (n - 1) / 2), 0) / timeSquares;
  if (isBeyond(Math.abs(slope) * Math.sqrt(timeSquares / squares), n - 2, alpha / 4))
    return { kind: 'drift', ratio: Math.exp(slope * (n - 1)) };
  const steps = logs
    .slice(1)
    .reduce((sum, log, before) => sum + (log - (logs[before] as number)) ** 2, 0);
  const correlation = 1 - steps / (2 * squares);
  return isBeyond(correlation, Math.floor((n ** 2 - n + 1) / (n - 2)), alpha / 2)
    ? { kind: 'echo', correlation }
    : null;
}

/** Whether a correlation with so many degrees of freedom is above what chance exceeds with probability p. */
function isBeyond(correlation: number, degrees: number, p: number): boolean {
  return (
    correlation * Math.sqrt(degrees / Math.max(0, 1 - correlation ** 2)) >
    studentQuantile(1 - p, degrees)
  );
}
