// One group in one round: its networks and servers anew, the load on them, what all used, and whether every sample was stored.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { responsesOf, succeeded } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { whole } from '../format.ts';
import type { PhaseOutcome } from '../k6/load-plan.ts';
import type { LinkCounts, LinkReport } from '../network/link-messages.ts';
import type { GeneratorHost } from '../hosts/generator-host.ts';
import { isHosted, type ServerHost } from '../hosts/server-host.ts';
import { openNetwork, type Network } from '../network/network.ts';
import { configOf, isConfigured, isOwn, networkOf, pageOf, programOf } from '../scenario/catalogue.ts';
import type { ServerName, Within } from '../scenario/model.ts';
import { answerOfAll, endWithUs, isStarted, startServer, stoppedIn, watchUpstreams, whyNotStoppable, workersFor, type Answer, type RunningServer } from '../servers/index.ts';
import { checkRound, serverSamplePoints, type RoundIntegrity, type Store } from '../store/index.ts';
import { machineClock } from '../machine/clock.ts';
import { sharesCores } from '../machine/cores.ts';
import { RoundFailure } from './disturbance.ts';
import type { Interrupt } from '../interrupt.ts';
import { windowBounds } from './estimate.ts';
import type { Group, Plan, PlannedVariant } from './planned.ts';
import { LoadFailure, recordFileIn, runK6, startK6, type RunningK6 } from './k6.ts';
import { startK6There } from './k6-there.ts';
import { interruptsApart, watchMachine } from '../machine/usage.ts';
import { watchProcess } from '../servers/usage.ts';
import { networkUseBetween, sampleLink } from './network-usage.ts';
import { noiseBetween, type NoiseCores } from './noise.ts';
import { expectedOf, loadPlanFor, setupToTry } from './plan.ts';
import { RecordTail, watchConsole } from './record.ts';
import type { LoadResult, Phase, SearchStep, VariantResult } from '../result/result.ts';
import { foundIn, searchStarts, stepsIn, type FoundInRound, type SearchRound } from './search.ts';
import { alarmsIn, type LogAlarms } from '../servers/server-log.ts';
import { sampleUsage, sparse, usageBetween, withServer, type UsageSample, type UsageSampler } from './server-usage.ts';
import { bodiesDiffer, isRestless, requireSound, windowOf, withCrash } from './sound.ts';
import { watchThrottling } from '../machine/throttling.ts';

/** What every round of a run has in common, wherever it is run. */
export interface RunBase {
  plan: Plan;
  /** results/<run> */
  folder: string;
  /** null with `--store none`. */
  store: Store | null;
  interrupt: Interrupt;
}

/** A run whose servers and load are not started here, or on hosts. `runGroup`: as the one below. */
export interface RunElsewhere extends RunBase {
  runGroup(group: Group, place: number, attempt: Attempt): Promise<Map<string, VariantRound>>;
}

export interface RunContext extends RunBase {
  /** Paths of the binaries: k6, delaylink beside it (undefined: not there), and the plan's servers. */
  tools: { k6: string; delaylink: string | undefined; servers: Partial<Record<ServerName, string>> };
  script: string;
  /** Where the servers are started; undefined: here. */
  host?: ServerHost | undefined;
  /** Where the load is made; empty: here. */
  generators?: readonly GeneratorHost[];
}

export interface VariantRound {
  server: NonNullable<VariantResult['server']>;
  /** Of a search, the one at the highest rate that was kept. */
  phases: Phase[];
  /** What was found, and all steps; absent without a search. */
  search?: { found: FoundInRound; steps: SearchStep[] };
  /** That k6 made, over all that it did. */
  requests: number;
  /** The first line of the server's log that says alert or worse. */
  alarm: string | undefined;
  /** The last one, where requests have failed. */
  lastWords?: string | undefined;
  /** A config of a person's own answered under load with bodies of another length than when it was started. */
  otherBodies: boolean;
  /** Packets that belong to the load were still on their way when they were counted. */
  restless: boolean;
  /** k6's own, which has the samples of the whole group; undefined: there is none. */
  recordFile: string | undefined;
  /** Of several that made them together, the requests of each. */
  instances?: readonly number[];
  /** null with `--store none`. */
  integrity: RoundIntegrity | null;
}

