// A run in a cluster: starts the servers, applies a TestRun for each load, and reads the results.
import { setTimeout as delay } from 'node:timers/promises';
import { responsesOf } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { UserError, printable } from '../../errors.ts';
import { duration } from '../../format.ts';
import { leftIn, leftQuery } from '../../k6/left-results.ts';
import type { LoadPlan } from '../../k6/load-plan.ts';
import type { ClusterFacts } from '../../result/environment.ts';
import type { LoadResult } from '../../result/load-result.ts';
import type { Phase } from '../../result/result.ts';
import { bodiesDiffer, standstillIn } from '../../runner/disturbance.ts';
import {
  Disturbance,
  RoundFailure,
  type Attempt,
  type RunGroup,
  type VariantRound,
  type Plan,
  type PlannedVariant,
} from '../../runner/plan.ts';
import { mergeInstances, byOurClocks, type InstanceEnd } from '../../runner/generators.ts';
import { expectedOf } from '../../runner/k6-plan.ts';
import { perRequestOf } from '../../runner/observers/per-request.ts';
import { configOf } from '../../scenario/variants.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import { workersFor } from '../../servers/index.ts';
import type { Influx } from '../../influx/address.ts';
import { patiently, query } from '../../influx/client.ts';
import type { Sink } from '../../runner/plan.ts';
import {
  type ClusterObject,
  type Kubectl,
  KubectlError,
  instanceWords,
  lastWords,
  podTrouble,
  podWords,
} from './kubectl.ts';
import {
  type ClusterRun,
  imageVersions,
  labelsOf,
  loadManifests,
  runId,
  scriptManifest,
  serverManifests,
} from './manifests.ts';

export interface ClusterOptions {
  kubectl: Kubectl;
  clusterRun: ClusterRun;
  variants: readonly PlannedVariant[];
  /** The InfluxDB where generators meet and leave their results, as reached from here. */
  influx: Influx;
  sink: Sink | null;
  plan: Plan;
  signal: AbortSignal;
  say(line: string): void;
}

/** For servers and generators to start: images are pulled, and nodes may be made. */
const startSeconds = 300;
/** For the operator to take a TestRun: one that was killed is back by then. */
const takenMs = 25_000;
/**
 * For the operator to start generators that run. DNS may go on for 30 s to deny their services, which are new, and the operator asks
 * again after pauses that double: 20 s after the first time, then 41 s.
 */
const startedMs = 60_000;
/** Beyond a load's own longest time: the operator looks every 15 s. */
const endSeconds = 60;
const pollMs = 1000;
/** For a database that restarts or is busy. One request may take 10 s, and is made again then. */
const databaseMs = 30_000;
/** Problems that last longer are printed; kubectl may fail so long. */
const patienceMs = 20_000;
/** A slow but normal step, which is not printed. */
const underWay = 'it is under way';

/** Throws UserError without a cluster or an operator, or while another run or load is there. */
export async function requireIdle(kubectl: Kubectl): Promise<void> {
  const busy = (await kubectl.list('testruns.k6.io,deployments.apps')).find(
    ({ kind, metadata, status }) =>
      kind === 'TestRun'
        ? !['finished', 'error'].includes(status?.stage ?? '')
        : metadata.labels?.['bakeoff/part'] === 'server',
  );
  if (busy !== undefined)
    throw new UserError(
      `the ${busy.kind} ${busy.metadata.name} is there, and loads disturb each other: wait until its run is over, or delete it`,
    );
}

