// The rounds of a run, and its result after each of them.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { turnsDisagree } from '../analysis/continuous.ts';
import { shareAt } from '../analysis/looks.ts';
import { minimumRounds } from '../analysis/statistics.ts';
import { unsettled } from '../analysis/verdict.ts';
import { inOneLine, messageOf, UserError } from '../errors.ts';
import { counts, duration } from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import { buildResult, type Dropped } from './build-result.ts';
import { FirstAnswers } from './first-answers.ts';
import { coldFindings, unseenWaitsFindings } from './make-plan.ts';
import { Disturbance, TurnsMeet, RoundFailure, StillCold } from './failures.ts';
import { rpsOf } from './side-round.ts';
import {
  apart,
  portsTaken,
  orderOfRound,
  type Attempt,
  type Group,
  type KeptRound,
  type RunBase,
  type RunGroup,
  type Stage,
  type VariantRound,
} from './plan.ts';
import { warmCosts, withRoundsWarmups, withWarmups } from './warmups.ts';
import { folderText, type RunEvents } from './run-events.ts';
import { expectedRounds, nextLook, roundsToLook, secondsPerRound } from './times.ts';
import { reasonOfTime, timeText, TimeLeft } from './time-left.ts';
import { Interrupted } from '../signals.ts';
import type { Environment } from '../result/environment.ts';
import type { Comparison, DroppedRound, RateStep, Result } from '../result/result.ts';
import { resultJson } from '../result/result-file.ts';
import { sentenceOf, withFindings } from '../report/finding-words.ts';
import type { AnyFinding, Finding } from '../result/finding.ts';
import { writeWhole } from '../writing.ts';

/** A server's own failure usually repeats; a disturbance from outside passes, often after some seconds. */
const triesOfFailing = 2;
const triesOfDisturbed = 5;
/** Pause after the first disturbance of a round; it doubles with each further one. */
const firstPauseMs = 250;

/** Warm-up of sides whose turns do not agree with continuous load. It uses up what a server has in store for a burst. */
const apartWarmupSeconds = 5;

export interface RunOutcome {
  result: Result;
  kept: readonly KeptRound[];
  /** Why the run ended early; absent if it is complete. */
  ended?: unknown;
}

/**
 * Runs rounds until the verdicts are decided, the last one is done, or the time is up, and writes result.json after each. A round that
 * fails is dropped for all variants and repeated under a new number. Never throws.
 */
export function runRounds(given: Given): Promise<RunOutcome> {
  return new Rounds(given).run();
}

interface Given {
  context: RunBase;
  runGroup: RunGroup;
  environment: Environment;
  events: RunEvents;
  startedAt: Date;
}

class Rounds {
  readonly #given: Given;
  readonly #context: RunBase;
  readonly #plan: RunBase['plan'];
  readonly #events: RunEvents;
  readonly #beganAtMs = performance.now();
  readonly #kept: KeptRound[] = [];
  readonly #dropped: Dropped[] = [];
  /** The findings so far, by their JSON, so that each is kept once. */
  readonly #findings = new Map<string, AnyFinding>();
  /** Variants whose log a finding quotes. */
  readonly #quoted = new Set<string>();
  readonly #answers: FirstAnswers;
  #endedBy: string | undefined;
  #attempts = 0;
  /** The plan's groups, with longer warm-ups and separated sides where needed. */
  #groups: readonly Group[];
  /** Servers that were still cold in the last try at the next round, and go on in it. */
  #open: readonly Stage[] = [];
  /** Failed tries at the next round. */
  #failures: RoundFailure[] = [];
  #slowestSeconds = 0;
  readonly #timeLeft: TimeLeft;
  /** The outcomes of the last round; empty before the first. */
  #lastOutcomes: ReadonlyMap<string, VariantRound> = new Map();
  /** Requests/s in the last try at a round. */
  #lastRps: DroppedRound['rps'] = {};
  #comparisonsSoFar: readonly Comparison[] = [];
  /** Steps in the present round. */
  #steps: RateStep[] = [];
  /** Variants that the present round has measured. */
  #outcomes = new Map<string, VariantRound>();

