// Connections of servers: those of others to them on the machine's loopback, and their own.
import { isRemote, isWatched } from '../../servers/index.ts';
import { isOnLoopback, watchStrangers, type SharedSide } from '../../servers/strangers.ts';
import { present } from '../../present.ts';
import type { Stage } from '../plan.ts';
import type { Observer } from './observer.ts';
import { connectsOut } from '../../servers/ports.ts';

export const strangers: Observer = {
  name: 'the connections of others',
  begin({ stages }) {
    const shared = stages.filter(sharesLoopback);
    let end: ReturnType<typeof watchStrangers> | undefined;
    return {
      started({ pid }) {
        end = watchStrangers(shared.map(sideOf), pid);
      },
      async end() {
        const found = (await end?.()) ?? [];
        return stages.map((stage) => present({ alsoLoadedBy: found[shared.indexOf(stage)] }));
      },
    };
  },
};

function sideOf({ planned: { variant, load }, server }: Stage): SharedSide {
  return { name: variant.name, server, connections: load.connections };
}

/** Returns whether the server is on the machine's loopback: neither in a network of its own, nor on another machine. */
export function sharesLoopback({
  enclosure,
  server,
}: Pick<Stage, 'enclosure' | 'server'>): boolean {
  return enclosure === undefined && !isRemote(server) && isOnLoopback(server);
}

/** A server that has opened connections may wait for a backend. */
export const backends: Observer = {
  name: 'the connections of the servers',
  begin: ({ stages }) => ({
    end: () =>
      Promise.all(
        stages.map(async ({ server }) => ({
          mayHaveBackends: !isWatched(server) || (await connectsOut(server.processes())),
        })),
      ),
  }),
};
