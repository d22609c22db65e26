// What a variant's load is laid on, opened and closed again: its server, and the network it may have.
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { isHosted } from '../hosts/server-host.ts';
import { openNetwork, type Network } from '../network/network.ts';
import { configOf, isOwn, networkOf, pageOf } from '../scenario/catalogue.ts';
import { present } from '../present.ts';
import type { Load } from '../scenario/load/fit.ts';
import type { Page } from '../scenario/model.ts';
import {
  answerOfAll,
  isStarted,
  startServer,
  workersFor,
  type RunningServer,
} from '../servers/index.ts';
import { RoundFailure } from './disturbance.ts';
import type { Group, PlannedVariant } from './planned.ts';
import type { Attempt, BegunServer, RunContext, VariantRound } from './round-types.ts';

/** What a variant's load is laid on. */
export interface Stage {
  planned: PlannedVariant;
  server: RunningServer;
  /** null on loopback. */
  network: Network | null;
  /** Settles when one of the two ends by itself, with one line that says how. */
  died: Promise<string>;
  /** Ends both. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** What a round leaves, below the run's folder: a folder for each variant, with what its server left, and one for each k6. */
export function roundFolder(runFolder: string, round: number): string {
  return join(runFolder, `round-${round}`);
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

export function asRoundFailure(error: unknown): never {
  throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
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