/** One try at a round. */
export interface Attempt {
  /** Names it, in folders and tags. */
  round: number;
  /** What the servers answered when they were tried: of several pages a round asks for the first one only. */
  tried?: ReadonlyMap<string, Tried>;
  /** Absent where nothing is searched for. */
  search?: SearchRound;
  /** Called when a step of a search is over. */
  onStep?(steps: readonly SearchStep[]): void;
  /** Called about twice a second with responses/s of the last second, null before the first; of any side of the group. */
  onLoad(rps: number | null): void;
}

/** What a round leaves, below the run's folder: a folder for each variant, with what its server left, and one for each k6. */
function roundFolder(runFolder: string, round: number): string {
  return join(runFolder, `round-${round}`);
}

/** What a server said of itself when it was tried, and which kernel settings its network has; none on loopback. */
export interface Tried {
  server: VariantRound['server'];
  answer: Answer;
  settings: Network['settings'];
  /** Why it cannot take turns with others; absent where it can. */
  whyAlone: string | undefined;
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
  const { server, network, stop } = await openStage(context, planned, folder).catch((error: unknown) => withName(planned.variant.name, error));
  try {
    const answer = await answerOfAll(server, checkOf(context, planned), context.interrupt.signal, network?.server.enter).catch((error: unknown) => withName(planned.variant.name, error));
    const whyAlone = isStarted(server) ? whyNotStoppable(server.pid, server.processes()) : undefined;
    return { server: serverFacts(planned, server), answer, settings: network?.settings ?? [], whyAlone };
  } finally {
    await stop();
  }
}

/** What each page of several has to be answered with. */
function checkOf({ plan: { scenario } }: RunContext, { variant, load }: PlannedVariant): Parameters<typeof answerOfAll>[1] {
  return { page: pageOf(scenario, variant), protocol: load.protocol, request: load, tls: load.tls, ...(isOwn(variant.server) ? { anyLength: true } : {}) };
}

/** What the result says of a server. */
function serverFacts({ variant }: PlannedVariant, server: RunningServer): VariantRound['server'] {
  const { name, version, workers, redirections } = server;
  return { name, version, workers, config: configOf(variant.server), redirections, ...(isStarted(server) || isHosted(server) ? {} : { atAddress: true }) };
}

/**
 * Loads one group in one round, and returns what each of its sides came to. Everything it started has ended when it returns or throws.
 * @param place of the group among the round's, from 1
 * @throws RoundFailure when a server, its network or k6 ended early, or one of the first two does not start: they did before, so
 * it is not the config's fault; or when a server did not do what is to be measured
 * @throws Disturbance when something else kept the figures from meaning what they say
 * @throws Interrupted after a signal
 */
