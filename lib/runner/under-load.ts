// The load on a group's servers, what all use meanwhile, and the figures that both come to.
import { responsesOf } from '../analysis/phases.ts';
import { whole } from '../format.ts';
import { isHosted } from '../hosts/server-host.ts';
import { k6Files } from '../k6/load-plan.ts';
import { keepCoresAwake } from '../machine/clock.ts';
import { sharesCores } from '../machine/cores.ts';
import { interruptsApart, watchMachine, watchThrottling } from '../machine/usage.ts';
import type { LinkCounts, LinkReport, Network } from '../network/network.ts';
import type { LoadResult, Phase } from '../result/result.ts';
import { pageOf } from '../scenario/variants.ts';
import { isStarted, stoppedIn, watchUpstreams, type RunningServer } from '../servers/index.ts';
import { watchProcess } from '../servers/usage.ts';
import {
  RoundFailure,
  type Attempt,
  type RunContext,
  asRoundFailure,
  type Stage,
} from './round-types.ts';
import { runK6, startK6, type K6Outcome, type RunningK6, RecordTail, watchConsole } from './k6.ts';
import { startK6There } from './generators.ts';
import {
  networkUseBetween,
  sampleLink,
  noiseBetween,
  type NoiseCores,
  sampleUsage,
  usageBetween,
  windowOf,
  withServer,
  type UsageSample,
  type UsageSampler,
} from './samples.ts';
import { expectedOf, loadPlanFor } from './k6-plan.ts';
import type { Group, Plan, PlannedVariant } from './plan.ts';
import { searchStarts, stepsIn } from './search.ts';

/** What k6, a side's server and the link left to be put together; `outcomes` are of all sides. */
export interface Measurement extends K6Outcome {
  /** Of the side, one for each phase. */
  results: LoadResult[];
  samples: readonly UsageSample[];
  quotas: string;
  recordFile: string;
  /** k6 had no way to the database: its record alone has the samples. */
  unsent: boolean;
  /** null on loopback. */
  link: { samples: readonly LinkCounts[]; report: LinkReport } | null;
}

/** What runs at an address. */
const notSampled = { usage: () => ({ cpuSeconds: 0, rssBytes: 0 }), stoppedPid: () => undefined };

/** requests/s of a thread. With 60 µs between them and less it is awake all the time (awakeBefore in xk6-loadgen/engine/loop.go). */
const mostWhereThreadsSleep = 10_000;

const onLoopback = { ofLink: () => 0, ofLinkToServer: () => 0 };

