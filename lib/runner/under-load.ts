// Loads a group's servers with k6, and samples usage meanwhile.
import { pauseMs } from '../analysis/limit.ts';
import { responsesOf } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { overflowTexts } from '../analysis/accept-queues.ts';
import { whole } from '../format.ts';
import { isHosted } from '../hosts/server-host.ts';
import { k6Files, type PhaseOutcome } from '../k6/load-plan.ts';
import {
  keepCoresAwake,
  interruptsApart,
  watchMachine,
  watchThrottling,
  type ThrottlingWatch,
} from '../machine/usage.ts';
import { sharesCores } from '../machine/cores.ts';
import type { LinkCounts, LinkReport, Network } from '../network/network.ts';
import { counterNames, wireNames, type LoadResult, type Phase } from '../result/result.ts';
import { isConfigured } from '../scenario/variants.ts';
import { pathOfPage } from '../scenario/pages.ts';
import { watchAcceptQueue } from '../servers/accept-queue.ts';
import { isStarted, watchUpstreams, type RunningServer } from '../servers/index.ts';
import { countersOf, watchProcess, type Counters } from '../servers/usage.ts';
import { byName, present } from '../present.ts';
import type { ServerSample } from '../store/points.ts';
import { startK6There } from './generators.ts';
import { expectedOf, loadPlanFor } from './k6-plan.ts';
import {
  followPhases,
  followRate,
  startK6,
  waitForK6,
  type K6Options,
  type RunningK6,
} from './k6.ts';
import {
  asRoundFailure,
  RoundFailure,
  type Group,
  type Plan,
  type PlannedVariant,
  type Attempt,
  type RunContext,
  type Stage,
} from './plan.ts';
import {
  networkUseBetween,
  mostTaken,
  noiseBetween,
  sampleLink,
  sampleUsage,
  usageBetween,
  windowOf,
  withServer,
  type NoiseCores,
  type UsageReaders,
  type UsageSample,
  type UsageSampler,
  type UsageWindow,
} from './samples.ts';
import { searchStarts, stepIn } from './search.ts';
import { starvedOf, stoppedShareOf } from './starved.ts';

/** What was measured of a side. */
export interface Measurement {
  /** Outcomes of all sides, by phase. */
  outcomes: readonly PhaseOutcome[];
  /** The side's results by phase. */
  results: LoadResult[];
  samples: readonly UsageSample[];
  /** The server's samples, at the rate of its host. */
  ofServer: readonly ServerSample[];
  quotas: string;
  recordFile: string;
  /** k6 did not write to the database: only its record has the samples. */
  unsent: boolean;
  /** What the side's server and its connections used per request, in all phases. */
  perRequest: Phase['perRequest'];
  acceptQueue: Phase['acceptQueue'];
  /** null on loopback. */
  link: { samples: readonly LinkCounts[]; report: LinkReport } | null;
}

/** Time for k6 to flush its outputs after TERM: a database may be slow. */
const k6GraceMs = 10_000;

/**
 * Loads the stages of a group and returns the measurement of each side.
 * @param folder for k6's files
 * @throws RoundFailure if the load or the link failed, Interrupted after a signal
 */
export async function underLoad(
  context: RunContext,
  group: Group,
  stages: readonly Stage[],
  attempt: Attempt,
  folder: string,
): Promise<Measurement[]> {
  const { plan, store, signal, generators = [] } = context;
  const { round, known = new Map() } = attempt;
  const sides = stages.map(({ planned }) => planned);
  const names = sides.map(({ variant }) => variant.name);
  // A variant with a network is alone in its group.
  const { network } = stages[0] as Stage;
  const throttling = watchThrottling();
  const targets = stages.map(({ planned: { page }, server, network }) => ({
    url: server.origin + pathOfPage(page),
    netns: network?.client.netns,
    processes: isStarted(server) ? server.processes().map(Number) : undefined,
  }));
  const isSearch = plan.within !== undefined;
  const starts = isSearch ? searchStarts(names, known, `${plan.run} ${round}`) : [];
  const loadPlan = loadPlanFor(plan, { ...group, sides }, round, targets, starts);
  // A database that hangs would stop k6. Other hosts do not reach it: their record is written to it afterwards.
  const output =
    generators.length === 0 && store !== null && (await store.revive()) ? store.k6Output() : null;
  const hosted = await Promise.all(
    stages.map(({ server }) => (isHosted(server) ? server.watch() : undefined)),
  );
  const isAtRate = isSearch || sides.some(({ load }) => load.rate !== undefined);
  // Without a rate, sleeping cores are the server's own property.
  const letSleep = isAtRate ? keepCoresAwake() : undefined;
  const link = network === null ? null : sampleLink(network, sides[0]?.load.warmupSeconds ?? 0);
  const counted = stages.map(({ server }) => isStarted(server) && countersOf(server.processes()));
  const queues = stages.map(({ server, network }) =>
    watchAcceptQueue(server, network?.server.enter),
  );
  let k6: RunningK6 | undefined;
  let sampler: UsageSampler | undefined;
  let outcomes: PhaseOutcome[];
  try {
    signal.throwIfAborted();
    k6 = await startLoad(context, stages, { folder, loadPlan, output });
    sampler = sampleUsage(readersOf(plan, stages, k6, throttling));
    const stopReporting = reportProgress(plan, names, attempt, k6);
    const peerDied = Promise.race(stages.map(({ died }) => died));
    outcomes = await waitForK6(k6, loadPlan, signal, peerDied).finally(stopReporting);
  } catch (error) {
    throw await withOverflows(error, names, queues);
  } finally {
    sampler?.stop();
    await k6?.stop(k6GraceMs);
    letSleep?.();
    await link?.stop();
  }
  const linkFailure = await link?.stop();
  if (linkFailure !== undefined) asRoundFailure(linkFailure);
  const ofLink = network && link && { samples: link.samples, report: await reportOf(network) };
  const there = await Promise.all(hosted.map((end) => end?.()));
  const acceptQueues = await Promise.all(queues.map((read) => read()));
  return stages.map(({ server }, side): Measurement => {
    const results = outcomes.map((one) => one.results[side] as LoadResult);
    const before = counted[side];
    const here = sampler?.samplesOf(side) ?? [];
    return {
      outcomes,
      results,
      perRequest: perRequestOf(
        results,
        isStarted(server) && before ? { before, now: countersOf(server.processes()) } : undefined,
      ),
      acceptQueue: acceptQueues[side],
      samples: withServer(here, there, side),
      ofServer: there[side] ?? here,
      quotas: throttling.quotas,
      recordFile: k6Files(folder).record,
      unsent: output === null,
      link: ofLink,
    };
  });
}

