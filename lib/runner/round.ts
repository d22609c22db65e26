// One variant in one round: the server anew, the load on it, what both used, and whether every sample was stored.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { pageOf } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { startServer, workersFor, type RunningServer } from '../servers/index.ts';
import { checkRound, serverSamplePoints, type RoundIntegrity, type Store } from '../store/index.ts';
import { sharesCores, type Cores } from './cores.ts';
import type { Interrupt } from './interrupt.ts';
import { LoadFailure, runK6 } from './k6.ts';
import { interruptsApart, watchMachine, watchProcess } from './machine-usage.ts';
import { noiseBetween, type NoiseCores } from './noise.ts';
import { loadPlanFor, type Plan, type PlannedVariant } from './plan.ts';
import { RecordTail } from './record.ts';
import type { LoadResult, Phase, VariantResult } from './result.ts';
import { sampleUsage, usageBetween, type UsageSample } from './server-usage.ts';

/** What every round of a run has in common. */
export interface RunContext {
  plan: Plan;
  /** Paths of the binaries: k6, what the generator's own ceiling is found with, where there is one, and the plan's servers. */
  tools: { k6: string; responder: string | undefined; servers: Partial<Record<ServerSpec['name'], string>> };
  /** results/<run> */
  folder: string;
  script: string;
  /** null with `--store none`. */
  store: Store | null;
  interrupt: Interrupt;
}

export interface VariantRound {
  server: NonNullable<VariantResult['server']>;
  phases: Phase[];
  /** null with `--store none`. */
  integrity: RoundIntegrity | null;
}

/** One try at a round. */
export interface Attempt {
  /** Names it, in folders and tags. */
  round: number;
  /** Called about twice a second with requests/s of the last second, null before the first. */
  onLoad(rps: number | null): void;
}

/** The round has to be repeated; the message says why in one line. */
export class RoundFailure extends Error {}

/** What a server said of itself when it was tried. */
export interface Tried { server: VariantRound['server']; origin: string; bodyBytes: number }

/**
 * Starts every server of the plan once and ends it again, so that a config, page or port that is not right shows before
 * anything is measured. Returns what it found, by variant. What it wrote stays in the folder `check` when one does not start.
 * @throws UserError when a server does not start, Interrupted after a signal
 */
export async function tryServers(context: RunContext): Promise<ReadonlyMap<string, Tried>> {
  const { plan: { scenario, variants } } = context;
  const folder = join(context.folder, 'check');
  const bySetup = new Map<string, Tried>();
  const found = new Map<string, Tried>();
  for (const planned of variants) {
    const { variant, load: { protocol, tls, connections } } = planned;
    // Variants may differ in their load alone.
    const setup = JSON.stringify([variant.server, pageOf(scenario, variant), protocol, tls, connections]);
    const tried = bySetup.get(setup) ?? await tryServer(context, planned, join(folder, variant.name));
    bySetup.set(setup, tried);
    found.set(variant.name, tried);
  }
  await rm(folder, { recursive: true, force: true });
  return found;
}

async function tryServer(context: RunContext, planned: PlannedVariant, folder: string): Promise<Tried> {
  const server = await serverOf(context, planned, folder).catch((error: unknown) => {
    throw error instanceof UserError ? new UserError(`${planned.variant.name}: ${error.message}`) : error;
  });
  await server.stop();
  return { server: serverFacts(planned, server), origin: server.origin, bodyBytes: server.bodyBytes };
}

/** What the result says of a server. */
function serverFacts({ variant }: PlannedVariant, { name, version, workers, redirections }: RunningServer): VariantRound['server'] {
  return { name, version, workers, config: variant.server.config, redirections };
}

/**
 * Runs one variant in one round. Everything it started has ended when it returns or throws.
 * @throws RoundFailure when the server or k6 ended early, or the server does not start: it did before, so it is not its config's fault
 * @throws Interrupted after a signal
 */
