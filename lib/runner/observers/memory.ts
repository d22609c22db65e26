// Memory at the end of the load, which the engine reads while connections are open.
import { present } from '../../present.ts';
import type { Observer } from './observer.ts';

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
