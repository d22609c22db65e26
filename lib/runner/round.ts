// One group in one round: starts its networks and servers, loads them, checks the figures and stores them.
import {
  asRoundFailure,
  RoundFailure,
  type Attempt,
  type RunContext,
  type VariantRound,
  type Stage,
  type BegunServer,
} from './round-types.ts';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { succeeded } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { isHosted } from '../hosts/server-host.ts';
import type { Phase } from '../result/result.ts';
import { pageOf, configOf, isOwn, networkOf } from '../scenario/variants.ts';
import type { Within, Page } from '../scenario/model.ts';
import {
  isStarted,
  type Answer,
  type RunningServer,
  answerOfAll,
  startServer,
  workersFor,
} from '../servers/index.ts';
import { alarmsIn, type LogAlarms } from '../servers/lifecycle.ts';
import { bodiesDiffer, requireSound, withCrash } from './disturbance.ts';
import type { Group, PlannedVariant } from './plan.ts';
import { foundIn, stepsIn } from './search.ts';
import { roundFolder } from './results-folder.ts';
import { storeSamples } from './store-result.ts';
import { phasesOf, underLoad, type Measurement } from './under-load.ts';
import { UserError } from '../errors.ts';
import { openNetwork, type Network } from '../network/network.ts';
import { present } from '../present.ts';
import type { Load } from '../scenario/load.ts';

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

/** What the load asks of a server. */
function askedOf(
  { plan: { scenario } }: RunContext,
  { variant, load }: PlannedVariant,
): { page: Page; protocol: Load['protocol']; request: Load; tls: Load['tls'] } {
  return { page: pageOf(scenario, variant), protocol: load.protocol, request: load, tls: load.tls };
}

/** What the result says of a server. */
export function serverFacts(
  { variant }: PlannedVariant,
  server: RunningServer,
): VariantRound['server'] {
  const { name, version, workers, redirections } = server;
  return {
    name,
    version,
    workers,
    config: configOf(variant.server),
    redirections,
    ...(isStarted(server) || isHosted(server) ? {} : { atAddress: true }),
  };
}

/**
 * Opens the stages of all sides at once. None is left when it throws. Servers that run already are taken over, and end where they are
 * of another group: they would disturb this one, or have a port of its.
 * @throws UserError where a server is started for the first time: its config, page, port or setting is not right; RoundFailure later
 */
export async function openStages(
  context: RunContext,
  { sides }: Group,
  { round, tried }: Pick<Attempt, 'round' | 'tried'>,
): Promise<Stage[]> {
  const isFirst = tried !== undefined && sides.some(({ variant }) => !tried.has(variant.name));
  const begun = new Map(context.begun);
  context.begun?.clear();
  await Promise.all(
    [...begun].map(([name, { server }]) =>
      sides.some(({ variant }) => variant.name === name) ? undefined : server.stop(),
    ),
  );
  const opened = await Promise.allSettled(
    sides.map(async (planned) => {
      const { name } = planned.variant;
      return openStage(
        context,
        planned,
        join(roundFolder(context.folder, round), name),
        begun.get(name),
        tried,
      );
    }),
  );
  const stages = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed === undefined) return stages;
  await stopAll(stages);
  context.interrupt.signal.throwIfAborted();
  if (isFirst) throw failed.reason;
  return asRoundFailure(failed.reason);
}

export async function stopAll(stages: readonly Stage[]): Promise<void> {
  await Promise.all(stages.map((stage) => stage.stop()));
}

/** Opens the variant's network and starts its server, unless it has `begun`; notes it in `tried`. Nothing is left when it throws. */
async function openStage(
  context: RunContext,
  planned: PlannedVariant,
  folder: string,
  begun: BegunServer | undefined,
  tried: Attempt['tried'],
): Promise<Stage> {
  const { plan, tools, interrupt, host } = context;
  const { scenario, cores } = plan;
  const { name, server: serverSpec } = planned.variant;
  const spec = networkOf(scenario, planned.variant);
  let network: Network | null = null;
  let server = begun?.server;
  try {
    network =
      spec === undefined
        ? null
        : await openNetwork({ binary: tools.delaylink as string, spec, cores, interrupt });
    server ??= await (host?.start ?? startServer)(serverSpec, {
      binaries: tools.servers,
      folder,
      cpus: cores.serverCpus,
      workers: workersFor(serverSpec, cores.serverCpus.length, plan.exact),
      ...askedOf(context, planned),
      connections: planned.load.connections,
      trustConfig: plan.trustConfig,
      ...present({ network: network?.server }),
      signal: interrupt.signal,
    });
    if (tried?.has(name) === false) {
      const check = { ...askedOf(context, planned), anyLength: isOwn(serverSpec) || undefined };
      const answer =
        begun?.answer ??
        (await answerOfAll(server, check, interrupt.signal, network?.server.enter));
      tried.set(name, {
        server: serverFacts(planned, server),
        answer,
        settings: network?.settings ?? [],
      });
    }
    const died = network === null ? server.died : Promise.race([server.died, network.died]);
    return { planned, server, network, died: died.then((how) => `${name}: ${how}`), stop };
  } catch (error) {
    await stop();
    throw error instanceof UserError
      ? new UserError(`${name}: ${error.message}`, error.exitCode)
      : error;
  }

  async function stop(): Promise<void> {
    await server?.stop();
    await network?.stop();
  }
}