export async function runGroup(context: RunContext, group: Group, place: number, attempt: Attempt): Promise<Map<string, VariantRound>> {
  const { plan: { within } } = context;
  const folder = join(roundFolder(context.folder, attempt.round), `k6-${place}`);
  await mkdir(folder, { recursive: true });
  const stages = await openStages(context, group, attempt.round);
  const started = stages.flatMap(({ server }) => (isStarted(server) ? [server] : []));
  const unguards = started.map(({ pid }) => context.interrupt.guard(pid));
  let release: (() => Promise<void>) | undefined;
  try {
    release = await endWithUs(stages.flatMap(({ planned: { variant }, server }) => (isStarted(server) && isConfigured(variant.server) ? [server.pid] : [])));
    const alarmsOf = async ({ planned: { variant }, server }: Stage): Promise<LogAlarms> => (isStarted(server) ? alarmsIn(server.logFile, variant.server.name) : isHosted(server) ? server.alarms() : {});
    const measured = await underLoad(context, group, stages, attempt, folder).catch(async (error: unknown) => {
      throw error instanceof RoundFailure ? withCrash(error, await Promise.all(stages.map(alarmsOf))) : error;
    });
    // Before the servers are told to end, which their logs tell as well.
    const alarms = await Promise.all(stages.map(alarmsOf));
    await stopAll(stages);
    // What else used the cores of both sides is read where the servers are, and here.
    const othersAreKnown = stages.every((one) => isStarted(one.server) || (isHosted(one.server) && (context.generators ?? []).length === 0));
    // All of them before anything is stored for good: a round is whole or is not.
    const sound = stages.map(({ planned, server }, side) => {
      const measurement = measured[side] as Measurement;
      const all = phasesOf(measurement, planned, context.plan, server, othersAreKnown);
      // Which step of a search is told is known once it is sound.
      requireSound(planned, measurement, { all, told: within === undefined ? all : [] }, server, alarms[side] as LogAlarms);
      const search = within === undefined ? undefined : searched(planned, measurement, all, server, side, within);
      const phases = search === undefined ? all : [all[search.found.step] as Phase];
      if (search !== undefined) requireSound(planned, measurement, { all, told: phases }, server, alarms[side] as LogAlarms);
      return { planned, server, measurement, all, phases, search, otherBodies: bodiesDiffer(planned, all, answerOf(planned, server)), alarms: alarms[side] as LogAlarms };
    });
    const outcomes = new Map<string, VariantRound>();
    for (const { planned, server, measurement, all, phases, search, otherBodies, alarms } of sound) {
      const requests = total(all, (phase) => phase.requests);
      const integrity = await storeSamples(context, planned, attempt.round, measurement, requests);
      outcomes.set(planned.variant.name, {
        server: serverFacts(planned, server), phases, requests, alarm: alarms.first, lastWords: total(phases, succeeded) < requests ? alarms.last : undefined, otherBodies, ...(search === undefined ? {} : { search }),
        restless: isRestless(measurement, planned.load), recordFile: measurement.recordFile, integrity,
      });
    }
    return outcomes;
  } finally {
    await stopAll(stages);
    await release?.();
    for (const unguard of unguards) unguard();
  }

  function answerOf({ variant }: PlannedVariant, { answer }: RunningServer): Answer {
    return pageOf(context.plan.scenario, variant).weights === undefined ? answer : attempt.tried?.get(variant.name)?.answer ?? answer;
  }

  /** @throws UserError where no rate keeps the limit */
  function searched(planned: PlannedVariant, { outcomes }: Measurement, phases: readonly Phase[], server: RunningServer, side: number, limit: Within): NonNullable<VariantRound['search']> {
    const names = group.sides.map(({ variant }) => variant.name);
    const { name } = planned.variant;
    return {
      found: foundIn(planned, serverFacts(planned, server), phases, outcomes, side, limit, context.plan.cores, attempt.search?.known.get(name) ?? []),
      steps: outcomes.flatMap((outcome) => stepsIn(outcome, names, limit, attempt.round)).filter(({ variant }) => variant === name),
    };
  }
}

/** Opens the stages of all sides at once. None is left when it throws. */
async function openStages(context: RunContext, { sides }: Group, round: number): Promise<Stage[]> {
  const opened = await Promise.allSettled(sides.map(async (planned) => {
    const { name } = planned.variant;
    return openStage(context, planned, join(roundFolder(context.folder, round), name)).catch((error: unknown) => withName(name, error));
  }));
  const stages = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed === undefined) return stages;
  await stopAll(stages);
  context.interrupt.signal.throwIfAborted();
  return asRoundFailure(failed.reason);
}

async function stopAll(stages: readonly Stage[]): Promise<void> {
  await Promise.all(stages.map((stage) => stage.stop()));
}

function withName(variant: string, error: unknown): never {
  throw error instanceof UserError ? new UserError(`${variant}: ${error.message}`) : error;
}

function asRoundFailure(error: unknown): never {
  throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
}