/** Runs k6 against the group's servers, and samples what all use. Returns what it came to for each side. */
export async function underLoad(
  context: RunContext,
  group: Group,
  stages: readonly Stage[],
  { round, search, onLoad, onStep }: Attempt,
  folder: string,
): Promise<Measurement[]> {
  const {
    plan: { cores, scenario, within },
    store,
    interrupt,
  } = context;
  const servers = stages.map(({ server }) => server);
  // Who has a network of the run's own is alone.
  const { network } = stages[0] as Stage;
  const throttling = watchThrottling();
  const { quotas } = throttling;
  let sampler: UsageSampler | undefined;
  const hosted = await Promise.all(
    servers.map((server) => (isHosted(server) ? server.watch() : undefined)),
  );
  const link =
    network === null ? null : sampleLink(network, group.sides[0]?.load.warmupSeconds ?? 0);
  const { generators = [] } = context;
  const what = {
    binary: context.tools.k6,
    script: context.script,
    folder,
    loadPlan: loadPlanFor(
      context.plan,
      group,
      round,
      stages.map(({ planned: { variant }, server }) => ({
        url: server.origin + pageOf(scenario, variant).path,
        netns: network?.client.netns,
        processes: isStarted(server) ? server.processes().map(Number) : undefined,
      })),
      search === undefined
        ? []
        : searchStarts(
            group.sides.map(({ variant }) => variant.name),
            search,
          ),
    ),
  };
  // k6 would wait for a database that hangs; its record is written to it once it is back. From another host it does not come there.
  const output =
    generators.length === 0 && store !== null && (await store.revive()) ? store.k6Output() : null;
  // What is due must not wait for the runner and the database, which share k6's cores. Whose cores are not known must not wait for k6,
  // and where its threads are awake all the time the runner would have to.
  const goesFirst =
    search === undefined &&
    !sharesCores(cores) &&
    group.sides.every(
      ({ load: { rate = Infinity, threads } }) => rate <= threads * mostWhereThreadsSleep,
    ) &&
    servers.every(
      (server) => (isStarted(server) || isHosted(server)) && server.upstreams.length === 0,
    );
  const start = (): Promise<RunningK6> =>
    generators.length > 0
      ? startK6There(generators, what)
      : startK6({
          ...what,
          cpus: cores.generatorCpus,
          before: network?.client.enter,
          goesFirst,
          output,
        });
  const isAtRate = search !== undefined || group.sides.some(({ load }) => load.rate !== undefined);
  // A closed load is as fast as the server: what its cores do between two requests is its own matter.
  const letSleep = isAtRate ? keepCoresAwake() : undefined;
  const peerDied = Promise.race(stages.map(({ died }) => died));
  const { outcomes, outputHung } = await runK6(
    start,
    { loadPlan: what.loadPlan, output },
    interrupt,
    peerDied,
    (k6) => {
      const ofK6 = k6.pid === undefined ? () => 0 : watchProcess(k6.pid);
      const { ofLink, ofLinkToServer } =
        network === null
          ? onLoopback
          : {
              ofLink: watchProcess(network.pid),
              ofLinkToServer: watchProcess(network.toServerThread, `/proc/${network.pid}/task`),
            };
      // Of another host's it cannot be told.
      const ofUpstreams = servers.some((server) => isHosted(server) && server.upstreams.length > 0)
        ? () => null
        : watchUpstreams(
            servers.flatMap(({ upstreams }) => upstreams),
            cores.serverCpus,
          );
      const ofMachine = watchMachine(cores.serverCpus, cores.generatorCpus);
      const sampling = sampleUsage({
        servers: servers.map((server) =>
          isStarted(server)
            ? { usage: server.usage, stoppedPid: () => stoppedIn(server.pid) }
            : notSampled,
        ),
        shared() {
          const { user, system } = process.cpuUsage();
          const linkToServerCpuSeconds = ofLinkToServer();
          return {
            generatorCpuSeconds: ofK6() + ofLink() - linkToServerCpuSeconds + (user + system) / 1e6,
            linkToServerCpuSeconds,
            upstreamCpuSeconds: ofUpstreams(),
            throttling: throttling.read(),
            machine: ofMachine(),
          };
        },
      });
      sampler = sampling;
      const unwatch =
        within === undefined
          ? undefined
          : watchConsole(k6.files.console, (outcome) => {
              onStep?.(
                stepsIn(
                  outcome,
                  group.sides.map(({ variant }) => variant.name),
                  within,
                  round,
                ),
              );
            });
      const tail = new RecordTail(k6.files.record);
      const ticker = setInterval(() => onLoad(tail.responsesPerSecond()), 500);
      return () => {
        clearInterval(ticker);
        unwatch?.();
        sampling.stop();
      };
    },
  ).finally(() => {
    letSleep?.();
    return link?.stop();
  });
  // The link's end, or an interrupt, has ended the load as well, and was told above.
  const failure = await link?.stop();
  if (failure !== undefined) asRoundFailure(failure);
  const ofLink =
    network === null || link === null
      ? null
      : { samples: link.samples, report: await linkReport(network) };
  const used = await Promise.all(hosted.map((end) => end?.()));
  return stages.map((_, side): Measurement => ({
    results: outcomes.map(({ results }) => results[side] as LoadResult),
    outcomes,
    outputHung,
    samples: withServer(sampler?.samplesOf(side) ?? [], used, side),
    quotas,
    recordFile: k6Files(folder).record,
    unsent: output === null,
    link: ofLink,
  }));
}

/** @throws RoundFailure when the link does not tell what went over it, or it was not all that its spec lets through */
async function linkReport(network: Network): Promise<LinkReport> {
  const report = await network.report().catch(asRoundFailure);
  const { deviceDrops } = report;
  if (deviceDrops === 0) return report;
  throw new RoundFailure(
    `the network's own devices dropped ${whole(deviceDrops)} ${deviceDrops === 1 ? 'packet' : 'packets'} that the link did not come to read: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus)`,
  );
}

/** Puts the engine's results and what was sampled within their windows together. @param othersAreKnown what else used the server's cores is no side of the group */
export function phasesOf(
  { results, samples, link }: Measurement,
  { load, variant }: PlannedVariant,
  { scenario, cores }: Plan,
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
  const isKnown = isStarted(server) || isHosted(server);
  return results.map(({ serverCpu = null, ...result }) => {
    const window = windowOf(result, load);
    const { cpuSeconds, rssBytes } = usageBetween(samples, window);
    return {
      ...result,
      ...expectedOf(scenario, variant),
      serverCpuSeconds: isKnown ? (serverCpu?.seconds ?? cpuSeconds) * shareOfTurns(result) : null,
      serverRssBytes: isKnown ? rssBytes : null,
      idleCpuShare: serverCpu?.idleShare ?? null,
      generatorCpuSeconds: result.cpuSeconds,
      noise: othersAreKnown ? noiseBetween(samples, window, counts) : null,
      // In a network there is one phase.
      network: link === null ? null : networkUseBetween(link.samples, link.report, window),
    };
  });
}

/** Of all that the server answered in its turns, 0 to 1: those of ramps and drains have cost it as much. */
function shareOfTurns(result: LoadResult): number {
  const all = result.turns?.responses ?? 0;
  return all === 0 ? 1 : responsesOf(result) / all;
}