/** Adds to a failed load which accept queues overflowed: the failure is often their consequence. */
async function withOverflows(
  error: unknown,
  names: readonly string[],
  queues: readonly ReturnType<typeof watchAcceptQueue>[],
): Promise<unknown> {
  if (!(error instanceof RoundFailure)) return error;
  const found = await Promise.all(queues.map((read) => read()));
  const overflows = names.map((name, side) => {
    const { overflows: count = 0, backlog } = found[side] ?? {};
    return { name, count, backlog };
  });
  const texts = overflowTexts(overflows);
  return texts.length === 0 ? error : new RoundFailure([error.message, ...texts].join('; '));
}

/** What a request came to, on the wire and, with counters, in the server. */
export function perRequestOf(
  results: readonly LoadResult[],
  counters?: { before: Counters; now: Counters },
): NonNullable<Phase['perRequest']> {
  const requests = total(results, (one) => one.requests + one.warmupRequests);
  const each = (count: number): number =>
    Number((Math.max(0, count) / Math.max(1, requests)).toPrecision(4));
  return {
    ...(counters &&
      byName(counterNames, (name) => each(counters.now[name] - counters.before[name]))),
    ...byName(wireNames, (name) => each(total(results, ({ wire }) => wire?.[name] ?? 0))),
  };
}

/** Requests/s of a thread: at 60 µs between requests it stops sleeping (awakeBefore in xk6-loadgen/engine). */
const mostWhereThreadsSleep = 10_000;

async function startLoad(
  { plan: { cores }, tools, script, generators = [] }: RunContext,
  stages: readonly Stage[],
  options: Pick<K6Options, 'folder' | 'loadPlan' | 'output'>,
): Promise<RunningK6> {
  if (generators.length > 0) return startK6There(generators, { ...options, script });
  // k6 goes before the runner and the database on its cores, so that requests leave in time; not before a server or backend that may
  // be on the same cores, and not if its threads never sleep, or may not at the rates of a search.
  const goesFirst =
    options.loadPlan.search === undefined &&
    !sharesCores(cores) &&
    stages.every(
      ({ planned: { load }, server }) =>
        (load.rate ?? Infinity) <= load.threads * mostWhereThreadsSleep &&
        isSampled(server) &&
        server.upstreams.length === 0,
    );
  return startK6({
    ...options,
    binary: tools.k6,
    script,
    cpus: cores.generatorCpus,
    before: stages[0]?.network?.client.enter,
    goesFirst,
  });
}

/** Whether bakeoff started the server, here or on its host, so that its use is known. */
const isSampled = (server: RunningServer): boolean => isStarted(server) || isHosted(server);

function readersOf(
  { cores }: Plan,
  stages: readonly Stage[],
  k6: RunningK6,
  throttling: ThrottlingWatch,
): UsageReaders {
  const servers = stages.map(({ server }) => server);
  const { network } = stages[0] as Stage;
  const none = () => 0;
  const ofK6 = k6.pid === undefined ? none : watchProcess(k6.pid);
  const ofLink = network === null ? none : watchProcess(network.pid);
  const ofLinkToServer =
    network === null ? none : watchProcess(network.toServerThread, `/proc/${network.pid}/task`);
  // Unknown on another host.
  const ofUpstreams = servers.some((server) => isHosted(server) && server.upstreams.length > 0)
    ? () => null
    : watchUpstreams(
        servers.flatMap(({ upstreams }) => upstreams),
        cores.serverCpus,
      );
  const ofMachine = watchMachine(cores.serverCpus, cores.generatorCpus);
  return {
    servers: servers.map((server) => (isStarted(server) ? server.usage : () => noUsage)),
    shared() {
      const { user, system } = process.cpuUsage();
      const linkToServerCpuSeconds = ofLinkToServer();
      return {
        generatorCpuSeconds: ofK6() + ofLink() - linkToServerCpuSeconds + (user + system) / 1e6,
        linkToServerCpuSeconds,
        upstreamCpuSeconds: ofUpstreams(),
        throttledMs: throttling.read(),
        machine: ofMachine(),
      };
    },
  };
}

