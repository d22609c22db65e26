// What a run tells of its course.
import type { Comparison, RateStep } from '../result/result.ts';
import type { VariantRound } from './plan.ts';

/** Progress of a run. */
export interface RunEvents {
  /**
   * `variants` are under load. `rps`: responses of the last second, null before the first; `comparisons`: of the earlier rounds;
   * `secondsLeft`: estimated time to the next look at the verdicts, or to the end.
   */
  load(what: {
    round: number;
    variants: readonly string[];
    rps: number | null;
    comparisons: readonly Comparison[];
    secondsLeft: number;
  }): void;
  /** The sides made a step. `attempt`: the number of the round if dropped rounds count, as in the names of its files. */
  stepped(what: { round: number; attempt: number; steps: readonly RateStep[] }): void;
  /** A variant's part of a round has ended. */
  measured(what: { round: number; attempt: number; variant: string; outcome: VariantRound }): void;
  /** A line about the course of the run, for the person. */
  say(line: string): void;
  /** The run will take another time than was announced: a line with the reason. */
  announce(line: string): void;
}

/** Returns " (round-3)", the folder of a round's files, if earlier rounds were dropped; else ''. */
export function folderText(round: number, attempt: number): string {
  return attempt === round ? '' : ` (round-${attempt})`;
}
