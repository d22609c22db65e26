// Waits for what a cluster makes, and says why it does not come.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, printable } from '../../errors.ts';
import { duration } from '../../format.ts';
import {
  KubectlError,
  podTrouble,
  describePod,
  type ClusterObject,
  type Kubectl,
} from './kubectl.ts';

const pollMs = 1000;
/** Problems that last longer than this are printed. kubectl may fail for this time. */
export const podPatienceMs = 20_000;
/** A slow but normal step, which is not printed. */
export const underWay = 'it is under way';

/** @throws UserError if the cluster refuses to make pods of these owners that are not among `pods` */
export async function requireMade(
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

/**
 * Says why a pod does not run yet. Throws UserError if a pod can never run.
 * @param node the only node that is permitted; given once the time limit is over
 */
export function troubleIn(pods: readonly ClusterObject[], node?: string): string | undefined {
  let first: string | undefined;
  for (const pod of pods) {
    const trouble = podTrouble(pod);
    if (trouble === undefined) continue;
    const line = `${describePod(pod)}: ${trouble.text}`;
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
 * Calls `look` each second until it returns `there`; until then it returns what is missing.
 * @param otherwise begins the error
 * @throws UserError after `seconds`, Interrupted after a signal
 */
export async function waitFor<T>(
  { signal, say }: { signal: AbortSignal; say(line: string): void },
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
      if (!(error instanceof KubectlError) || performance.now() - failingSinceMs > podPatienceMs)
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
    if (waitedMs - lastSinceMs > podPatienceMs && !isTold && missing !== underWay) {
      say(`waiting: ${printable(missing)}`);
      isTold = true;
    }
    await delay(pollMs, undefined, { signal });
  }
}
