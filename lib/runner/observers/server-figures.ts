// The figures of servers that are metrics.
import { present } from '../../present.ts';
import type { Observer } from './observer.ts';

/** The memory at the end of the load. The engine reads it while the connections are open. */
export const memory: Observer = {
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
export const startup: Observer = {
  name: 'the start-up of servers',
  begin: ({ stages }) => ({
    end: () => stages.map(({ startupMs }) => present({ startupMs })),
  }),
};
