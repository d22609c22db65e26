// A group in a round: starts its networks and servers, loads them, checks the figures and stores them.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { succeeded } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { isHosted } from '../hosts/server-host.ts';
import { openNetwork, type Network } from '../network/network.ts';
import { present } from '../present.ts';
import type { Phase } from '../result/result.ts';
import { configOf, isOwn, networkOf, pageOf } from '../scenario/variants.ts';
import {
  answerOfAll,
  isStarted,
  startServer,
  workersFor,
  type RunningServer,
} from '../servers/index.ts';
import { alarmsIn, type LogAlarms } from '../servers/lifecycle.ts';
import { bodiesDiffer, requireSound, withCrash } from './disturbance.ts';
import {
  asRoundFailure,
  RoundFailure,
  type Group,
  type PlannedVariant,
  type Attempt,
  type BegunServer,
  type RunContext,
  type Stage,
  type VariantRound,
} from './plan.ts';
import { writeMixFiles } from './k6-plan.ts';
import type { Variant } from '../scenario/model.ts';
import { roundFolder } from './results-folder.ts';
import { searchIn } from './search.ts';
import { storeSamples } from './store-result.ts';
import { phasesOf, underLoad, type Measurement } from './under-load.ts';

/**
 * Loads a group in a round, and returns the outcome of each variant. Ends everything that it started.
 * @param place of the group in the round, from 1
 * @throws UserError if a server does not start or answer right for the first time; Interrupted after a signal
 * @throws RoundFailure if a server, network or k6 fails later; Disturbance if the figures cannot be trusted
 */