export async function runVariantRound(context: RunContext, planned: PlannedVariant, attempt: Attempt): Promise<VariantRound> {
  const { variant } = planned;
  const folder = join(context.folder, `round-${attempt.round}`, variant.name);
  const server = await serverOf(context, planned, folder).catch((error: unknown) => {
    throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
  });
  const unguard = context.interrupt.guard(server.pid);
  try {
    const measurement = await underLoad(context, server, planned, attempt, folder);
    await server.stop();
    const phases = phasesOf(measurement, planned.load, context.plan.cores);
    const integrity = await storeSamples(context, planned, attempt.round, measurement, phases);
    return { server: serverFacts(planned, server), phases, integrity };
  } finally {
    await server.stop();
    unguard();
  }
}

/** Starts the variant's server, with its config and logs in `folder`. */
function serverOf({ plan, tools, interrupt }: RunContext, { variant, load }: PlannedVariant, folder: string): Promise<RunningServer> {
  return startServer(variant.server, {
    binary: tools.servers[variant.server.name] as string,
    folder,
    cpus: plan.cores.serverCpus,
    workers: workersFor(variant.server, plan.cores.serverCpus.length, plan.exact),
    page: pageOf(plan.scenario, variant),
    protocol: load.protocol,
    request: load,
    tls: load.tls,
    connections: load.connections,
    signal: interrupt.signal,
  });
}

/** What k6 and the server left to be put together. */
interface Measurement { results: LoadResult[]; samples: readonly UsageSample[]; recordFile: string }

/** Runs k6 against the server, and samples what both use. */
async function underLoad(
  context: RunContext, server: RunningServer, planned: PlannedVariant, { round, onLoad }: Attempt, folder: string,
): Promise<Measurement> {
  const { plan: { cores, scenario }, store, interrupt } = context;
  let samples: readonly UsageSample[] = [];
  let recordFile = '';
  const results = await runK6({
    binary: context.tools.k6,
    script: context.script,
    folder,
    cpus: cores.generatorCpus,
    loadPlan: loadPlanFor(context.plan, planned, round, server.origin + pageOf(scenario, planned.variant).path),
    output: store?.k6Output() ?? null,
  }, {
    interrupt,
    peerDied: server.died,
    watch(k6) {
      const sampler = sampleUsage({
        server: server.usage, generator: watchProcess(k6.child.pid), machine: watchMachine(cores.serverCpus, cores.generatorCpus),
      });
      samples = sampler.samples;
      recordFile = k6.recordFile;
      const tail = new RecordTail(k6.recordFile);
      const ticker = setInterval(() => onLoad(tail.requestsPerSecond()), 500);
      return () => {
        clearInterval(ticker);
        sampler.stop();
      };
    },
  }).catch((error: unknown) => {
    throw error instanceof LoadFailure ? new RoundFailure(error.message) : error;
  });
  return { results, samples, recordFile };
}

/** Puts the engine's results and what was sampled within their windows together. */
function phasesOf({ results, samples }: Measurement, { warmupSeconds }: Load, cores: Cores): Phase[] {
  const counts: NoiseCores = { server: cores.serverCpus.length, generator: cores.generatorCpus.length, shared: sharesCores(cores), interruptsApart: interruptsApart() };
  return results.map((result) => {
    const window = { fromMs: Date.parse(result.startedAt), toMs: Date.parse(result.endedAt) };
    const { cpuSeconds, rssBytes } = usageBetween(samples, { ...window, idleBefore: warmupSeconds === 0 });
    return {
      ...result, serverCpuSeconds: cpuSeconds, serverRssBytes: rssBytes, generatorCpuSeconds: result.cpuSeconds, noise: noiseBetween(samples, window, counts), network: null,
    };
  });
}

/** Makes sure that the database holds what k6 sent, and gives it the server's usage. */
async function storeSamples(
  { store, plan }: RunContext, { variant }: PlannedVariant, round: number, { samples, recordFile }: Measurement, phases: readonly Phase[],
): Promise<RoundIntegrity | null> {
  if (store === null) return null;
  const requests = phases.reduce((sum, phase) => sum + phase.requests, 0);
  const integrity = await checkRound(store, { run: plan.run, variant: variant.name, round, recordFile, requests });
  const tags = { run: plan.run, scenario: plan.scenario.name, variant: variant.name, round: String(round), server: variant.server.name };
  try {
    await store.write(serverSamplePoints(tags, samples));
  } catch (error) {
    // The round is whole; a database that fails only now must not cost it.
    if (!(error instanceof UserError)) throw error;
    integrity.problems.push(error.message);
  }
  return integrity;
}
