// Makes a load in a cluster: applies its TestRun, waits for its end, and reads what its generators left.
import { responsesOf } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import type { Influx } from '../../influx/address.ts';
import { patiently, query } from '../../influx/client.ts';
import { leftIn, leftQuery } from '../../k6/left-results.ts';
import type { LoadPlan } from '../../k6/load-plan.ts';
import type { LoadResult } from '../../result/load-result.ts';
import type { Phase } from '../../result/result.ts';
import { otherBodiesOf } from '../../runner/bodies.ts';
import { expectedOf } from '../../runner/k6-plan.ts';
import { perRequestFigures } from '../../runner/observers/per-request.ts';
import { RoundFailure } from '../../runner/failures.ts';
import type { Attempt, PlannedVariant, VariantRound } from '../../runner/plan.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import { configOf } from '../../scenario/variants.ts';
import { workersFor } from '../../servers/index.ts';
import { byOurClock, mergeInstances, type InstanceEnd } from './generators.ts';
import {
  KubectlError,
  describeInstance,
  describeEnd,
  describePod,
  type Kubectl,
} from './kubectl.ts';
import { labelsOf, loadManifests, type ClusterRun } from './manifests.ts';
import { imageVersions } from './server-manifests.ts';
import { podPatienceMs, requireMade, troubleIn, underWay, waitFor } from './wait.ts';

export interface ClusterOptions {
  kubectl: Kubectl;
  clusterRun: ClusterRun;
  variants: readonly PlannedVariant[];
  /** The InfluxDB where generators meet and leave their results, as reached from here. */
  influx: Influx;
  signal: AbortSignal;
  say(line: string): void;
}

export interface StartedPod {
  pod: string;
  /** Uses the pod's address, because DNS may still return the previous round's pod. */
  origin: string;
}

/** Time for servers and generators to start: images are pulled, and nodes may be made. */
export const startSeconds = 300;
/** Time for the operator to begin with a TestRun: if it was killed, it is back by then. */
const takenMs = 25_000;
/**
 * Time for the operator to start the load on generators that run. DNS may deny their new services for 30 s, and the operator asks again
 * after pauses that double: 20 s after the first time, then 41 s.
 */
const startedMs = 60_000;
/** Time beyond the longest duration of a load: the operator looks every 15 s. */
const endSeconds = 60;
/** Time for a database that restarts or is busy. One request may take 10 s, and is then made again. */
const databaseMs = 30_000;

/** Returns the CPU seconds of a pod's server so far, by its control group; null if they cannot be read. */
export async function podCpuSeconds(kubectl: Kubectl, pod: string): Promise<number | null> {
  const stat = await kubectl.exec(pod, 'cat', '/sys/fs/cgroup/cpu.stat');
  const [, micros] = /^usage_usec (\d+)$/m.exec(stat) ?? [];
  return micros === undefined ? null : Number(micros) / 1e6;
}

/**
 * Call it while the server is idle. The returned function gives the CPU seconds that the server has used since; null if they are not
 * known.
 */
async function watchCpu(kubectl: Kubectl, pod: string): Promise<() => Promise<number | null>> {
  // Each reading starts a process in the server's control group. Two readings tell its own CPU time.
  const [first, begin] = [await podCpuSeconds(kubectl, pod), await podCpuSeconds(kubectl, pod)];
  return async () => {
    const end = await podCpuSeconds(kubectl, pod);
    if (first === null || begin === null || end === null) return null;
    return Math.max(0, end - begin - (begin - first));
  };
}

/** Loads a variant's server, and removes what the load was made of. @throws RoundFailure: another try may do; UserError; Interrupted */
export async function loaded(
  options: ClusterOptions,
  planned: PlannedVariant,
  server: StartedPod,
  { round, onLoad }: Attempt,
): Promise<VariantRound> {
  const { kubectl, clusterRun } = options;
  const { variant } = planned;
  const { plan, name, labels, manifests } = loadManifests(
    clusterRun,
    planned,
    server.origin,
    round,
  );
  let dueSinceMs: number | undefined;
  const look = async (waitedMs: number) => {
    onLoad(null);
    const objects = await kubectl.list('testruns.k6.io,pods', labels);
    const pods = objects.filter(({ kind }) => kind === 'Pod');
    const stage = objects.find(({ kind }) => kind === 'TestRun')?.status?.stage;
    const areAll = (phase: string) =>
      pods.filter(
        ({ metadata, status }) => metadata.labels?.['runner'] === 'true' && status?.phase === phase,
      ).length === clusterRun.generators;
    // The operator may have ended before its generators did.
    if (stage === 'finished' || areAll('Succeeded')) return { there: undefined };
    const trouble = troubleIn(pods);
    // The operator waits without end for a generator that ended before its start.
    const failed = pods.find(({ status }) => status?.phase === 'Failed');
    if (failed !== undefined)
      throw new RoundFailure(
        `${describePod(failed)} ended early: ${await describeEnd(kubectl, failed)}`,
      );
    if (stage === 'error')
      throw new UserError(
        `k6-operator would not run the load of ${variant.name} (its stage is error): its log may say why`,
      );
    if (waitedMs > podPatienceMs && trouble === undefined) await requireMade(kubectl, [name], pods);
    if (stage === 'started' || stage === 'stopped') return trouble ?? underWay;
    const isDue = stage === undefined || (stage === 'created' && areAll('Running'));
    dueSinceMs = isDue ? (dueSinceMs ?? waitedMs) : undefined;
    if (waitedMs - (dueSinceMs ?? waitedMs) > (stage === undefined ? takenMs : startedMs))
      throw new UserError(
        `k6-operator does not start the load of ${variant.name}: check whether it runs and watches this namespace (kubectl get deployments -A), and whether a NetworkPolicy keeps it from port 6565 of the generators`,
      );
    return trouble ?? `its stage is ${stage ?? 'none'}`;
  };
  const seconds = startSeconds + plan.maxDurationSeconds + endSeconds;
  const cpuUsed = await watchCpu(kubectl, server.pod);
  try {
    await kubectl.apply(manifests);
    await waitFor(options, `the load of ${variant.name} is not over`, seconds, look);
    const cpuSeconds = await cpuUsed();
    return await outcomeOf(options, planned, server, { plan, round, labels, cpuSeconds });
  } finally {
    await kubectl.remove(labels).catch((error: unknown) => {
      if (!(error instanceof KubectlError)) throw error;
      // It is removed at the run's end.
      options.say(`what the load of ${variant.name} left is still there: ${error.message}`);
    });
  }
}

