// Counts overflows of each server's accept queue.
import { watchAcceptQueue } from '../../servers/accept-queue.ts';
import type { Observer } from './observer.ts';

export const acceptQueues: Observer = {
  name: 'the overflow of accept queues',
  begin({ stages }) {
    const reads = stages.map(({ server, enclosure }) =>
      watchAcceptQueue(server, enclosure?.server.enter),
    );
    return {
      // Of a failed load too: its failure is often their consequence.
      async end() {
        const queues = await Promise.all(reads.map((read) => read()));
        return queues.map((acceptQueue) => ({ acceptQueue }));
      },
    };
  },
};