  constructor(given: Given) {
    const { context } = given;
    this.#given = given;
    this.#context = context;
    this.#plan = context.plan;
    this.#events = given.events;
    this.#timeLeft = new TimeLeft(secondsPerRound(this.#plan), this.#plan.maxTimeSeconds);
    this.#answers = new FirstAnswers(context, given.events.say);
    this.#groups = context.plan.groups;
    this.#found([
      ...(context.coreFindings ?? []),
      ...portsTaken(context.plan.variants),
      ...coldFindings(context.plan),
      ...unseenWaitsFindings(context.plan),
    ]);
  }

  async run(): Promise<RunOutcome> {
    const { signal } = this.#context;
    try {
      await this.#save('partial', false);
      await this.#runAll().finally(() => this.#stopOpen());
      const result = await this.#save('complete', true);
      const ended = signal.aborted ? { ended: new Interrupted() } : {};
      return { result, kept: this.#kept, ...ended };
    } catch (error) {
      const ended = signal.aborted ? new Interrupted() : error;
      this.#endedBy = inOneLine(messageOf(ended));
      // If this fails too, result.json has the last complete round, and the first error is reported.
      const result = await this.#save('partial', true).catch(() => this.#resultNow('partial'));
      return { result, kept: this.#kept, ended };
    }
  }

  async #runAll(): Promise<void> {
    let goesOn = true;
    while (goesOn && this.#kept.length < this.#plan.rounds) {
      const place = this.#kept.length + 1;
      const failure = await this.#tryRound(place);
      goesOn =
        failure === undefined
          ? await this.#goesOnAfterRound()
          : await this.#triesAgain(failure, place);
    }
  }

  /** After a kept round: saves the result, if another round is to follow. */
  async #goesOnAfterRound(): Promise<boolean> {
    if (await this.#leavesTurns()) return true;
    if (this.#kept.length === this.#plan.rounds || this.#verdictsAreDecided()) return false;
    if (this.#timeIsOver()) {
      this.#noteTimeOver();
      return false;
    }
    this.#comparisonsSoFar = (await this.#save('partial', false)).comparisons;
    return true;
  }

  /**
   * After a dropped round, with which earlier ones may have been dropped: waits for a while, longer after each disturbance, if there is
   * time for another try.
   */
  async #triesAgain(failure: RoundFailure, place: number): Promise<boolean> {
    const pauseMs =
      failure instanceof Disturbance ? firstPauseMs * 2 ** (this.#failures.length - 1) : 0;
    if (this.#timeIsOver(pauseMs)) {
      this.#noteTimeOver();
      return false;
    }
    const from = this.#kept.length + 1;
    const repeated = `dropped and repeated: ${failure.message}`;
    const text =
      from === place
        ? `round ${place} is ${repeated}${folderText(place, this.#attempts)}`
        : `rounds ${from} to ${place} are ${repeated}`;
    this.#events.say(failure.isBeforeLoad ? failure.message : text);
    await delay(pauseMs, undefined, { signal: this.#context.signal });
    return true;
  }

  #noteTimeOver() {
    const [rounds, mostRounds] = [this.#kept.length, this.#plan.rounds];
    this.#note({ code: 'time-over', rounds, mostRounds });
    this.#events.say(
      `after ${counts(rounds, 'round')} there is no time for another one (--max-time)`,
    );
  }

  #resultNow(state: Result['state']): Result {
    const { environment, startedAt } = this.#given;
    const known = {
      kept: this.#kept,
      dropped: this.#dropped,
      attempts: this.#attempts,
      findings: [...this.#findings.values()],
      unfinished: this.#steps,
      lines: this.#answers.lines(),
      answers: this.#answers.bySide,
      endedBy: this.#endedBy,
    };
    return buildResult(this.#context, environment, known, startedAt, state);
  }

  /** Writes result.json, then to the sink, which may hang. */
  async #save(state: Result['state'], ended: boolean): Promise<Result> {
    const file = join(this.#context.folder, 'result.json');
    const result = this.#resultNow(state);
    let problem: AnyFinding | null = null;
    try {
      await writeWhole(file, resultJson(result));
    } finally {
      const { sink } = this.#context;
      problem = (await sink?.after(this.#context, result, this.#kept, ended)) ?? null;
    }
    // A sink that is down fails in every round.
    if (problem === null || !this.#found([problem])) return result;
    const noted = withFindings(result, [...result.findings, problem], this.#context.templates);
    await writeWhole(file, resultJson(noted));
    return noted;
  }

  /** Runs a round and keeps it, or returns why it was dropped. Throws after too many failures. */
  async #tryRound(place: number): Promise<RoundFailure | undefined> {
    const roundBeganAtMs = performance.now();
    this.#attempts++;
    this.#steps = [];
    this.#outcomes = new Map();
    try {
      const outcomes = await this.#runRound(place, {
        round: this.#attempts,
        answers: this.#answers.bySide,
        onAnswers: () => this.#answers.say(),
        known: this.#ratesSoFar(),
        warmCosts: warmCosts(this.#kept),
        onStep: (more) => {
          this.#steps.push(...more);
          this.#events.stepped({ round: place, attempt: this.#attempts, steps: more });
        },
      });
      this.#keep(outcomes, (performance.now() - roundBeganAtMs) / 1000);
      return undefined;
    } catch (error) {
      if (!(error instanceof RoundFailure)) throw error;
      this.#steps = [];
      this.#timeLeft.ended(this.#elapsedSeconds());
      const rps = { ...rpsOf(this.#plan, this.#outcomes), ...error.rps };
      this.#lastRps = rps;
      const { finding } = error;
      if (error.isBeforeLoad) this.#note(finding);
      else this.#dropped.push({ round: this.#attempts, cause: finding, rps });
      if (error instanceof StillCold) await this.#lengthenWarmups(error);
      else if (error instanceof TurnsMeet) await this.#loadAlone(error.variants, finding);
      else this.#countFailure(error, place);
      return error;
    }
  }

  #keep(outcomes: Map<string, VariantRound>, seconds: number) {
    this.#kept.push({ round: this.#attempts, outcomes });
    this.#slowestSeconds = Math.max(this.#slowestSeconds, seconds);
    this.#timeLeft.ended(this.#elapsedSeconds());
    this.#failures = [];
    for (const [variant, outcome] of outcomes) this.#noteOutcome(variant, outcome);
    this.#steps = [];
  }

  async #lengthenWarmups({ warmupSeconds, finding, open }: StillCold) {
    this.#groups = withWarmups(this.#groups, warmupSeconds);
    this.#open = open;
    // The servers of another group are to be alone.
    if (this.#groups.length > 1) await this.#stopOpen();
    // Earlier rounds had the same warm-up, and may have been cold from begin to end.
    if (this.#kept.length < minimumRounds) await this.#dropKept(finding);
  }

  async #stopOpen() {
    await Promise.all(this.#open.map((stage) => stage.stop()));
    this.#open = [];
  }

  /** @throws UserError, which ends the run, after too many failures of a round */
  #countFailure(failure: RoundFailure, place: number) {
    this.#failures.push(failure);
    const faults = this.#failures.filter((fault) => !(fault instanceof Disturbance));
    if (faults.length === triesOfFailing)
      throw new UserError(`round ${place} failed twice: ${failure.message}`);
    if (this.#failures.length === triesOfDisturbed)
      throw new UserError(
        `round ${place} was disturbed or failed ${triesOfDisturbed} times, the last time: ${failure.message}`,
      );
  }

  /** Loads every group once. @param place of the round among the kept ones, from 1, which decides the order */
  async #runRound(place: number, attempt: Omit<Attempt, 'onLoad'>) {
    this.#timeLeft.began(
      secondsPerRound({ ...this.#plan, groups: this.#groups }),
      this.#elapsedSeconds(),
    );
    const seen = { kept: this.#kept, rps: this.#lastRps };
    const groups = withRoundsWarmups(this.#groups, seen, `${this.#plan.run} ${attempt.round}`);
    for (const [index, group] of orderOfRound(groups, place, this.#plan.run).entries()) {
      const onLoad = (rps: number | null) => {
        this.#announceTime(place, group);
        this.#events.load({
          round: place,
          variants: group.sides.map(({ variant }) => variant.name),
          rps,
          comparisons: this.#comparisonsSoFar,
          secondsLeft: this.#timeLeft.left(roundsToLook(this.#plan, place), this.#elapsedSeconds()),
        });
      };
      onLoad(null);
      const open = this.#open.length === 0 ? {} : { open: this.#open };
      this.#open = [];
      const ofGroup = await this.#given.runGroup(group, index + 1, { ...attempt, ...open, onLoad });
      for (const [variant, outcome] of ofGroup) {
        this.#outcomes.set(variant, outcome);
        this.#events.measured({ round: place, attempt: this.#attempts, variant, outcome });
      }
    }
    this.#lastOutcomes = this.#outcomes;
    this.#lastRps = rpsOf(this.#plan, this.#outcomes);
    return this.#outcomes;
  }

  #elapsedSeconds(): number {
    return (performance.now() - this.#beganAtMs) / 1000;
  }

  /**
   * Announces the time that the run will take, if it has changed by a quarter, or that the first round is late.
   * @param place of the present round, from 1 @param group under load
   */
  #announceTime(place: number, group: Group) {
    const [at, rounds] = [this.#elapsedSeconds(), roundsToLook(this.#plan, place)];
    const news = this.#timeLeft.newsOf(place - 1, rounds, at);
    if (news === undefined) return;
    const most = Math.max(rounds, expectedRounds(this.#plan).most - place + 1);
    const [least, longest] = [this.#timeLeft.left(rounds, at), this.#timeLeft.left(most, at)];
    const reason =
      news === 'earlier' ? 'rounds take less time than planned' : this.#reasonOfTime(group);
    const time = news === 'open' ? `${duration(at)} so far` : timeText(least, longest);
    this.#events.announce(`${reason}: ${time}`);
  }

  /** Why rounds take longer than announced. @param group under load */
  #reasonOfTime(group: Group): string {
    const isFirst = this.#lastOutcomes.size === 0;
    // A load in steps makes as many as it needs.
    if (isFirst && this.#plan.stepped !== undefined) return 'rounds take longer than planned';
    const groups = isFirst ? [group] : this.#groups;
    return reasonOfTime(
      groups.flatMap(({ sides }) => sides),
      this.#lastOutcomes,
    );
  }

  /** Keeps a finding and returns its sentence. */
  #note(finding: Finding): string {
    this.#found([finding]);
    return sentenceOf(finding);
  }

  /** Keeps the findings. Returns whether one is new. */
  #found(findings: readonly AnyFinding[]): boolean {
    const before = this.#findings.size;
    for (const finding of findings) this.#findings.set(JSON.stringify(finding), finding);
    return this.#findings.size > before;
  }

  #noteOutcome(variant: string, { findings, describeEnd }: VariantRound) {
    if (describeEnd !== undefined && !this.#quoted.has(variant)) {
      this.#quoted.add(variant);
      this.#note({ code: 'log-of-failures', variant, line: describeEnd });
    }
    this.#found(findings);
  }

  #ratesSoFar() {
    return new Map(
      this.#plan.variants.map(({ variant: { name } }) => [
        name,
        this.#kept.flatMap(({ outcomes }) => outcomes.get(name)?.stepped?.found.rate ?? []),
      ]),
    );
  }

  /** Whether there is no time for so many more rounds after a pause. There always is for the first round. */
  #timeIsOver(pauseMs = 0, rounds = 1) {
    const neededSeconds = pauseMs / 1000 + rounds * this.#slowestSeconds;
    return (
      this.#kept.length > 0 &&
      this.#elapsedSeconds() + neededSeconds > (this.#plan.maxTimeSeconds ?? Infinity)
    );
  }

  /**
   * Checks at a look whether turns disagree with continuous load. If they do, drops the rounds so far and loads the sides of that group
   * one after the other from then on. Returns whether it did.
   */
  async #leavesTurns(): Promise<boolean> {
    // On shared cores, turns and continuous load depend more on which threads meet on which core than on each other.
    if (sharesCores(this.#plan.cores)) return false;
    if (
      this.#kept.length < minimumRounds ||
      nextLook(this.#plan, this.#kept.length) !== this.#kept.length
    )
      return false;
    const { variants } = this.#resultNow('partial');
    for (const { sides } of this.#groups) {
      const names = new Set(sides.map(({ variant }) => variant.name));
      const disagreement = turnsDisagree(
        variants.filter(({ name }) => names.has(name)),
        shareAt(this.#plan.looks, this.#kept.length),
      );
      if (disagreement === undefined) continue;
      const { name: variant, ...ratio } = disagreement;
      const seen = { code: 'not-in-turns', variant, ...ratio } as const;
      if (this.#timeIsOver(0, minimumRounds)) {
        this.#note(seen);
        continue;
      }
      const finding: Finding = { ...seen, droppedRounds: this.#kept.length };
      this.#events.say(this.#note(finding));
      const longer = sides.map(({ variant, load }) => {
        const seconds = Math.max(load.warmupSeconds, apartWarmupSeconds);
        return [variant.name, seconds] as const;
      });
      this.#groups = withWarmups(this.#groups, new Map(longer));
      await this.#loadAlone(names, finding);
      return true;
    }
    return false;
  }

  /** Loads these variants one after the other from now on, and drops the rounds in turns. */
  async #loadAlone(variants: ReadonlySet<string>, cause: Finding) {
    this.#groups = apart(this.#groups, variants);
    await this.#dropKept(cause);
  }

  async #dropKept(cause: Finding) {
    for (const { round, outcomes } of this.#kept.splice(0)) {
      this.#dropped.push({ round, cause, rps: rpsOf(this.#plan, outcomes), counted: true });
      const problem = await this.#context.sink?.forget(this.#plan, round);
      if (problem) this.#found([problem]);
    }
    this.#comparisonsSoFar = [];
  }

  #verdictsAreDecided() {
    if (nextLook(this.#plan, this.#kept.length) !== this.#kept.length) return false;
    const { comparisons } = this.#resultNow('partial');
    const open = unsettled(comparisons, this.#plan.precision).map(({ variant }) => variant);
    const isJudged = comparisons.some(({ verdict }) => verdict !== 'none');
    // Without a verdict a usual run still measures all its rounds.
    if (open.length === 0) return isJudged || this.#plan.precision !== undefined;
    const names = [...new Set(open)];
    if (this.#plan.precision !== undefined && !this.#timeIsOver())
      this.#events.say(
        `after ${this.#kept.length} rounds ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not known precisely enough: going on to ${nextLook(this.#plan, this.#kept.length + 1)}`,
      );
    return false;
  }
}

/** Has the sink check what it stored. Returns the result with the sink's counts. */
export async function settleSink(
  run: RunBase,
  { result, kept }: { result: Result; kept: readonly KeptRound[] },
): Promise<Result> {
  const settled = (await run.sink?.settle(run, result, kept)) ?? result;
  if (settled !== result) await writeWhole(join(run.folder, 'result.json'), resultJson(settled));
  return settled;
}
