// A network as an enclosure: what it needs, how long it takes, and what a run gets from it.
import { dirname, join } from 'node:path';
import { UserError } from '../../errors.ts';
import type { Enclosure, PlannedEnclosure } from '../../runner/enclosure.ts';
import type { Load } from '../../scenario/load.ts';
import type { NetworkSpec, Page } from '../../scenario/model.ts';
import { watchProcess } from '../../servers/usage.ts';
import { isExecutableFile } from '../../setup/machine.ts';
import { toolVariable } from '../../setup/tools.ts';
import type { Network } from './network.ts';

/** Seconds to start and end a network, with its last packets. With 10,000 connections 1.5 to 4 s were seen. */
const networkSeconds = 2;

export function enclosureWith(spec: NetworkSpec): PlannedEnclosure {
  return {
    name: 'networks of its own',
    async requirePossible(k6, scenario, signal) {
      await delaylinkFor(k6, scenario);
      const { requireNetworks, thisCaller } = await import('./network.ts');
      await requireNetworks(thisCaller(), signal);
    },
    seconds: networkSeconds,
    secondsPerRequest: (load, page) => secondsPerRequest(spec, load, page),
    async open({ k6, round, cores, signal }) {
      const { openNetwork } = await import('./network.ts');
      const binary = await delaylinkFor(k6, 'this run');
      // All sides of a round lose the same packets.
      return enclosureIn(await openNetwork({ binary, spec, seed: round, cores, signal }));
    },
  };
}

/**
 * Returns the path of the delaylink that was built with this k6.
 * @throws UserError if it is missing, as beside a k6 of the user's own
 */
export async function delaylinkFor(k6: string, scenario: string): Promise<string> {
  const path = join(dirname(k6), 'delaylink');
  if (await isExecutableFile(path)) return path;
  throw new UserError(
    `there is no delaylink beside ${k6}, which holds the networks of ${scenario}: unset ${toolVariable('k6')} to have both built`,
  );
}

function secondsPerRequest(
  { toServer, toClient }: NetworkSpec,
  { connections, streams, keepAlive }: Load,
  { bodyBytes = 0 }: Pick<Page, 'bodyBytes'>,
): number {
  // A new connection takes a round trip more.
  const trips = keepAlive ? 1 : 2;
  const tripSeconds = (toServer.delayMs + toClient.delayMs) / 1000;
  return Math.max(
    bodyBytes / (toClient.bytesPerSecond ?? Infinity),
    (trips * tripSeconds) / (connections * streams),
  );
}

interface NetworkEnclosure extends Enclosure {
  network: Network;
}

export function isNetwork(enclosure: Enclosure): enclosure is NetworkEnclosure {
  return 'network' in enclosure;
}

function enclosureIn(network: Network): NetworkEnclosure {
  const { server, client, settings, died, stop } = network;
  return {
    network,
    server,
    client: { enter: client.enter, options: { netns: client.netns } },
    settings,
    watchCpu: () => watchLink(network),
    died,
    stop,
  };
}

/** Each direction's thread runs on the cores of the receiving side. */
function watchLink({ pid, toServerThread }: Network) {
  const ofLink = watchProcess(pid);
  const ofLinkToServer = watchProcess(toServerThread, `/proc/${pid}/task`);
  return () => {
    const server = ofLinkToServer();
    return { server, generator: ofLink() - server };
  };
}