interface Loaded {
  plan: LoadPlan;
  round: number;
  labels: Readonly<Record<string, string>>;
  /** CPU time of the server for all requests; null if unknown. */
  cpuSeconds: number | null;
}

/** Returns a phase's part of the CPU time. It assumes that each request costs the same, also in warm-ups. */
function partOfCpu(cpuSeconds: number | null, results: readonly LoadResult[], phase: LoadResult) {
  // Several phases may be different loads.
  if (cpuSeconds === null || results.length > 1) return null;
  const all = total(results, ({ requests, warmupRequests }) => requests + warmupRequests);
  return (cpuSeconds * phase.requests) / all;
}

async function outcomeOf(
  { kubectl, clusterRun, influx }: ClusterOptions,
  planned: PlannedVariant,
  startedServer: StartedPod,
  { plan: loadPlan, round, labels, cpuSeconds }: Loaded,
): Promise<VariantRound> {
  const { variant, load, page } = planned;
  const { run, server, generators } = clusterRun;
  // Before the generators: a server that ended is why they failed.
  await requireSameServer(kubectl, labelsOf(clusterRun, variant, 'server'), startedServer);
  const leftOfLoad = leftQuery({ run, variant: variant.name, round: String(round) });
  const left = leftIn(await patiently(databaseMs, () => query(influx, leftOfLoad)));
  const pods = await kubectl.list('pods', labels);
  const ends = await Promise.all(
    Array.from({ length: generators }, async (_, index): Promise<InstanceEnd> => {
      const outcome = left.get(index + 1);
      if (outcome !== undefined) return { phases: byOurClock(outcome.phases, outcome.aheadMs) };
      const pod = pods.find((other) => describePod(other) === describeInstance(index + 1));
      const why = pod === undefined ? 'its pod is gone' : await describeEnd(kubectl, pod);
      return { failure: `left no result in InfluxDB: ${why}` };
    }),
  );
  const merged = mergeInstances(ends, loadPlan).map(({ results }) => results[0] as LoadResult);
  const phases = merged.map((mergedPhase): Phase => {
    const { wire: _, ...result } = mergedPhase;
    return {
      // Several machines have no common clock.
      ...result,
      monotonicMs: [0, 0],
      ...expectedOf({ variant, page }),
      serverCpuSeconds: partOfCpu(cpuSeconds, merged, mergedPhase),
      serverRssBytes: null,
      idleCpuShare: null,
      perRequest: perRequestFigures([mergedPhase]),
      generatorCpuSeconds: result.cpuSeconds,
      noise: null,
      network: null,
    };
  });
  const { name: program } = variant.server as ConfiguredServer;
  const unanswered = phases.find((phase) => responsesOf(phase) === 0);
  if (unanswered !== undefined)
    throw new RoundFailure(
      `no generator had an answer from ${startedServer.origin}${unanswered.errorExample === '' ? '' : ` (${unanswered.errorExample})`}: check whether a NetworkPolicy forbids it`,
    );
  // Headers and several pages change the size.
  const { requests: mix, bodyBytes } = page;
  const isPlain = mix === undefined && load.headers === undefined && load.method === undefined;
  if (isPlain && bodyBytes !== undefined) otherBodiesOf(planned, phases, { bytes: bodyBytes });
  const requests = total(phases, (phase) => phase.requests);
  return {
    server: {
      name: program,
      version: imageVersions[program],
      workers: workersFor(variant.server, server.cores, false),
      config: configOf(variant.server),
      redirections: [],
    },
    phases,
    requests,
    findings: [],
    // The generators send their samples themselves.
    recordFile: undefined,
    unsent: false,
  };
}

async function requireSameServer(
  kubectl: Kubectl,
  labels: Readonly<Record<string, string>>,
  { pod }: StartedPod,
): Promise<void> {
  const pods = await kubectl.list('pods', labels);
  const same = pods.find(({ metadata }) => metadata.name === pod);
  if (same === undefined || same.metadata.deletionTimestamp !== undefined)
    throw new RoundFailure(
      'its server was removed under load: was its node drained, or out of memory?',
    );
  const again = same.status?.containerStatuses?.find(({ restartCount }) => restartCount > 0);
  if (again === undefined) return;
  const { reason, exitCode } = again.lastState?.terminated ?? {};
  throw new RoundFailure(
    `its server ended under load and was started again: ${reason ?? 'for an unknown reason'}${exitCode === undefined ? '' : ` (exit code ${exitCode})`}`,
  );
}
