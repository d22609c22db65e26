// --max-time of knobs: the time of all three parts of the command.
import { minimumRounds } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import { counts, duration } from '../../format.ts';
import type { PlanDraft } from '../../runner/plan.ts';
import { estimatedSeconds } from '../../runner/times.ts';

export type Part = 'first look' | 'closer look' | 'verification';

/** How much of the time that is left a part may take. */
const shares: Readonly<Record<Part, number>> = {
  'first look': 0.6,
  'closer look': 0.4,
  verification: 1,
};

/** Plans a part. @param maxTimeSeconds undefined: it takes as long as it needs */
export type PlanPart = (maxTimeSeconds?: number) => PlanDraft;

/** Divides the time of the command among its parts. */
export class PartsTime {
  readonly #maxTimeSeconds: number | undefined;
  #endsAtMs = 0;

  /** The time begins. @param maxTimeSeconds undefined: each part takes as long as it needs */
  constructor(maxTimeSeconds: number | undefined) {
    this.#maxTimeSeconds = maxTimeSeconds;
    this.goesOnWith(maxTimeSeconds ?? Infinity);
  }

  get secondsLeft(): number {
    return (this.#endsAtMs - performance.now()) / 1000;
  }

  /** Sets the time that is left, such as after a wait that does not count. */
  goesOnWith(seconds: number): void {
    this.#endsAtMs = performance.now() + 1000 * seconds;
  }

  /** Plans a part within its share of the time. Returns undefined if there is no time for the rounds of a verdict. */
  planned(part: Part, plan: PlanPart): PlanDraft | undefined {
    if (this.#maxTimeSeconds === undefined) return plan();
    const seconds = shares[part] * this.secondsLeft;
    return neededSeconds(plan()) > seconds ? undefined : plan(seconds);
  }

  /** The plan of the first look. @throws UserError if there is no time for it */
  requireFirst(plan: PlanPart): PlanDraft {
    const first = this.planned('first look', plan);
    if (first !== undefined) return first;
    const needed = neededSeconds(plan());
    const spent = (this.#maxTimeSeconds ?? 0) - this.secondsLeft;
    const wanted = Math.ceil((1.1 * (needed / shares['first look'] + spent)) / 30) * 30;
    throw new UserError(
      `--max-time ${duration(this.#maxTimeSeconds ?? 0)} is too short: ${counts(neededRounds(plan()), 'round')} of the first look take about ${duration(needed)}, and the other parts follow. Give --max-time ${wanted}s, or fewer --knobs`,
    );
  }
}

const neededRounds = ({ rounds }: PlanDraft): number => Math.min(minimumRounds, rounds);

const neededSeconds = (plan: PlanDraft): number => estimatedSeconds(plan, neededRounds(plan));
