// One group in one round: its networks and servers anew, the load on them, and what it came to.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { succeeded } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { isHosted } from '../hosts/server-host.ts';
import type { Phase } from '../result/result.ts';
import { pageOf } from '../scenario/catalogue.ts';
import type { Within } from '../scenario/model.ts';
import { isStarted, type Answer, type RunningServer } from '../servers/index.ts';
import { alarmsIn, type LogAlarms } from '../servers/lifecycle.ts';
import { bodiesDiffer, requireSound, RoundFailure, withCrash } from './disturbance.ts';
import type { Group, PlannedVariant } from './planned.ts';
import type { Attempt, RunContext, VariantRound } from './round-types.ts';
import { foundIn, stepsIn } from './search.ts';
import { openStages, roundFolder, serverFacts, stopAll, type Stage } from './stage.ts';
import { storeSamples } from './store-result.ts';
import { phasesOf, underLoad, type Measurement } from './under-load.ts';

/**
 * Loads one group in one round, and returns what each of its sides came to. Everything it started has ended when it returns or throws.
 * @param place of the group among the round's, from 1
 * @throws UserError when a server does not start or answer as it should for the first time; Interrupted after a signal
 * @throws RoundFailure when a server, network or k6 failed later; Disturbance when something else made the figures wrong
 */
export async function runGroup(
  context: RunContext,
  group: Group,
  place: number,
  attempt: Attempt,
): Promise<Map<string, VariantRound>> {
  const {
    plan: { within },
  } = context;
  const folder = join(roundFolder(context.folder, attempt.round), `k6-${place}`);
  await mkdir(folder, { recursive: true });
  const stages = await openStages(context, group, attempt);
  const started = stages.flatMap(({ server }) => (isStarted(server) ? [server] : []));
  const unguards = started.map(({ pid }) => context.interrupt.guard(pid));
  try {
    const alarmsOf = async ({ planned: { variant }, server }: Stage): Promise<LogAlarms> =>
      isStarted(server)
        ? alarmsIn(server.logFile, variant.server.name)
        : isHosted(server)
          ? server.alarms()
          : {};
    const measured = await underLoad(context, group, stages, attempt, folder).catch(
      async (error: unknown) => {
        throw error instanceof RoundFailure
          ? withCrash(error, await Promise.all(stages.map(alarmsOf)))
          : error;
      },
    );
    // Before the servers are told to end, which their logs tell as well.
    const alarms = await Promise.all(stages.map(alarmsOf));
    await stopAll(stages);
    // What else used the cores of both sides is read where the servers are, and here.
    const othersAreKnown = stages.every(
      (one) =>
        isStarted(one.server) || (isHosted(one.server) && (context.generators ?? []).length === 0),
    );
    // All of them before anything is stored for good: a round is whole or is not.
    const sound = stages.map(({ planned, server }, side) => {
      const measurement = measured[side] as Measurement;
      const ofLog = alarms[side] as LogAlarms;
      const all = phasesOf(measurement, planned, context.plan, server, othersAreKnown);
      // Which step of a search is told is known once it is sound.
      requireSound(
        planned,
        measurement,
        { all, told: within === undefined ? all : [] },
        server,
        ofLog,
      );
      const search =
        within === undefined
          ? undefined
          : searched(planned, measurement, all, server, side, within);
      const phases = search === undefined ? all : [all[search.found.step] as Phase];
      if (search !== undefined)
        requireSound(planned, measurement, { all, told: phases }, server, ofLog);
      const requests = total(all, (phase) => phase.requests);
      return {
        planned,
        measurement,
        outcome: {
          server: serverFacts(planned, server),
          phases,
          requests,
          alarm: ofLog.first,
          lastWords: total(phases, succeeded) < requests ? ofLog.last : undefined,
          otherBodies: bodiesDiffer(planned, all, answerOf(planned, server)),
          ...(search === undefined ? {} : { search }),
          // Where the load has a window, packets are counted at its ends, and what is on its way after them is of no matter.
          restless: planned.load.warmupSeconds === 0 && measurement.link?.report.quiet === false,
          recordFile: measurement.recordFile,
        },
      };
    });
    return new Map(
      await Promise.all(
        sound.map(async ({ planned, measurement, outcome }) => {
          const integrity = await storeSamples(
            context,
            planned,
            attempt.round,
            measurement,
            outcome.requests,
          );
          return [planned.variant.name, { ...outcome, integrity }] as const;
        }),
      ),
    );
  } finally {
    await stopAll(stages);
    for (const unguard of unguards) unguard();
  }

  function answerOf({ variant }: PlannedVariant, { answer }: RunningServer): Answer {
    return pageOf(context.plan.scenario, variant).weights === undefined
      ? answer
      : (attempt.tried?.get(variant.name)?.answer ?? answer);
  }

  /** @throws UserError where no rate keeps the limit */
  function searched(
    planned: PlannedVariant,
    { outcomes }: Measurement,
    phases: readonly Phase[],
    server: RunningServer,
    side: number,
    limit: Within,
  ): NonNullable<VariantRound['search']> {
    const names = group.sides.map(({ variant }) => variant.name);
    const { name } = planned.variant;
    return {
      found: foundIn(
        planned,
        serverFacts(planned, server),
        phases,
        outcomes,
        side,
        limit,
        context.plan.cores,
        attempt.search?.known.get(name) ?? [],
      ),
      steps: outcomes
        .flatMap((outcome) => stepsIn(outcome, names, limit, attempt.round))
        .filter(({ variant }) => variant === name),
    };
  }
}
