// The rounds of a run, and its result after each of them.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { turnsDisagree } from '../analysis/continuous.ts';
import { minimumRounds } from '../analysis/statistics.ts';
import { unsettled } from '../analysis/verdict.ts';
import { warning } from '../analysis/warnings.ts';
import { UserError } from '../errors.ts';
import { counts } from '../format.ts';
import { buildResult, type KeptRound } from './build-result.ts';
import {
  Disturbance,
  RoundFailure,
  StillCold,
  apart,
  nextLook,
  roundsToLook,
  secondsPerGroup,
  secondsPerRound,
  portsTaken,
  orderOfRound,
  withWarmups,
  type Attempt,
  type RunBase,
  type RunGroup,
  type VariantRound,
} from './plan.ts';
import { Interrupted } from '../process.ts';
import {
  resultJson,
  type Comparison,
  type Environment,
  type Result,
  type SearchStep,
} from '../result/result.ts';
import { encodingLines, lengthLines, requestLines } from '../report/answers.ts';
import { writeWhole } from '../writing.ts';
import { forgetRound, storeResult } from './store-result.ts';

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
  /** A search made a step. */
  stepped(what: { round: number; steps: readonly SearchStep[] }): void;
  /** A variant's part of a round has ended. */
  measured(what: { round: number; variant: string; outcome: VariantRound }): void;
  /** A line about the course of the run, for the person. */
  say(line: string): void;
}

/** A server's own failure usually repeats; a disturbance from outside passes, often after some seconds. */
const triesOfFailing = 2;
const triesOfDisturbed = 5;
/** After the first disturbance of a round; doubled each time. */
const firstPauseMs = 250;

/** Where turns do not agree with continuous load: what a server has in store for a burst is used up by then. */
const apartWarmupSeconds = 5;

export interface RunOutcome {
  result: Result;
  kept: readonly KeptRound[];
  /** Why the run ended early; absent if it is complete. */
  ended?: unknown;
}

/**
 * Runs rounds until the verdicts are decided, the last round is done, or the time is up, and writes result.json after each round. A
 * round that fails is dropped for all variants and repeated under a new number. Never throws.
 */