export async function runGroup(
  context: RunContext,
  group: Group,
  place: number,
  attempt: Attempt,
): Promise<Map<string, VariantRound>> {
  const folder = join(roundFolder(context.folder, attempt.round), `k6-${place}`);
  await mkdir(folder, { recursive: true });
  const stages = await openStages(context, group, attempt);
  const answered = await asAnswered(context, group, attempt.tried);
  try {
    const measured = await underLoad(
      answered.context,
      answered.group,
      stages,
      attempt,
      folder,
    ).catch(async (error: unknown) => {
      throw error instanceof RoundFailure
        ? withCrash(error, await Promise.all(stages.map(alarmsOf)))
        : error;
    });
    // The end of a server writes to its log too.
    const alarms = await Promise.all(stages.map(alarmsOf));
    await stopAll(stages);
    // All sides are checked before any samples are stored.
    const outcomes = stages.map((_, side) =>
      outcomeOf(context, stages, side, attempt, measured, alarms[side] as LogAlarms),
    );
    return new Map(
      await Promise.all(
        stages.map(async ({ planned }, side) => {
          const measurement = measured[side] as Measurement;
          const outcome = outcomes[side] as Omit<VariantRound, 'integrity'>;
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
  }
}

/** The group with the statuses that its servers answered a log's requests with, and the files of these requests. */
async function asAnswered(
  context: RunContext,
  group: Group,
  tried: Attempt['tried'],
): Promise<{ context: RunContext; group: Group }> {
  const { plan, folder } = context;
  const withAnswered = <V extends Variant>(variant: V) => {
    const page = pageOf(plan.scenario, variant);
    const requests = tried?.get(variant.name)?.answer.requests ?? page.requests;
    return requests === page.requests
      ? variant
      : { ...variant, page: present({ ...page, requests }) };
  };
  const sides = group.sides.map((side) => ({ ...side, variant: withAnswered(side.variant) }));
  if (sides.every(({ variant }, index) => variant === group.sides[index]?.variant))
    return { context, group };
  const scenario = { ...plan.scenario, variants: plan.scenario.variants.map(withAnswered) };
  await writeMixFiles(scenario, folder);
  return { context: { ...context, plan: { ...plan, scenario } }, group: { ...group, sides } };
}

async function alarmsOf({ planned: { variant }, server }: Stage): Promise<LogAlarms> {
  if (isStarted(server)) return alarmsIn(server.logFile, variant.server.name);
  return isHosted(server) ? server.alarms() : {};
}

/** Checks a side's measurement and returns its round. */
function outcomeOf(
  { plan, generators = [] }: RunContext,
  stages: readonly Stage[],
  side: number,
  attempt: Attempt,
  measured: readonly Measurement[],
  alarms: LogAlarms,
): Omit<VariantRound, 'integrity'> {
  const { planned, server } = stages[side] as Stage;
  const measurement = measured[side] as Measurement;
  const { scenario, within, cores } = plan;
  const { name } = planned.variant;
  // The use of cores by others is read here and where the servers are.
  const othersAreKnown = stages.every(
    (one) => isStarted(one.server) || (isHosted(one.server) && generators.length === 0),
  );
  const all = phasesOf(measurement, planned, plan, server, othersAreKnown);
  const facts = serverFacts(planned, server);
  let phases = all;
  let search: VariantRound['search'];
  // In a search only the reported step, which is chosen from sound ones, needs samples without a gap.
  requireSound(
    planned,
    measurement,
    { all, told: within === undefined ? all : [] },
    server,
    alarms,
  );
  if (within !== undefined) {
    const { outcomes } = measurement;
    const known = attempt.search?.known.get(name) ?? [];
    search = searchIn(planned, facts, all, outcomes, side, within, cores, known, attempt.round);
    phases = [all[search.found.step] as Phase];
    requireSound(planned, measurement, { all, told: phases }, server, alarms);
  }
  const severalPages = pageOf(scenario, planned.variant).requests !== undefined;
  const firstAnswer = severalPages ? attempt.tried?.get(name)?.answer : undefined;
  const requests = total(all, (phase) => phase.requests);
  return {
    server: facts,
    phases,
    requests,
    alarm: alarms.first,
    lastWords: total(phases, succeeded) < requests ? alarms.last : undefined,
    otherBodies: bodiesDiffer(planned, all, firstAnswer ?? server.answer),
    ...present({ search }),
    // After a warm-up packets are counted at the window's ends, and later ones do not matter.
    restless: planned.load.warmupSeconds === 0 && measurement.link?.report.quiet === false,
    recordFile: measurement.recordFile,
  };
}

/** The server as the result describes it. */
function serverFacts({ variant }: PlannedVariant, server: RunningServer): VariantRound['server'] {
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
 * Starts the servers and networks of all sides at once, and takes over servers that run already; those of other groups are stopped.
 * Leaves none when it throws.
 * @throws UserError if a server's first start fails, RoundFailure for later starts
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
    sides.map((planned) =>
      openStage(context, planned, round, begun.get(planned.variant.name), tried),
    ),
  );
  const stages = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed === undefined) return stages;
  await stopAll(stages);
  context.signal.throwIfAborted();
  if (isFirst) throw failed.reason;
  return asRoundFailure(failed.reason);
}

async function stopAll(stages: readonly Stage[]): Promise<void> {
  await Promise.all(stages.map((stage) => stage.stop()));
}

/** Opens the variant's network and starts its server, unless it has `begun`. Notes a first start in `tried`. */
async function openStage(
  { plan, tools, signal, host, folder: runFolder }: RunContext,
  planned: PlannedVariant,
  round: number,
  begun: BegunServer | undefined,
  tried: Attempt['tried'],
): Promise<Stage> {
  const { scenario, cores } = plan;
  const { variant, load } = planned;
  const { name, server: serverSpec } = variant;
  const spec = networkOf(scenario, variant);
  const { protocol, tls } = load;
  const asked = { page: pageOf(scenario, variant), protocol, request: load, tls };
  let network: Network | null = null;
  let server = begun?.server;
  const stop = async () => {
    await server?.stop();
    await network?.stop();
  };
  try {
    if (spec !== undefined)
      network = await openNetwork({
        binary: tools.delaylink as string,
        spec,
        // In a round all sides lose the same packets.
        seed: round,
        cores,
        signal,
      });
    server ??= await (host?.start ?? startServer)(serverSpec, {
      ...asked,
      binaries: tools.servers,
      folder: join(roundFolder(runFolder, round), name),
      cpus: cores.serverCpus,
      workers: workersFor(serverSpec, cores.serverCpus.length, plan.exact),
      connections: load.connections,
      ...present({ network: network?.server }),
      signal,
    });
    if (tried?.has(name) === false) {
      const check = { ...asked, anyLength: isOwn(serverSpec) || undefined };
      const answer =
        begun?.answer ?? (await answerOfAll(server, check, signal, network?.server.enter));
      const settings = network?.settings ?? [];
      tried.set(name, { server: serverFacts(planned, server), answer, settings });
    }
    const died = network === null ? server.died : Promise.race([server.died, network.died]);
    return { planned, server, network, died: died.then((how) => `${name}: ${how}`), stop };
  } catch (error) {
    await stop();
    throw error instanceof UserError
      ? new UserError(`${name}: ${error.message}`, error.exitCode)
      : error;
  }
}
