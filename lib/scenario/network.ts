// What a network of the run's own can be, and which variants can run in one.
import { defaultTimeoutSeconds } from './load/timeouts.ts';
import type { LoadProfile, NetworkSpec, ServerSpec } from './model.ts';
import { isPath } from './own-files.ts';
import { isOwn } from './variants.ts';

/** What is wrong with its files' names, the first such thing; undefined when nothing is. */
export function problemOfNetwork(network: NetworkSpec): string | undefined {
  for (const side of ['serverSettings', 'clientSettings'] as const) {
    const unclear = network[side].find((file) => !isPath(file) && (file === '' || /\/|\.conf$/.test(file)));
    if (unclear !== undefined) return `${side} "${unclear}": write ./${unclear} for a file beside the scenario, or a name of server-configs/sysctl/ without .conf`;
  }
  return undefined;
}

/** Why a variant cannot run in this network, in words that follow its name; undefined when it can. */
export function problemInNetwork({ toServer, toClient }: NetworkSpec, server: ServerSpec, load: LoadProfile): string | undefined {
  if (isOwn(server)) return 'is your own (asIs, a command or an address), and runs where it is: it must not have a network';
  // A connection is made in one round trip and a request answered in another, and an attempt's time-out holds for both.
  const needed = 2 * (toServer.delayMs + toClient.delayMs) / 1000;
  const { timeoutSeconds = defaultTimeoutSeconds } = load;
  return needed < timeoutSeconds ? undefined
    : `has a network whose delays take ${needed} s of the first request, and its load gives up after ${timeoutSeconds} s (timeoutSeconds)`;
}