export async function runRounds(
  context: RunBase,
  runGroup: RunGroup,
  environment: Environment,
  events: RunEvents,
  startedAt: Date,
): Promise<RunOutcome> {
  const { plan, signal } = context;
  const beganAtMs = performance.now();
  const kept: KeptRound[] = [];
  const notes = new Set([
    ...(environment.coreNotes ?? []),
    ...[...portsTaken(plan.variants)].map(([variant, why]) => warning.alone(variant, why)),
  ]);
  const answers = new Map(context.answers);
  let said: readonly string[] = [];
  let attempts = 0;
  /** The plan's, with longer warm-ups, and sides apart, where that turned out to be needed. */
  let groups = plan.groups;
  /** Failed tries at the next round. */
  let failures: RoundFailure[] = [];
  let slowestSeconds = 0;
  let comparisonsSoFar: readonly Comparison[] = [];
  /** Steps of a search in the present round. */
  let steps: SearchStep[] = [];

  try {
    await save('partial', false);
    while (kept.length < plan.rounds) {
      const failure = await tryRound();
      if (failure === undefined && (await leavesTurns())) continue;
      if (failure === undefined && (kept.length === plan.rounds || verdictsAreDecided())) break;
      const pauseMs =
        failure instanceof Disturbance ? firstPauseMs * 2 ** (failures.length - 1) : 0;
      if (timeIsOver(pauseMs)) {
        if (failure !== undefined) notes.add(warning.dropped(attempts, failure.message));
        notes.add(warning.timeOver(kept.length, plan.rounds));
        events.say(
          `after ${counts(kept.length, 'round')} there is no time for another one (--max-time)`,
        );
        break;
      }
      if (failure === undefined) {
        comparisonsSoFar = (await save('partial', false)).comparisons;
        continue;
      }
      notes.add(warning.repeated(attempts, failure.message));
      events.say(`round ${kept.length + 1} is dropped and repeated: ${failure.message}`);
      await delay(pauseMs, undefined, { signal });
    }
    return {
      result: await save('complete', true),
      kept,
      ...(signal.aborted ? { ended: new Interrupted() } : {}),
    };
  } catch (error) {
    const ended = signal.aborted ? new Interrupted() : error;
    // If this fails too, result.json has the last complete round, and the first error is reported.
    const result = await save('partial', true).catch(() => resultNow('partial'));
    return { result, kept, ended };
  }

  function resultNow(state: Result['state']): Result {
    const known = {
      kept,
      notes: [...notes],
      unfinished: steps,
      answers: answerLines(),
      lengths: new Map([...answers].map(([name, { bytes }]) => [name, Math.round(bytes)])),
    };
    return buildResult(context, environment, known, startedAt, state);
  }

  /** What the answers differ in. compare has said it. */
  function answerLines() {
    const sides = plan.variants.flatMap(({ variant: { name }, page }) => {
      const answer = answers.get(name);
      return answer === undefined ? [] : [{ given: name, page, answer }];
    });
    if (context.answers !== undefined) return [];
    // Lengths that the scenario states differ on purpose.
    const areStated = plan.variants.every(({ page }) => page.bodyBytes !== undefined);
    const lengths = areStated ? [] : lengthLines(sides);
    return [...requestLines(sides), ...lengths, ...encodingLines(sides)];
  }

  /** Writes result.json, then the database, which may hang. */
  async function save(state: Result['state'], ended: boolean): Promise<Result> {
    const file = join(context.folder, 'result.json');
    const result = resultNow(state);
    let problem: string | null = null;
    try {
      await writeWhole(file, resultJson(result));
    } finally {
      problem = await storeResult(context, result, kept, ended);
    }
    // A database that is down fails in every round.
    if (problem === null || notes.has(problem)) return result;
    notes.add(problem);
    const noted = { ...result, warnings: [...result.warnings, problem] };
    await writeWhole(file, resultJson(noted));
    return noted;
  }

  /** Runs a round and keeps it, or returns why it was dropped. Throws after too many failures. */
  async function tryRound() {
    const place = kept.length + 1;
    const roundBeganAtMs = performance.now();
    attempts++;
    steps = [];
    try {
      const outcomes = await runRound(place, {
        round: attempts,
        answers,
        onAnswers() {
          const lines = answerLines();
          for (const line of lines) if (!said.includes(line)) events.say(line);
          said = lines;
        },
        known: ratesSoFar(),
        onStep(more) {
          steps.push(...more);
          events.stepped({ round: place, steps: more });
        },
      });
      kept.push({ round: attempts, outcomes });
      slowestSeconds = Math.max(slowestSeconds, (performance.now() - roundBeganAtMs) / 1000);
      failures = [];
      for (const [variant, outcome] of outcomes) noteOutcome(variant, outcome);
      steps = [];
      return undefined;
    } catch (error) {
      if (!(error instanceof RoundFailure)) throw error;
      steps = [];
      if (error instanceof StillCold) {
        groups = withWarmups(groups, error.warmupSeconds);
        // Earlier rounds had the same warm-up, and may have been cold from begin to end.
        if (kept.length < minimumRounds) await dropKept();
        return error;
      }
      failures.push(error);
      if (failures.filter((one) => !(one instanceof Disturbance)).length === triesOfFailing)
        throw new UserError(`round ${place} failed twice: ${error.message}`);
      if (failures.length === triesOfDisturbed)
        throw new UserError(
          `round ${place} was disturbed or failed each of ${triesOfDisturbed} times, the last time: ${error.message}`,
        );
      return error;
    }
  }

  /** Loads every group once. @param place of the round among the kept ones, from 1, which decides the order */
  async function runRound(place: number, attempt: Omit<Attempt, 'onLoad'>) {
    const outcomes = new Map<string, VariantRound>();
    let laterSeconds = secondsPerRound({ ...plan, groups }) * roundsToLook(plan, place);
    for (const [index, group] of orderOfRound(groups, place, plan.run).entries()) {
      const [seconds, startedAtMs] = [secondsPerGroup(plan, group), performance.now()];
      laterSeconds -= seconds;
      const onLoad = (rps: number | null) => {
        events.load({
          round: place,
          variants: group.sides.map(({ variant }) => variant.name),
          rps,
          comparisons: comparisonsSoFar,
          secondsLeft:
            laterSeconds + Math.max(0, seconds - (performance.now() - startedAtMs) / 1000),
        });
      };
      onLoad(null);
      const ofGroup = await runGroup(group, index + 1, { ...attempt, onLoad });
      for (const [variant, outcome] of ofGroup) {
        outcomes.set(variant, outcome);
        events.measured({ round: place, variant, outcome });
      }
    }
    return outcomes;
  }

  function noteOutcome(variant: string, { integrity, notes: own, lastWords }: VariantRound) {
    if (
      lastWords !== undefined &&
      ![...notes].some((one) => one.startsWith(warning.logOfFailures(variant, '')))
    )
      notes.add(warning.logOfFailures(variant, lastWords));
    for (const text of [...own, ...(integrity?.problems ?? [])]) notes.add(text);
  }

  function ratesSoFar() {
    return new Map(
      plan.variants.map(({ variant: { name } }) => [
        name,
        kept.flatMap(({ outcomes }) => outcomes.get(name)?.search?.found.rate ?? []),
      ]),
    );
  }

  /** Whether there is no time for so many more rounds after a pause. There always is for the first round. */
  function timeIsOver(pauseMs = 0, rounds = 1) {
    const elapsedSeconds = (performance.now() - beganAtMs) / 1000;
    const neededSeconds = pauseMs / 1000 + rounds * slowestSeconds;
    return kept.length > 0 && elapsedSeconds + neededSeconds > (plan.maxTimeSeconds ?? Infinity);
  }

  /**
   * At a look: whether turns turn out not to agree with continuous load. Then the rounds so far no longer count, and the sides of that
   * group are loaded one after the other.
   */
  async function leavesTurns(): Promise<boolean> {
    if (kept.length < minimumRounds || nextLook(plan, kept.length) !== kept.length) return false;
    const { variants } = resultNow('partial');
    for (const { sides } of groups) {
      const names = new Set(sides.map(({ variant }) => variant.name));
      const found = turnsDisagree(variants.filter(({ name }) => names.has(name)));
      if (found === undefined) continue;
      if (timeIsOver(0, minimumRounds)) {
        notes.add(warning.turnsDiffer(found.name, found.ratio));
        continue;
      }
      const note = warning.notInTurns(found.name, found.ratio, kept.length);
      notes.add(note);
      events.say(note);
      const longer = sides.map(({ variant, load }) => {
        const seconds = Math.max(load.warmupSeconds, apartWarmupSeconds);
        return [variant.name, seconds] as const;
      });
      groups = withWarmups(apart(groups, names), new Map(longer));
      await dropKept();
      return true;
    }
    return false;
  }

  async function dropKept() {
    for (const { round } of kept.splice(0)) {
      const problem = await forgetRound(context, round);
      if (problem !== null) notes.add(problem);
    }
    comparisonsSoFar = [];
  }

  function verdictsAreDecided() {
    if (nextLook(plan, kept.length) !== kept.length) return false;
    const { comparisons } = resultNow('partial');
    const open = unsettled(comparisons, plan.precision).map(({ variant }) => variant);
    const isJudged = comparisons.some(({ verdict }) => verdict !== 'none');
    // Without a verdict a usual run still measures all its rounds.
    if (open.length === 0) return isJudged || plan.precision !== undefined;
    const names = [...new Set(open)];
    if (plan.precision !== undefined && !timeIsOver())
      events.say(
        `after ${kept.length} rounds ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not known exactly enough: going on to ${nextLook(plan, kept.length + 1)}`,
      );
    return false;
  }
}
