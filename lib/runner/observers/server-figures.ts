// The figures of servers that are metrics.
import { present } from '../../present.ts';
import type { Observer } from './observer.ts';

/** The engine reads it at the end of the load, while connections are open. */
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

/** From exec to the first good answer, before the load. */
export const startup: Observer = {
  name: 'the start-up of servers',
  begin: ({ stages }) => ({
    end: () => stages.map(({ startupMs }) => present({ startupMs })),
  }),
};
