// The observers of each load. The short ones are here.
import { keepCoresAwake } from '../../machine/usage.ts';
import { present } from '../../present.ts';
import { isAtRate } from '../../scenario/load.ts';
import { watchAcceptQueue } from '../../servers/accept-queue.ts';
import { coreLeavers } from './core-leavers.ts';
import type { Observer } from './observer.ts';
import { perRequest } from './per-request.ts';
import { progress } from './progress.ts';
import { backends, strangers } from './strangers.ts';
import { usage } from './usage.ts';

/** Returns them in the order in which they begin and end: the last sample of the use is taken as soon as the load is over. */
export const observersWith = (added: readonly Observer[]): Observer[] => [
  progress,
  usage,
  wakefulness,
  ...added,
  strangers,
  coreLeavers,
  backends,
  acceptQueues,
  perRequest,
  memory,
  startup,
];

/** Keeps the cores awake for a load that leaves them idle in between. */
const wakefulness: Observer = {
  name: 'the sleep of cores',
  begin({ stages }) {
    // Without a rate, sleeping cores are the server's own property.
    const letSleep = stages.some(({ planned }) => isAtRate(planned.load))
      ? keepCoresAwake()
      : () => undefined;
    return {
      end() {
        letSleep();
        return [];
      },
    };
  },
};

/** Counts overflows of each server's accept queue. */
const acceptQueues: Observer = {
  name: 'the overflow of accept queues',
  begin({ stages }) {
    const reads = stages.map(({ server, enclosure }) =>
      watchAcceptQueue(server, enclosure?.server.enter),
    );
    return {
      // The queues are read after a failed load too: overflows are often why it failed.
      async end() {
        const queues = await Promise.all(reads.map((read) => read()));
        return queues.map((acceptQueue) => ({ acceptQueue }));
      },
    };
  },
};

/** The memory at the end of the load. The engine reads it while the connections are open. */
const memory: Observer = {
  name: 'the memory of servers',
  begin: () => ({
    end(outcomes) {
      const { results = [] } = outcomes?.at(-1) ?? {};
      return results.map(({ serverMemoryBytes }) =>
        present({ memoryBytes: serverMemoryBytes ?? undefined }),
      );
    },
  }),
};

/** The time from exec to the first good answer, before the load, in milliseconds. */
const startup: Observer = {
  name: 'the start-up of servers',
  begin: ({ stages }) => ({
    end: () => stages.map(({ startupMs }) => present({ startupMs })),
  }),
};
