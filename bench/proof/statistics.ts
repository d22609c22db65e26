// Summary statistics of the proof, in addition to the runner's statistics.
import {
  geometricMean,
  halfWidth,
  minimumRounds,
  ratioInterval,
  total,
  type RatioInterval,
} from '../../lib/analysis/statistics.ts';
import type { LatencyRound, Percentiles, Run, TimedRound } from './results.ts';

/** Geometric mean with a 95 % interval (Student's t on logarithms). @param ratios at least one, each above 0 */
export function ratioOf(ratios: readonly number[]): RatioInterval {
  return ratioInterval(
    ratios.map(() => 1),
    ratios,
  );
}

/** Half-width of a run's interval. */
export function halfWidthOf({ ratio, ci95 }: Pick<Run, 'ratio' | 'ci95'>): number {
  return halfWidth({ ratio, interval: ci95 });
}

/** Whether a run's verdict is that the sides differ. */
export function isDifferent({ verdict }: Pick<Run, 'verdict'>): boolean {
  return verdict === 'faster' || verdict === 'slower';
}

export const percentiles = ['p50', 'p99'] as const satisfies readonly (keyof Percentiles)[];

/** Geometric mean over the sides, in milliseconds. @param sides at least one, each above 0 */
export function latencyOf(sides: readonly Percentiles[], name: keyof Percentiles): number {
  return geometricMean(sides.map((side) => side[name]));
}

/** Ratio of the latency in turns to the latency alone. */
export function inTurnsByAlone({ alone, inTurns }: LatencyRound, name: keyof Percentiles): number {
  return latencyOf(inTurns, name) / latencyOf(alone, name);
}

/** A half-width and the wall time in seconds until it was reached. */
export interface Width {
  seconds: number;
  width: number;
}

/** The half-width after each round, from the first round that allows a verdict. */
export function widthsByTime(rounds: readonly TimedRound[]): Width[] {
  return rounds.flatMap((_, index) => {
    const soFar = rounds.slice(0, index + 1);
    return soFar.length < minimumRounds
      ? []
      : [
          {
            seconds: total(soFar, ({ seconds }) => seconds),
            width: halfWidth(ratioOf(soFar.map(({ ratio }) => ratio))),
          },
        ];
  });
}

/** The last width within that time; undefined if there is none yet. @param widths in order of time */
export function widthWithin(widths: readonly Width[], seconds: number): number | undefined {
  return widths.findLast((width) => width.seconds <= seconds)?.width;
}
