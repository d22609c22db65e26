// Whether a server has connections of its own, by which it may wait for a backend.
import { connectsOut } from '../../servers/ports.ts';
import { isWatched } from '../../servers/index.ts';
import type { Observer } from './observer.ts';

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
