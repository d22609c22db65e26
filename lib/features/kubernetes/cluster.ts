// Makes a run in a cluster: starts its servers anew for each round, and loads them one after the other.
import { UserError } from '../../errors.ts';
import type { ClusterFacts } from '../../result/environment.ts';
import { RoundFailure } from '../../runner/failures.ts';
import type { RunGroup, VariantRound } from '../../runner/plan.ts';
import type { Kubectl } from './kubectl.ts';
import {
  podCpuSeconds,
  loaded,
  startSeconds,
  type ClusterOptions,
  type StartedPod,
} from './load.ts';
import { labelsOf, runId, scriptManifest } from './manifests.ts';
import { serverManifests } from './server-manifests.ts';
import { podPatienceMs, requireMade, troubleIn, waitFor } from './wait.ts';
import { allNames, zip } from '../../present.ts';

/** Throws UserError without a cluster or an operator, or while another run or load is in the namespace. */
export async function requireIdleCluster(kubectl: Kubectl): Promise<void> {
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

/**
 * Applies the manifests of servers and script, and returns once the servers run. Leaves nothing in the cluster if it throws UserError or
 * Interrupted.
 */
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
    const [first] = servers.all as [StartedPod];
    const cpuIsKnown = (await podCpuSeconds(kubectl, first.pod)) !== null;
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
        const server = servers.all[place] as StartedPod;
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

/** Starts all servers anew, on one node. Returns them in the variants' order. */
async function startServers(options: ClusterOptions, round: number, before?: string) {
  const { kubectl, clusterRun, variants } = options;
  const all = await Promise.all(
    variants.map((planned) => serverManifests(clusterRun, planned, round, before)),
  );
  await kubectl.apply(all.flatMap(({ manifests }) => manifests));
  const names = allNames(all);
  const labels = { 'bakeoff/run': runId(clusterRun.run), 'bakeoff/part': 'server' };
  const look = async (waitedMs: number) => {
    const pods = (await kubectl.list('pods', labels)).filter(
      ({ metadata }) =>
        metadata.annotations?.['bakeoff/round'] === String(round) &&
        metadata.deletionTimestamp === undefined,
    );
    const isLate = waitedMs > podPatienceMs;
    const trouble = troubleIn(pods, isLate ? before : undefined);
    const ready = pods.filter(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    );
    const inOrder = variants.map(({ variant }) => {
      const label = labelsOf(clusterRun, variant, 'server')['bakeoff/variant'];
      return ready.find(({ metadata }) => metadata.labels?.['bakeoff/variant'] === label);
    });
    const there = inOrder.filter((pod) => pod !== undefined);
    if (there.length === inOrder.length) return { there };
    if (isLate) await requireMade(kubectl, names, pods);
    const open = names.filter((_, index) => inOrder[index] === undefined);
    return trouble ?? `${open.join(', ')} not ready yet`;
  };
  const running = await waitFor(options, 'the servers do not run', startSeconds, look);
  return {
    all: zip(running, all).map(([{ metadata, status }, server]): StartedPod => ({
      pod: metadata.name,
      origin: server.originAt(status?.podIP),
    })),
    node: running[0]?.spec?.nodeName,
  };
}
