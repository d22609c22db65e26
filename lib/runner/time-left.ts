// How long a run will still take: by its plan, then by its rounds.
import { duration, enumeration } from '../format.ts';
import { median } from '../analysis/statistics.ts';
import type { PlannedVariant, VariantRound } from './plan.ts';

/** The announced end is announced again if it changes by this ratio and by this many seconds, and as many seconds are left. */
const matters = { ratio: 1.25, seconds: 5 };

/**
 * A round that takes longer than expected is expected to take this multiple of the time that it has taken by then: a little more, then
 * much.
 */
const overrun = { first: 1.2, later: 2 };

/** The last rounds say more than all rounds: servers get warm, other programs end. */
const recentRounds = 3;

/** All times are seconds since the run began. */
export class TimeLeft {
  readonly #mostSeconds: number;
  /** The time that rounds took, kept or not, and the planned one. */
  readonly #took: { seconds: number; plannedSeconds: number }[] = [];
  /** The present round. */
  #round: { beganAt: number; plannedSeconds: number; expectedSeconds: number; isLate: boolean };
  /** When it was last announced that the first round is late; 0: never. */
  #openAt = 0;
  /** No end after `latest` was announced. */
  #announced: { at: number; kept: number; secondsPerRound: number; latest: number };

  /** @param secondsPerRound that were announced before the run @param mostSeconds --max-time */
  constructor(secondsPerRound: number, mostSeconds = Infinity) {
    this.#mostSeconds = mostSeconds;
    this.#round = {
      beganAt: 0,
      plannedSeconds: secondsPerRound,
      expectedSeconds: secondsPerRound,
      isLate: false,
    };
    this.#announced = { at: 0, kept: 0, secondsPerRound, latest: mostSeconds };
  }

  /** A round begins. */
  began(plannedSeconds: number, at: number): void {
    const expectedSeconds = this.#expected(plannedSeconds);
    this.#round = { beganAt: at, plannedSeconds, expectedSeconds, isLate: false };
  }

  /** The present round has ended. */
  ended(at: number): void {
    const { beganAt, plannedSeconds } = this.#round;
    this.#took.push({ seconds: at - beganAt, plannedSeconds });
  }

  /**
   * Returns the seconds until so many rounds are done, the present one included. They are never 0, however long that one takes.
   */
  left(rounds: number, at: number): number {
    const inRound = at - this.#round.beganAt;
    if (inRound >= this.#round.expectedSeconds) {
      this.#round.expectedSeconds = inRound * (this.#round.isLate ? overrun.later : overrun.first);
      this.#round.isLate = true;
    }
    const { plannedSeconds, expectedSeconds } = this.#round;
    const later = this.#took.length === 0 ? expectedSeconds : this.#expected(plannedSeconds);
    const present = expectedSeconds - inRound;
    return Math.min(present + (rounds - 1) * later, Math.max(present, this.#mostSeconds - at));
  }

  /**
   * Returns how the end differs from the announced one, if it must be announced again; else undefined. The new end then counts as
   * announced. 'open': the first round goes on beyond its time, so nobody knows the end. Then each doubling of that time is news.
   * @param kept rounds that count
   * @param rounds as in left
   */
  newsOf(kept: number, rounds: number, at: number): 'later' | 'open' | 'earlier' | undefined {
    if (this.#took.length === 0) return this.#isOpen(at) ? 'open' : undefined;
    const left = this.left(rounds, at);
    const announced = this.#announced;
    const thought = announced.at + (kept + rounds - announced.kept) * announced.secondsPerRound;
    const [now, before] = [at + left, Math.min(thought, announced.latest)];
    if (Math.min(left, Math.abs(now - before)) < matters.seconds) return undefined;
    if (Math.max(now / before, before / now) < matters.ratio) return undefined;
    const latest = Math.max(this.#mostSeconds, now);
    this.#announced = { at, kept, secondsPerRound: left / rounds, latest };
    return now > before ? 'later' : 'earlier';
  }

  /** Whether the first round is late, and has taken twice the time that was announced last. */
  #isOpen(at: number): boolean {
    if (at < Math.max(this.#round.plannedSeconds + matters.seconds, 2 * this.#openAt)) return false;
    this.#openAt = at;
    return true;
  }

  /** The seconds that a round takes: as long as the last ones, or as planned if more is planned by now. */
  #expected(plannedSeconds: number): number {
    const last = this.#took.slice(-recentRounds);
    if (last.length === 0) return plannedSeconds;
    const seconds = median(last.map((round) => round.seconds));
    const isLonger = last.every((round) => round.plannedSeconds < plannedSeconds);
    return isLonger ? Math.max(seconds, plannedSeconds) : seconds;
  }
}

/** If more sides are loaded together, none is named. */
const mostNamed = 3;
/** A warm-up this many times as long as planned went on because the server got faster. */
const longWarmUp = 1.5;
/** Answers that take this many milliseconds make turns long. */
const longAnswerMs = 10;

/**
 * Says why rounds take longer than announced.
 * @param sides that are under load now, or of the last round
 * @param outcomes of the last round, by variant; none: it is the first
 */
export function reasonOfTime(
  sides: readonly PlannedVariant[],
  outcomes: ReadonlyMap<string, Pick<VariantRound, 'phases'>>,
): string {
  if (outcomes.size === 0) {
    const names = sides.map(({ variant }) => variant.name);
    const start = names.length === 1 ? 'starts, or gets' : 'start, or get';
    return `${names.length > mostNamed ? 'servers' : enumeration(names)} ${start} warm, more slowly than planned`;
  }
  const named = (isOne: (side: PlannedVariant, phases: VariantRound['phases']) => boolean) =>
    sides.flatMap((side) => {
      const { name } = side.variant;
      return isOne(side, outcomes.get(name)?.phases ?? []) ? [name] : [];
    });
  const tookToWarmUp = ([first]: VariantRound['phases']) => first?.continuous?.warmupSeconds ?? 0;
  const longest = Math.max(...[...outcomes.values()].map(({ phases }) => tookToWarmUp(phases)));
  const warming = named(({ load: { warmupSeconds } }, phases) => {
    const took = tookToWarmUp(phases);
    // Others add little.
    return warmupSeconds > 0 && took > longWarmUp * warmupSeconds && took >= longest / 2;
  });
  if (warming.length > 0)
    return `${enumeration(warming)} ${warming.length === 1 ? 'is' : 'are'} still getting faster`;
  const waiting = named(
    (_, [first]) => first?.turns?.waits === true && first.latencyMs.p50 > longAnswerMs,
  );
  if (waiting.length > 0)
    return `${enumeration(waiting)} ${waiting.length === 1 ? 'takes' : 'take'} long to answer`;
  return 'rounds take longer than planned';
}

/** "about 40 s to 2 min to go"; one time if both are alike. */
export function timeText(seconds: number, mostSeconds: number): string {
  const [least, most] = [duration(seconds), duration(mostSeconds)];
  return `about ${least === most ? least : `${least} to ${most}`} to go`;
}
