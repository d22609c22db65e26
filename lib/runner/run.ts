// The rounds of a run, and its result after each of them.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { roundToRepeat } from '../analysis/rounds.ts';
import { unsettled } from '../analysis/verdict.ts';
import { warningText, type Warning } from '../analysis/warnings.ts';
import { messageOf, UserError } from '../errors.ts';
import { buildResult, type KeptRound } from './build-result.ts';
import {
  Disturbance,
  RoundFailure,
  type Attempt,
  type RunContext,
  type RunElsewhere,
  type Tried,
  type VariantRound,
} from './round-types.ts';
import {
  roundsToLook,
  secondsPerGroup,
  secondsPerRound,
  apart,
  portsTaken,
  orderOfRound,
} from './plan.ts';
import { Interrupted } from '../process.ts';
import {
  resultJson,
  type Comparison,
  type Environment,
  type Result,
  type SearchStep,
} from '../result/result.ts';
import { writeWhole } from '../files.ts';
import { runGroup } from './round.ts';
import { countAgain, forgetRound, storeResult } from './store-result.ts';

/** What a person may want to see while it runs. */
export interface RunEvents {
  /**
   * `variants` are under load. `rps` of the last second of one of them, null before the first; `comparisons` of the rounds before;
   * `secondsLeft` until the next look at the verdicts or the end, estimated.
   */
  load(what: {
    round: number;
    variants: readonly string[];
    rps: number | null;
    comparisons: readonly Comparison[];
    secondsLeft: number;
  }): void;
  /** A step of a search is over. */
  stepped(what: { round: number; steps: readonly SearchStep[] }): void;
  /** A variant of a round is over. */
  measured(what: { round: number; variant: string; outcome: VariantRound }): void;
  /** A round is repeated. `whole`: it counts until then. */
  repeated(what: { round: number; why: string; whole?: true }): void;
  /** A look at the verdicts found some inconclusive, and the run goes on to the next look. */
  undecided(what: { rounds: number; variants: readonly string[]; next: number }): void;
  /** There is no time for another round. */
  timeOver(what: { rounds: number }): void;
}

/** What a server does by itself it does again; what disturbs it from outside may pass, often after some seconds. */
const triesOfFailing = 2;
const triesOfDisturbed = 5;
/** After the first disturbance at a place; twice as long after each one more. */
const firstPauseMs = 250;

export interface RunOutcome {
  result: Result;
  /** Why the run ended early; absent when it is complete. Finished rounds are in the result either way. */
  ended?: unknown;
}

/**
 * Runs the rounds, until the verdicts are there, the last round is over, or the time is. result.json is written after each. A round
 * that fails is dropped for all variants and repeated under a number of its own, so that its samples do not mix with the dropped ones.
 * Never throws: what ended the run early is in the outcome.
 */