/** What a variant's load is laid on. */
interface Stage {
  planned: PlannedVariant;
  server: RunningServer;
  /** null on loopback. */
  network: Network | null;
  /** Settles when one of the two ends by itself, with one line that says how. */
  died: Promise<string>;
  /** Ends both. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/**
 * Opens the variant's network, if it has one, and starts its server there, with its config and logs in `folder`. Nothing is left
 * when it throws.
 */
async function openStage(context: RunContext, planned: PlannedVariant, folder: string): Promise<Stage> {
  const { plan: { scenario, cores }, tools: { delaylink }, interrupt } = context;
  const spec = networkOf(scenario, planned.variant);
  const network = spec === undefined ? null : await openNetwork({ binary: delaylink as string, spec, cores, interrupt });
  try {
    const server = await serverOf(context, planned, folder, network?.server);
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
    throw error;
  }
}

function serverOf(
  { plan, tools, interrupt, host }: RunContext, { variant, load }: PlannedVariant, folder: string, network: Network['server'] | undefined,
): Promise<RunningServer> {
  return (host?.start ?? startServer)(variant.server, {
    binaries: tools.servers,
    folder,
    cpus: plan.cores.serverCpus,
    workers: workersFor(variant.server, plan.cores.serverCpus.length, plan.exact),
    page: pageOf(plan.scenario, variant),
    protocol: load.protocol,
    request: load,
    tls: load.tls,
    connections: load.connections,
    trustConfig: plan.trustConfig,
    ...(network === undefined ? {} : { network }),
    signal: interrupt.signal,
  });
}

/** What runs at an address. */
const notSampled = { usage: () => ({ cpuSeconds: 0, rssBytes: 0 }), stoppedPid: () => undefined };

const onLoopback = { ofLink: () => 0, ofLinkToServer: () => 0 };

/** What k6, a side's server and the link left to be put together. */
interface Measurement {
  /** Of the phases. */
  results: LoadResult[];
  /** The same of all sides. */
  outcomes: readonly PhaseOutcome[];
  /** See Beside.outputHangs. */
  outputHung: boolean;
  samples: readonly UsageSample[];
  quotas: string;
  recordFile: string;
  link: { samples: readonly LinkCounts[]; report: LinkReport } | null;
}

/** Runs k6 against the group's servers, and samples what all use. Returns what it came to for each side. */
async function underLoad(context: RunContext, group: Group, stages: readonly Stage[], { round, search, onLoad, onStep }: Attempt, folder: string): Promise<Measurement[]> {
  const { plan: { cores, scenario, within }, store, interrupt } = context;
  const servers = stages.map(({ server }) => server);
  // Who has a network of the run's own is alone.
  const { network } = stages[0] as Stage;
  const throttling = watchThrottling();
  const { quotas } = throttling;
  let sampler: UsageSampler | undefined;
  let outputHung = false;
  const hosted = await Promise.all(servers.map((server) => (isHosted(server) ? server.watch() : undefined)));
  const link = network === null ? null : sampleLink(network, group.sides[0]?.load.warmupSeconds ?? 0);
  const { generators = [] } = context;
  const what = {
    binary: context.tools.k6,
    script: context.script,
    folder,
    loadPlan: loadPlanFor(context.plan, group, round, stages.map(({ planned: { variant }, server }) => (
      { url: server.origin + pageOf(scenario, variant).path, netns: network?.client.netns, processGroup: isStarted(server) ? server.pid : undefined }
    )), search === undefined ? [] : searchStarts(group.sides.map(({ variant }) => variant.name), search)),
  };
  // k6 would wait for a database that hangs; its record is written to it once it is back. From another host it does not come there.
  const output = generators.length === 0 && store !== null && await store.revive() ? store.k6Output() : null;
  const start = (): Promise<RunningK6> => (generators.length > 0 ? startK6There(generators, what) : startK6({ ...what, cpus: cores.generatorCpus, before: network?.client.enter, output }));
  const outcomes = await runK6(start, { loadPlan: what.loadPlan, output }, {
    interrupt,
    peerDied: Promise.race(stages.map(({ died }) => died)),
    outputHangs: () => { outputHung = true; },
    watch(k6) {
      const ofK6 = k6.pid === undefined ? () => 0 : watchProcess(k6.pid);
      const { ofLink, ofLinkToServer } = network === null ? onLoopback : {
        ofLink: watchProcess(network.pid), ofLinkToServer: watchProcess(network.toServerThread, `/proc/${network.pid}/task`),
      };
      const sampling = sampleUsage({
        servers: servers.map((server) => (isStarted(server) ? { usage: server.usage, stoppedPid: () => stoppedIn(server.pid, servers.length > 1) } : notSampled)),
        generator: () => ofK6() + ofLink() - ofLinkToServer(), linkToServer: ofLinkToServer,
        // Of another host's it cannot be told.
        upstream: servers.some((server) => isHosted(server) && server.upstreams.length > 0) ? () => null : watchUpstreams(servers.flatMap(({ upstreams }) => upstreams), cores.serverCpus), throttling: throttling.read,
        machine: watchMachine(cores.serverCpus, cores.generatorCpus),
      });
      sampler = sampling;
      const unwatch = watchConsole(k6.consoleFile, {
        begins(windows) {
          for (const seconds of windowBounds(scenario, group, windows)) sampling.expect(machineClock.monotonicMs() + seconds * 1000);
        },
        over(outcome) {
          if (within !== undefined) onStep?.(stepsIn(outcome, group.sides.map(({ variant }) => variant.name), within, round));
        },
      });
      const tail = new RecordTail(k6.recordFile);
      const ticker = setInterval(() => onLoad(tail.responsesPerSecond()), 500);
      return () => {
        clearInterval(ticker);
        unwatch();
        sampling.stop();
      };
    },
  }).catch((error: unknown) => {
    throw error instanceof LoadFailure ? new RoundFailure(error.message) : error;
  }).finally(() => link?.stop());
  // The link's end, or an interrupt, has ended the load as well, and was told above.
  const failure = await link?.stop();
  if (failure !== undefined) asRoundFailure(failure);
  const ofLink = network === null || link === null ? null : { samples: link.samples, report: await linkReport(network) };
  const used = await Promise.all(hosted.map((end) => end?.()));
  return stages.map((_, side): Measurement => ({
    results: outcomes.map(({ results }) => results[side] as LoadResult), outcomes, outputHung, samples: withServer(sampler?.samplesOf(side) ?? [], used, side), quotas, recordFile: recordFileIn(folder), link: ofLink,
  }));
}

/** @throws RoundFailure when the link does not tell what went over it, or it was not all that its spec lets through */
async function linkReport(network: Network): Promise<LinkReport> {
  const report = await network.report().catch(asRoundFailure);
  const { deviceDrops } = report;
  if (deviceDrops === 0) return report;
  throw new RoundFailure(`the network's own devices dropped ${whole(deviceDrops)} ${deviceDrops === 1 ? 'packet' : 'packets'} that the link did not come to read: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus)`);
}

/** Puts the engine's results and what was sampled within their windows together. @param othersAreKnown what else used the server's cores is no side of the group */
function phasesOf({ results, samples, link }: Measurement, { load, variant }: PlannedVariant, { scenario, cores }: Plan, server: RunningServer, othersAreKnown: boolean): Phase[] {
  const counts: NoiseCores = {
    server: cores.serverCpus.length, generator: cores.generatorCpus.length, shared: sharesCores(cores), interruptsApart: isHosted(server) ? undefined : interruptsApart(),
    hasUpstreams: server.upstreams.length > 0,
  };
  return results.map((result, index) => {
    const window = windowOf(result, load, index === results.length - 1);
    const { cpuSeconds, rssBytes } = usageBetween(samples, window);
    return {
      ...result, ...expectedOf(scenario, variant), ...(isStarted(server) || isHosted(server) ? { serverCpuSeconds: cpuSeconds * shareOfLoad(result), serverRssBytes: rssBytes } : { serverCpuSeconds: null, serverRssBytes: null }),
      generatorCpuSeconds: result.cpuSeconds, noise: othersAreKnown ? noiseBetween(samples, window, counts) : null,
      // In a network there is one phase.
      network: link === null ? null : networkUseBetween(link.samples, link.report, window),
    };
  });
}

/** Of what the server answered within the window, 0 to 1: responses that were for nobody have cost it as much. */
function shareOfLoad(result: LoadResult): number {
  const responses = responsesOf(result);
  return responses === 0 ? 1 : responses / (responses + (result.settling ?? 0));
}

/** Makes sure that the database holds what k6 sent, and gives it the server's usage. */
async function storeSamples(
  { store, plan }: RunContext, { variant }: PlannedVariant, round: number, { outputHung, samples, recordFile }: Measurement, requests: number,
): Promise<RoundIntegrity | null> {
  if (store === null) return null;
  const { url } = store.influx;
  const integrity = await checkRound(store, { run: plan.run, variant: variant.name, round, recordFile, requests });
  if (outputHung) integrity.problems.unshift(`InfluxDB at ${url} hung in round ${round}, and k6 was ended without it once the load was over: ${whole(integrity.backfilled)} requests of ${variant.name} were written again from k6's record`);
  const tags = { run: plan.run, scenario: plan.scenario.name, variant: variant.name, round: String(round), server: programOf(variant.server) };
  // The clock did not step (clockStepIn): one difference holds for all.
  const wallAheadMs = samples[0]?.wallAheadMs ?? 0;
  if (variant.server.name === 'address') return integrity;
  try {
    await store.write(serverSamplePoints(tags, sparse(samples).map(({ atMs, cpuSeconds, rssBytes }) => ({ atMs: atMs + wallAheadMs, cpuSeconds, rssBytes }))));
  } catch (error) {
    // The round is whole; a database that fails only now must not cost it.
    if (!(error instanceof UserError)) throw error;
    integrity.problems.push(error.message);
  }
  return integrity;
}
