// What a network of the run's own can be, and which variants can run in one.
import { defaultTimeoutSeconds } from './load/timeouts.ts';
import type { LinkDirection, LoadProfile, NetworkSpec, ServerSpec } from './model.ts';
import { isPath } from './own-files.ts';

const longestDelayMs = 60_000;

/** What is wrong with it, the first such thing, with the field's name; undefined when nothing is. */
export function problemOfNetwork(network: NetworkSpec): string | undefined {
  for (const way of ['toServer', 'toClient'] as const) {
    const problem = problemOfDirection(network[way]);
    if (problem !== undefined) return `${way}.${problem}`;
  }
  for (const side of ['serverSettings', 'clientSettings'] as const) {
    const unclear = network[side].find((file) => !isPath(file) && (file === '' || /\/|\.conf$/.test(file)));
    if (unclear !== undefined) return `${side} "${unclear}": write ./${unclear} for a file beside the scenario, or a name of server-configs/sysctl/ without .conf`;
  }
  return undefined;
}

function problemOfDirection({ delayMs, queuePackets, bytesPerSecond, lossShare, ...others }: LinkDirection): string | undefined {
  // One that is misspelt would leave the limit out that it was to be.
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `${unknown} is none of delayMs, queuePackets, bytesPerSecond and lossShare`;
  if (!(delayMs >= 0 && delayMs <= longestDelayMs)) return `delayMs ${delayMs} has to be from 0 to ${longestDelayMs}`;
  if (queuePackets !== undefined && !(Number.isSafeInteger(queuePackets) && queuePackets > 0)) {
    return `queuePackets ${queuePackets} has to be a whole number above 0, or left out for no limit`;
  }
  if (bytesPerSecond !== undefined && !(Number.isFinite(bytesPerSecond) && bytesPerSecond > 0)) {
    return `bytesPerSecond ${bytesPerSecond} has to be above 0, or left out for no limit`;
  }
  if (lossShare !== undefined && !(lossShare >= 0 && lossShare < 1)) return `lossShare ${lossShare} has to be from 0 to below 1: 0.01 is 1 %`;
  return undefined;
}

/** Why a variant cannot run in this network, in words that follow its name; undefined when it can. */
export function problemInNetwork({ toServer, toClient }: NetworkSpec, { asIs }: ServerSpec, load: LoadProfile): string | undefined {
  if (asIs !== undefined) return 'is asIs: a whole config of your own runs on loopback, so it must not have a network';
  // A connection is made in one round trip and a request answered in another, and an attempt's time-out holds for both.
  const needed = 2 * (toServer.delayMs + toClient.delayMs) / 1000;
  const { timeoutSeconds = defaultTimeoutSeconds } = load;
  return needed < timeoutSeconds ? undefined
    : `has a network whose delays take ${needed} s of the first request, and its load gives up after ${timeoutSeconds} s (timeoutSeconds)`;
}