export async function runRounds(
  context: RunContext | RunElsewhere,
  environment: Environment,
  events: RunEvents,
  startedAt: Date,
): Promise<RunOutcome> {
  const { interrupt } = context;
  const alone = new Map(context.plan.groups.flatMap(portsTaken));
  const plan = { ...context.plan, groups: apart(context.plan.groups, new Set(alone.keys())) };
  const beganAtMs = performance.now();
  const kept: KeptRound[] = [];
  const notes: Warning[] = [
    ...(environment.coreNotes ?? []).map((line) => ({ kind: 'cores', note: line }) as const),
    ...[...alone].map(([variant, why]) => ({ kind: 'alone', variant, why }) as const),
  ];
  const tried = new Map<string, Tried>();
  let attempts = 0;
  /** At the place of the next round. */
  let failures: RoundFailure[] = [];
  let slowestSeconds = 0;
  let soFar: readonly Comparison[] = [];
  /** Of a search: those of the round under way. */
  let steps: SearchStep[] = [];

  const resultNow = (state: Result['state']): Result =>
    buildResult(
      { ...context, plan },
      environment,
      { kept, notes, tried, unfinished: steps },
      startedAt,
      state,
    );

  /** Returns whether it is news: a database that stays down says the same after every round. */
  function note(warning: Warning): boolean {
    const known = notes.some((one) => warningText(one) === warningText(warning));
    if (!known) notes.push(warning);
    return !known;
  }

  /** Brings result.json and the database to what is known now: the file first, since the database may hang, and then it in any case. */
  async function save(state: Result['state'], ended: boolean): Promise<Result> {
    const file = join(context.folder, 'result.json');
    if (ended) {
      for (const problem of await countAgain(context, kept)) note({ kind: 'not-stored', problem });
    }
    const result = resultNow(state);
    let problem: string | null = null;
    try {
      await writeWhole(file, resultJson(result));
    } finally {
      problem = await storeResult(context, result, kept.at(-1), ended);
    }
    if (problem === null || !note({ kind: 'not-stored', problem })) return result;
    const noted = { ...result, warnings: [...result.warnings, problem] };
    await writeWhole(file, resultJson(noted));
    return noted;
  }

  /** Returns why the round has to be dropped, if it has to. */
  async function tryRound(): Promise<RoundFailure | undefined> {
    const place = kept.length + 1;
    const roundBeganAtMs = performance.now();
    attempts++;
    try {
      steps = [];
      const attempt: Omit<Attempt, 'onLoad'> = {
        round: attempts,
        tried,
        ...(plan.within === undefined
          ? {}
          : { search: { known: ratesSoFar(), seed: `${plan.run} ${attempts}` } }),
        onStep(more) {
          steps.push(...more);
          events.stepped({ round: place, steps: more });
        },
      };
      const outcomes = await runRound({ ...context, plan }, events, place, soFar, attempt);
      kept.push({ round: attempts, outcomes });
      steps = [];
      slowestSeconds = Math.max(slowestSeconds, (performance.now() - roundBeganAtMs) / 1000);
      failures = [];
      for (const [variant, { integrity, restless, alarm, lastWords, otherBodies }] of outcomes) {
        if (alarm !== undefined) note({ kind: 'server-alarm', variant, line: alarm });
        if (
          lastWords !== undefined &&
          !notes.some((one) => one.kind === 'log-of-failures' && one.variant === variant)
        )
          note({ kind: 'log-of-failures', variant, line: lastWords });
        if (otherBodies) note({ kind: 'other-bodies', variant });
        if (restless) note({ kind: 'link-not-at-rest', variant, round: attempts });
        for (const problem of integrity?.problems ?? []) note({ kind: 'not-stored', problem });
      }
      return undefined;
    } catch (error) {
      if (!(error instanceof RoundFailure)) throw error;
      steps = [];
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

  /** By variant, what was found in each round. */
  function ratesSoFar(): Map<string, number[]> {
    return new Map(
      plan.variants.map(({ variant: { name } }) => [
        name,
        kept.flatMap(({ outcomes }) => outcomes.get(name)?.search?.found.rate ?? []),
      ]),
    );
  }

  /** Whether a round more, after a pause, would probably not end in time. The first one has to be there in any case. */
  function timeIsOver(pauseMs = 0): boolean {
    const elapsedSeconds = (performance.now() - beganAtMs) / 1000;
    return (
      kept.length > 0 &&
      elapsedSeconds + pauseMs / 1000 + slowestSeconds > (plan.maxTimeSeconds ?? Infinity)
    );
  }

  /** Looks at the verdicts, when it is time to and more rounds could follow: whether none is left open. */
  function verdictsAreThere(): boolean {
    const next = plan.looks.find((look) => look > kept.length);
    if (next === undefined || !plan.looks.includes(kept.length)) return false;
    const { comparisons } = resultNow('partial');
    const open = unsettled(comparisons, plan.precision ?? 0).map(({ variant }) => variant);
    if (open.length === 0) return true;
    if (!timeIsOver())
      events.undecided({ rounds: kept.length, variants: [...new Set(open)], next });
    return false;
  }

  /** Once all rounds are over: one more in the place of an outlier on which alone a verdict hangs. Where that fails the outlier stays. */
  async function repeatOutlier(): Promise<void> {
    const outlier =
      kept.length < plan.rounds || timeIsOver()
        ? undefined
        : roundToRepeat(resultNow('partial').comparisons);
    if (outlier === undefined) return;
    await save('partial', false);
    const index = kept.findIndex(({ round }) => round === outlier.round);
    const replaced = kept.splice(index, 1);
    events.repeated({ round: index + 1, why: outlier.why, whole: true });
    // The run is whole without it.
    const failure = await tryRound().catch((error: unknown) => error);
    if (failure !== undefined) {
      kept.splice(index, 0, ...replaced);
      steps = [];
      note({ kind: 'not-repeated', round: outlier.round, why: messageOf(failure) });
      return;
    }
    note({ kind: 'repeated', ...outlier, as: attempts });
    const problem = await forgetRound(context, outlier.round);
    if (problem !== null) note({ kind: 'not-stored', problem });
  }

  try {
    await save('partial', false);
    while (kept.length < plan.rounds) {
      const failure = await tryRound();
      if (failure === undefined && (kept.length === plan.rounds || verdictsAreThere())) {
        await repeatOutlier();
        break;
      }
      const pauseMs =
        failure instanceof Disturbance ? firstPauseMs * 2 ** (failures.length - 1) : 0;
      if (timeIsOver(pauseMs)) {
        if (failure !== undefined) note({ kind: 'dropped', round: attempts, why: failure.message });
        note({ kind: 'time-over', rounds: kept.length, most: plan.rounds });
        events.timeOver({ rounds: kept.length });
        break;
      }
      if (failure === undefined) {
        soFar = (await save('partial', false)).comparisons;
        continue;
      }
      note({ kind: 'repeated', round: attempts, why: failure.message });
      events.repeated({ round: kept.length + 1, why: failure.message });
      await delay(pauseMs, undefined, { signal: interrupt.signal });
    }
    return {
      result: await save('complete', true),
      ...(interrupt.signal.aborted ? { ended: new Interrupted() } : {}),
    };
  } catch (error) {
    const ended = interrupt.signal.aborted ? new Interrupted() : error;
    // When this fails as well, the result of the last whole round is on the disk and the first error is the one to show.
    const result = await save('partial', true).catch(() => resultNow('partial'));
    return { result, ended };
  }
}

/** One round: every group once. `place` counts kept rounds and decides the order. */
async function runRound(
  context: RunContext | RunElsewhere,
  events: RunEvents,
  place: number,
  soFar: readonly Comparison[],
  attempt: Omit<Attempt, 'onLoad'>,
): Promise<Map<string, VariantRound>> {
  const { plan } = context;
  const outcomes = new Map<string, VariantRound>();
  const order = orderOfRound(plan.groups, place, plan.run);
  let laterSeconds = secondsPerRound(plan) * roundsToLook(plan, place);
  for (const [index, group] of order.entries()) {
    const [seconds, startedAtMs] = [secondsPerGroup(plan, group), performance.now()];
    laterSeconds -= seconds;
    const variants = group.sides.map(({ variant }) => variant.name);
    const onLoad = (rps: number | null): void => {
      const secondsLeft =
        laterSeconds + Math.max(0, seconds - (performance.now() - startedAtMs) / 1000);
      events.load({ round: place, variants, rps, comparisons: soFar, secondsLeft });
    };
    onLoad(null);
    const outcomesOfGroup = await ('runGroup' in context
      ? context.runGroup(group, index + 1, { ...attempt, onLoad })
      : runGroup(context, group, index + 1, { ...attempt, onLoad }));
    for (const [variant, outcome] of outcomesOfGroup) {
      outcomes.set(variant, outcome);
      events.measured({ round: place, variant, outcome });
    }
  }
  return outcomes;
}