/** Applies servers and script, and waits until the servers run. Leaves nothing there if it throws UserError or Interrupted. */
export async function openCluster(options: ClusterOptions) {
  const { kubectl, clusterRun, variants, say } = options;
  const { run, generators, generator } = clusterRun;
  const mine = { 'bakeoff/run': runId(run) };
  let isThere = false;
  /** Prints what it cannot remove. Never throws. */
  const close = () =>
    kubectl.remove(mine).catch((error: Error) => {
      if (!isThere) return;
      say(
        `what this run has applied is still in the cluster: ${error.message}; remove it with: ${kubectl.removal(mine)}`,
      );
    });
  try {
    await kubectl.apply([await scriptManifest(clusterRun)]);
    isThere = true;
    let servers = await startServers(options, 1);
    const { node } = servers;
    const [first] = servers.all as [StartedServer];
    const cpuIsKnown = (await cpuSecondsOf(kubectl, first.pod)) !== null;
    // This user may not be allowed to read it.
    const seen = await kubectl.get('nodes', node ?? '').catch(() => undefined);
    const { kernelVersion, osImage, architecture } = seen?.status?.nodeInfo ?? {};
    const facts: ClusterFacts = {
      name: kubectl.context,
      serverNode: node ?? '',
      serverSystem: [kernelVersion, osImage, architecture]
        .filter((text) => text !== undefined)
        .join(', '),
      generators,
      generatorCores: generator.cores,
    };
    const runGroup: RunGroup = async ({ sides }, place, attempt) => {
      if (place === 1 && attempt.round > 1)
        servers = await startServers(options, attempt.round, node);
      const outcomes = new Map<string, VariantRound>();
      for (const planned of sides) {
        const { name } = planned.variant;
        // By name: a round may have a load of its own, such as another warm-up.
        const place = variants.findIndex(({ variant: { name } }) => name === planned.variant.name);
        const server = servers.all[place] as StartedServer;
        const outcome = await loaded(options, planned, server, attempt).catch((error: unknown) => {
          if (error instanceof RoundFailure && !error.message.startsWith(`${name}: `))
            error.message = `${name}: ${error.message}`;
          throw error;
        });
        outcomes.set(name, outcome);
      }
      return outcomes;
    };
    return { facts, cpuIsKnown, runGroup, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** CPU seconds of a pod's server so far, by its control group; null if they cannot be read. */
async function cpuSecondsOf(kubectl: Kubectl, pod: string): Promise<number | null> {
  const stat = await kubectl.exec(pod, 'cat', '/sys/fs/cgroup/cpu.stat');
  const [, micros] = /^usage_usec (\d+)$/m.exec(stat) ?? [];
  return micros === undefined ? null : Number(micros) / 1e6;
}

/** Call it while the server is idle. The returned function gives the CPU seconds that it has used since; null if they are not known. */
async function watchCpu(kubectl: Kubectl, pod: string): Promise<() => Promise<number | null>> {
  // A reading is a process in the control group, whose own CPU time two of them tell.
  const [first, begin] = [await cpuSecondsOf(kubectl, pod), await cpuSecondsOf(kubectl, pod)];
  return async () => {
    const end = await cpuSecondsOf(kubectl, pod);
    if (first === null || begin === null || end === null) return null;
    return Math.max(0, end - begin - (begin - first));
  };
}

interface StartedServer {
  pod: string;
  /** Uses the pod's address, because DNS may still return the previous round's pod. */
  origin: string;
}

/** Starts all servers anew, on one node. Returns them in the variants' order. */
async function startServers(options: ClusterOptions, round: number, before?: string) {
  const { kubectl, clusterRun, variants } = options;
  const all = await Promise.all(
    variants.map((planned) => serverManifests(clusterRun, planned, round, before)),
  );
  await kubectl.apply(all.flatMap(({ manifests }) => manifests));
  const names = all.map(({ name }) => name);
  const labels = { 'bakeoff/run': runId(clusterRun.run), 'bakeoff/part': 'server' };
  const look = async (waitedMs: number) => {
    const pods = (await kubectl.list('pods', labels)).filter(
      ({ metadata }) =>
        metadata.annotations?.['bakeoff/round'] === String(round) &&
        metadata.deletionTimestamp === undefined,
    );
    const isLate = waitedMs > patienceMs;
    const trouble = troubleIn(pods, isLate ? before : undefined);
    const ready = pods.filter(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    );
    const inOrder = variants.map(({ variant }) => {
      const label = labelsOf(clusterRun, variant, 'server')['bakeoff/variant'];
      return ready.find(({ metadata }) => metadata.labels?.['bakeoff/variant'] === label);
    });
    if (!inOrder.includes(undefined)) return { there: inOrder as ClusterObject[] };
    if (isLate) await requireMade(kubectl, names, pods);
    const open = names.filter((_, index) => inOrder[index] === undefined);
    return trouble ?? `${open.join(', ')} not ready yet`;
  };
  const running = await waitFor(options, 'the servers do not run', startSeconds, look);
  return {
    all: running.map(({ metadata, status }, index): StartedServer => ({
      pod: metadata.name,
      origin: (all[index] as (typeof all)[number]).originAt(status?.podIP),
    })),
    node: running[0]?.spec?.nodeName,
  };
}

async function requireMade(
  kubectl: Kubectl,
  owners: readonly string[],
  pods: readonly ClusterObject[],
): Promise<void> {
  const refusal = (await kubectl.refusals()).find(
    ({ involvedObject: { name } = { name: '' } }) =>
      owners.some((owner) => name === owner || name.startsWith(`${owner}-`)) &&
      !pods.some(({ metadata }) => metadata.name.startsWith(`${name}-`)),
  );
  if (refusal !== undefined)
    throw new UserError(
      `the cluster makes no pod for ${refusal.involvedObject?.name}: ${refusal.message}`,
    );
}

async function loaded(
  options: ClusterOptions,
  planned: PlannedVariant,
  server: StartedServer,
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
        `${podWords(failed)} ended early: ${await lastWords(kubectl, failed)}`,
      );
    if (stage === 'error')
      throw new UserError(
        `k6-operator would not run the load of ${variant.name} (its stage is error): its log may say why`,
      );
    if (waitedMs > patienceMs && trouble === undefined) await requireMade(kubectl, [name], pods);
    if (stage === 'started' || stage === 'stopped') return trouble ?? underWay;
    const isDue = stage === undefined || (stage === 'created' && areAll('Running'));
    dueSinceMs = isDue ? (dueSinceMs ?? waitedMs) : undefined;
    if (waitedMs - (dueSinceMs ?? waitedMs) > (stage === undefined ? takenMs : startedMs))
      throw new UserError(
        `k6-operator does not start the load of ${variant.name}: see whether it runs and watches this namespace (kubectl get deployments -A), and whether a NetworkPolicy keeps it from port 6565 of the generators`,
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
  /** Of the server, for all requests; null if not known. */
  cpuSeconds: number | null;
}

/** A phase's part of the CPU time of all requests, those of warm-ups too: each request costs the same. */
function partOfCpu(cpuSeconds: number | null, results: readonly LoadResult[], phase: LoadResult) {
  // Several phases may be different loads.
  if (cpuSeconds === null || results.length > 1) return null;
  const all = total(results, ({ requests, warmupRequests }) => requests + warmupRequests);
  return (cpuSeconds * phase.requests) / all;
}

async function outcomeOf(
  { kubectl, clusterRun, influx, plan, sink }: ClusterOptions,
  planned: PlannedVariant,
  startedServer: StartedServer,
  { plan: loadPlan, round, labels, cpuSeconds }: Loaded,
): Promise<VariantRound> {
  const { variant, load, page } = planned;
  const { run, server, generators } = clusterRun;
  const leftOfLoad = leftQuery({ run, variant: variant.name, round: String(round) });
  const left = leftIn(await patiently(databaseMs, () => query(influx, leftOfLoad)));
  const pods = await kubectl.list('pods', labels);
  const ends = await Promise.all(
    Array.from({ length: generators }, async (_, index): Promise<InstanceEnd> => {
      const outcome = left.get(index + 1);
      if (outcome !== undefined)
        return { phases: byOurClocks(outcome.phases, { wallMs: outcome.aheadMs, monotonicMs: 0 }) };
      const pod = pods.find((other) => podWords(other) === instanceWords(index + 1));
      const why = pod === undefined ? 'its pod is gone' : await lastWords(kubectl, pod);
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
      perRequest: perRequestOf([mergedPhase]),
      generatorCpuSeconds: result.cpuSeconds,
      noise: null,
      network: null,
    };
  });
  const { name: program } = variant.server as ConfiguredServer;
  await requireSameServer(kubectl, labelsOf(clusterRun, variant, 'server'), startedServer);
  const unanswered = phases.find((phase) => responsesOf(phase) === 0);
  if (unanswered !== undefined)
    throw new RoundFailure(
      `no generator had an answer from ${startedServer.origin}${unanswered.errorExample === '' ? '' : ` (${unanswered.errorExample})`}: see whether a NetworkPolicy forbids it`,
    );
  for (const phase of phases) {
    const standstill = standstillIn(phase, program, undefined);
    if (standstill !== undefined) throw new Disturbance(standstill);
  }
  // Headers and several pages change the size.
  const { requests: mix, bodyBytes } = page;
  const isPlain = mix === undefined && load.headers === undefined && load.method === undefined;
  if (isPlain && bodyBytes !== undefined) bodiesDiffer({ variant }, phases, { bytes: bodyBytes });
  const requests = total(phases, (phase) => phase.requests);
  const recordFile = undefined;
  // The generators send their samples themselves.
  const toStore = { planned, round, requests, samples: [], recordFile, unsent: false };
  const integrity = (await sink?.afterLoad(plan, toStore)) ?? null;
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
    notes: [],
    recordFile,
    integrity,
  };
}

async function requireSameServer(
  kubectl: Kubectl,
  labels: Readonly<Record<string, string>>,
  { pod }: StartedServer,
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
    `its server ended under load and was started again: ${reason ?? 'for a reason that is not told'}${exitCode === undefined ? '' : ` (exit code ${exitCode})`}`,
  );
}

/**
 * Why a pod does not run yet. Throws UserError if the pod can never run. @param node the only permitted node; set after the time
 * limit
 */
function troubleIn(pods: readonly ClusterObject[], node?: string): string | undefined {
  let first: string | undefined;
  for (const pod of pods) {
    const trouble = podTrouble(pod);
    if (trouble === undefined) continue;
    const line = `${podWords(pod)}: ${trouble.text}`;
    if (trouble.fatal) throw new UserError(line);
    if (node !== undefined)
      throw new UserError(
        `${line}; it runs on ${node} in each round: if that was drained, kubectl uncordon ${node}`,
      );
    first ??= line;
  }
  return first;
}

/**
 * Calls `look` each second until it returns `there` instead of what is missing.
 * @param otherwise begins the error
 * @throws UserError after `seconds`, Interrupted after a signal
 */
async function waitFor<T>(
  { signal, say }: ClusterOptions,
  otherwise: string,
  seconds: number,
  look: (waitedMs: number) => Promise<{ there: T } | string>,
): Promise<T> {
  const beganAtMs = performance.now();
  let [last, lastSinceMs, isTold, failingSinceMs] = ['', 0, false, Infinity];
  for (;;) {
    signal.throwIfAborted();
    const seen = await look(performance.now() - beganAtMs).catch((error: unknown) => {
      failingSinceMs = Math.min(failingSinceMs, performance.now());
      // An answer that is missing now may come in a moment.
      if (!(error instanceof KubectlError) || performance.now() - failingSinceMs > patienceMs)
        throw error;
      return undefined;
    });
    if (seen !== undefined) failingSinceMs = Infinity;
    if (typeof seen === 'object') return seen.there;
    const missing = seen ?? 'kubectl has no answer';
    const waitedMs = performance.now() - beganAtMs;
    if (waitedMs > 1000 * seconds)
      throw new UserError(`${otherwise} after ${duration(seconds)}: ${missing}`);
    if (missing !== last) [last, lastSinceMs, isTold] = [missing, waitedMs, false];
    if (waitedMs - lastSinceMs > patienceMs && !isTold && missing !== underWay) {
      say(`waiting: ${printable(missing)}`);
      isTold = true;
    }
    await delay(pollMs, undefined, { signal });
  }
}
