// What a variant's load is laid on, opened and closed again: its server, and the network it may have.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { isHosted } from '../hosts/server-host.ts';
import { openNetwork, type Network } from '../network/network.ts';
import { configOf, isOwn, networkOf, pageOf } from '../scenario/catalogue.ts';
import { present } from '../present.ts';
import type { Load } from '../scenario/load/fit.ts';
import type { Page } from '../scenario/model.ts';
import { answerOfAll, isStarted, startServer, whyNotStoppable, workersFor, type RunningServer } from '../servers/index.ts';
import { RoundFailure } from './disturbance.ts';
import { setupToTry } from './plan.ts';
import type { Group, PlannedVariant } from './planned.ts';
import type { RunContext, Tried, VariantRound } from './round-types.ts';

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

/**
 * Starts every server of the plan once, in its network, and ends it again, so that a config, page, port or setting that is not
 * right shows before anything is measured. Returns what it found, by variant. What it wrote stays in the folder `check` when one does not start.
 * @throws UserError when a server does not start, Interrupted after a signal
 */
export async function tryServers(context: RunContext): Promise<ReadonlyMap<string, Tried>> {
  const { plan: { scenario, variants } } = context;
  const folder = join(context.folder, 'check');
  const bySetup = new Map<string, Tried>();
  const found = new Map<string, Tried>();
  for (const planned of variants) {
    const setup = setupToTry(scenario, planned);
    const tried = bySetup.get(setup) ?? await tryServer(context, planned, join(folder, planned.variant.name));
    bySetup.set(setup, tried);
    found.set(planned.variant.name, tried);
  }
  await rm(folder, { recursive: true, force: true });
  return found;
}

async function tryServer(context: RunContext, planned: PlannedVariant, folder: string): Promise<Tried> {
  const { server, network, stop } = await openStage(context, planned, folder);
  try {
    const check = { ...askedOf(context, planned), anyLength: isOwn(planned.variant.server) || undefined };
    const answer = await answerOfAll(server, check, context.interrupt.signal, network?.server.enter).catch((error: unknown) => withName(planned, error));
    const whyAlone = isStarted(server) ? whyNotStoppable(server.pid, server.processes()) : undefined;
    return { server: serverFacts(planned, server), answer, settings: network?.settings ?? [], whyAlone };
  } finally {
    await stop();
  }
}

/** What the load asks of a server. */
function askedOf({ plan: { scenario } }: RunContext, { variant, load }: PlannedVariant): { page: Page; protocol: Load['protocol']; request: Load; tls: Load['tls'] } {
  return { page: pageOf(scenario, variant), protocol: load.protocol, request: load, tls: load.tls };
}

/** What the result says of a server. */
export function serverFacts({ variant }: PlannedVariant, server: RunningServer): VariantRound['server'] {
  const { name, version, workers, redirections } = server;
  return { name, version, workers, config: configOf(variant.server), redirections, ...(isStarted(server) || isHosted(server) ? {} : { atAddress: true }) };
}

/** Opens the stages of all sides at once. None is left when it throws. */
export async function openStages(context: RunContext, { sides }: Group, round: number): Promise<Stage[]> {
  const opened = await Promise.allSettled(sides.map((planned) => openStage(context, planned, join(roundFolder(context.folder, round), planned.variant.name))));
  const stages = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed === undefined) return stages;
  await stopAll(stages);
  context.interrupt.signal.throwIfAborted();
  return asRoundFailure(failed.reason);
}

export async function stopAll(stages: readonly Stage[]): Promise<void> {
  await Promise.all(stages.map((stage) => stage.stop()));
}

function withName({ variant: { name } }: PlannedVariant, error: unknown): never {
  throw error instanceof UserError ? new UserError(`${name}: ${error.message}`, error.exitCode) : error;
}

export function asRoundFailure(error: unknown): never {
  throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
}

/**
 * Opens the variant's network, if it has one, and starts its server there, with its config and logs in `folder`. Nothing is left
 * when it throws: a UserError begins with the variant's name.
 */
async function openStage(context: RunContext, planned: PlannedVariant, folder: string): Promise<Stage> {
  const { plan, tools, interrupt, host } = context;
  const { scenario, cores } = plan;
  const spec = networkOf(scenario, planned.variant);
  let network: Network | null = null;
  try {
    network = spec === undefined ? null : await openNetwork({ binary: tools.delaylink as string, spec, cores, interrupt });
    const server = await (host?.start ?? startServer)(planned.variant.server, {
      binaries: tools.servers,
      folder,
      cpus: cores.serverCpus,
      workers: workersFor(planned.variant.server, cores.serverCpus.length, plan.exact),
      ...askedOf(context, planned),
      connections: planned.load.connections,
      trustConfig: plan.trustConfig,
      ...present({ network: network?.server }),
      signal: interrupt.signal,
    });
    return {
      planned,
      server,
      network,
      died: (network === null ? server.died : Promise.race([server.died, network.died])).then((how) => `${planned.variant.name}: ${how}`),
      async stop() {
        await server.stop();
        await network?.stop();
      },
    };
  } catch (error) {
    await network?.stop();
    return withName(planned, error);
  }
}
