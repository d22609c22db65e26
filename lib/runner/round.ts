// One variant in one round: the server anew, the load on it, what both used, and whether every sample was stored.
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import type { Load } from '../scenario/load.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { startServer, workersFor, type RunningServer } from '../servers/index.ts';
import { checkRound, serverSamplePoints, type RoundIntegrity, type ServerSample, type Store } from '../store/index.ts';
import type { Interrupt } from './interrupt.ts';
import { k6GraceMs, startK6 } from './k6.ts';
import { loadPlanFor, type Plan, type PlannedVariant } from './plan.ts';
import { RecordTail } from './record.ts';
import type { LoadResult, Phase, VariantResult } from './result.ts';
import { sampleUsage, usageBetween } from './server-usage.ts';

/** What every round of a run has in common. */
export interface RunContext {
  plan: Plan;
  /** Paths of the binaries: k6 and the plan's servers. */
  tools: { k6: string; servers: Partial<Record<ServerSpec['name'], string>> };
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

/**
 * Starts every server of the plan once and ends it again, so that a config, page or port that is not right shows before
 * anything is measured. What it wrote stays in the folder `check` when one does not start.
 * @throws UserError when a server does not start, Interrupted after a signal
 */
export async function tryServers(context: RunContext): Promise<void> {
  const folder = join(context.folder, 'check');
  const tried = new Set<string>();
  for (const planned of context.plan.variants) {
    const { variant: { name, server: spec }, load: { protocol, tls, connections } } = planned;
    // Variants may differ in their load alone.
    const setup = JSON.stringify([spec, protocol, tls, connections]);
    if (tried.has(setup)) continue;
    tried.add(setup);
    const server = await serverOf(context, planned, join(folder, name)).catch((error: unknown) => {
      throw error instanceof UserError ? new UserError(`${name}: ${error.message}`) : error;
    });
    await server.stop();
  }
  await rm(folder, { recursive: true, force: true });
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
    const phases = phasesOf(measurement, planned.load);
    const integrity = await storeSamples(context, planned, attempt.round, measurement, phases);
    const { name, version, workers, redirections } = server;
    return { server: { name, version, workers, config: variant.server.config, redirections }, phases, integrity };
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
    page: plan.scenario.page,
    protocol: load.protocol,
    tls: load.tls,
    connections: load.connections,
    signal: interrupt.signal,
  });
}

/** How long k6 may take beyond its own limit, e.g. for a database that hangs. */
const k6PatienceSeconds = 30;

/** What k6 and the server left to be put together. */
interface Measurement { results: LoadResult[]; samples: readonly ServerSample[]; recordFile: string }

/** Runs k6 against the server until it ends, or ends it when the server dies or the person interrupts. */
async function underLoad(
  context: RunContext, server: RunningServer, planned: PlannedVariant, { round, onLoad }: Attempt, folder: string,
): Promise<Measurement> {
  const { plan, store, interrupt } = context;
  const loadPlan = loadPlanFor(plan, planned, round, server.origin + plan.scenario.page.path);
  interrupt.signal.throwIfAborted();
  const k6 = await startK6({
    binary: context.tools.k6,
    script: context.script,
    folder,
    cpus: plan.cores.generatorCpus,
    loadPlan,
    output: store?.k6Output() ?? null,
  });
  // From here on all that runs is ended below.
  const sampler = sampleUsage(server);
  const unguard = interrupt.guard(k6.child.pid);
  const tail = new RecordTail(k6.recordFile);
  const ticker = setInterval(() => onLoad(tail.requestsPerSecond()), 500);
  const over = new AbortController();
  try {
    interrupt.signal.throwIfAborted();
    const failure = await Promise.race([
      k6.child.exited.then(() => undefined),
      server.died,
      once(interrupt.signal, 'abort', { signal: over.signal }).then(() => undefined, () => undefined),
      delay((loadPlan.maxDurationSeconds + k6PatienceSeconds) * 1000, 'k6 did not end in time', { signal: over.signal }).catch(() => undefined),
    ]);
    if (failure !== undefined) throw new RoundFailure(failure);
    interrupt.signal.throwIfAborted();
    sampler.stop();
    const results = await k6.results().catch((error: Error) => {
      throw new RoundFailure(error.message);
    });
    return { results, samples: sampler.samples, recordFile: k6.recordFile };
  } finally {
    over.abort();
    clearInterval(ticker);
    sampler.stop();
    await k6.child.stop(k6GraceMs);
    unguard();
  }
}

/** Puts the engine's results and the server's usage within their windows together. */
function phasesOf({ results, samples }: Measurement, { warmupSeconds }: Load): Phase[] {
  return results.map((result) => {
    const { cpuSeconds, rssBytes } = usageBetween(samples, {
      fromMs: Date.parse(result.startedAt), toMs: Date.parse(result.endedAt), idleBefore: warmupSeconds === 0,
    });
    return { ...result, serverCpuSeconds: cpuSeconds, serverRssBytes: rssBytes, generatorCpuSeconds: result.cpuSeconds, noise: null };
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