/** The usage of a server that bakeoff did not start here is unknown. */
const noUsage = {
  cpuSeconds: 0,
  waitedSeconds: 0,
  rssBytes: 0,
  quotaThrottledMs: 0,
  quotas: '',
  stopped: false,
};

const reportIntervalMs = 500;

/** Reports the present rate and each step of a search, until the returned function is called. */
function reportProgress(
  { within }: Plan,
  names: readonly string[],
  { round, onLoad, onStep }: Attempt,
  { files }: RunningK6,
): () => void {
  const rate = followRate(files.record);
  const phases = followPhases(files.console);
  const reportSteps = () => {
    if (within === undefined) return;
    for (const outcome of phases())
      onStep?.(names.flatMap((name, side) => stepIn(outcome, side, name, within, round)));
  };
  const timer = setInterval(() => {
    onLoad(rate());
    reportSteps();
  }, reportIntervalMs);
  return () => {
    clearInterval(timer);
    reportSteps();
  };
}

/** @throws RoundFailure without a report, or if the network's own devices dropped packets */
async function reportOf(network: Network): Promise<LinkReport> {
  const report = await network.report().catch(asRoundFailure);
  if (report.deviceDrops > 0)
    throw new RoundFailure(
      `the network's own devices dropped packets (${whole(report.deviceDrops)}) that the link did not come to read: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus)`,
    );
  return report;
}

/**
 * Joins the engine's results with the samples within their windows.
 * @param othersAreKnown the use of the server's cores by others can be told from the sides' own
 */
export function phasesOf(
  { results, samples, ofServer, link, perRequest, acceptQueue }: Measurement,
  planned: PlannedVariant,
  { cores }: Plan,
  server: RunningServer,
  othersAreKnown: boolean,
): Phase[] {
  const counts: NoiseCores = {
    server: cores.serverCpus.length,
    generator: cores.generatorHosts === undefined ? cores.generatorCpus.length : 0,
    shared: sharesCores(cores),
    interruptsApart: isHosted(server) ? undefined : interruptsApart(),
    hasUpstreams: server.upstreams.length > 0,
  };
  // Without them a wait for a backend looks like a wait for another program.
  const backendsAreKnown = isConfigured(planned.variant.server);
  return results.map((loaded) => {
    const { serverCpu = null, serverMemoryBytes: __, wire: _, ...result } = loaded;
    const window = windowOf(result, planned.load);
    const noise = othersAreKnown ? noiseBetween(samples, window, counts) : null;
    const networkUse = link && networkUseBetween(link.samples, link.report, window);
    const pause = pauseMs({ ...result, network: networkUse });
    if (noise !== null && pause !== null)
      noise.duringPause = mostTaken(pause, samples, window, counts);
    const { rssBytes } = usageBetween(ofServer, window);
    const { cpuSeconds } = usageBetween(ofServer, spanOfTurns(result, window));
    const ofTurns = (serverCpu?.seconds ?? cpuSeconds) * countedShare(result);
    return {
      ...result,
      ...expectedOf(planned),
      serverCpuSeconds: isSampled(server) ? ofTurns : null,
      serverRssBytes: isSampled(server) ? rssBytes : null,
      idleCpuShare: serverCpu?.idleShare ?? null,
      ...present({
        perRequest,
        acceptQueue,
        starved:
          noise && backendsAreKnown
            ? starvedOf(loaded, samples, window, noise, counts, server.workers)
            : undefined,
        stoppedShare: isSampled(server) ? stoppedShareOf(samples, window) : undefined,
      }),
      generatorCpuSeconds: result.cpuSeconds,
      noise,
      // A variant with a network has a single phase.
      network: networkUse,
    };
  });
}

/**
 * The time from a side's first request in its turns to its last answer. A window leaves out the ramp before the first turn and the drain
 * after the last one. The server is idle before and after, unless its warm-up was just before.
 */
function spanOfTurns({ turns, latencyMs }: LoadResult, window: UsageWindow): UsageWindow {
  if (turns === null || turns.rampMs === 0) return window;
  return {
    ...window,
    fromMs: window.fromMs - turns.rampMs,
    toMs: window.toMs + latencyMs.max,
  };
}

/** Share of the responses in its turns, ramps and drains included, that the figures count: each costs the same CPU time. */
function countedShare(result: LoadResult): number {
  const all = result.turns?.responses ?? 0;
  return all === 0 ? 1 : responsesOf(result) / all;
}
