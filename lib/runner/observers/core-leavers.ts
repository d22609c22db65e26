// Servers that may run on other cores than the servers', since they have set the affinity of their threads themselves.
import { setTimeout as delay } from 'node:timers/promises';
import { namesIn, textOf } from '../../files.ts';
import { parseCpuList } from '../../machine/processors.ts';
import { present } from '../../present.ts';
import { isWatched, type RunningServer } from '../../servers/index.ts';
import type { Observer } from './observer.ts';

/** Looks come at random times, this far apart on average, and once more at the end. */
const lookEveryMs = 500;
/** The share of a core that looks use at most. */
const mostUsed = 0.01;

export const coreLeavers: Observer = {
  name: 'the cores of the servers',
  begin({ plan: { cores }, stages }) {
    const found = stages.map(() => new Set<number>());
    const own = new Set(cores.serverCpus);
    const look = () => {
      for (const [side, { server }] of stages.entries())
        for (const cpu of cpusOf(server)) if (!own.has(cpu)) found[side]?.add(cpu);
    };
    const over = new AbortController();
    const watch = async () => {
      while (!over.signal.aborted) {
        const beganAtMs = performance.now();
        look();
        const leastMs = (performance.now() - beganAtMs) / mostUsed;
        const waitMs = Math.max(leastMs, lookEveryMs * (0.5 + Math.random()));
        await delay(waitMs, undefined, { signal: over.signal }).catch(() => undefined);
      }
    };
    const watched = watch();
    return {
      async end() {
        over.abort();
        await watched;
        look();
        return found.map((cpus) =>
          present({ otherCpus: cpus.size === 0 ? undefined : [...cpus].sort((a, b) => a - b) }),
        );
      },
    };
  },
};

/** The cores on which a thread of the server may run; none of a server whose processes are not known here. */
function cpusOf(server: RunningServer): number[] {
  if (!isWatched(server)) return [];
  const tasks = server
    .processes()
    .flatMap((pid) => namesIn(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`));
  const lists = tasks.flatMap(
    (task) => /^Cpus_allowed_list:\s+(\S+)$/m.exec(textOf(`${task}/status`))?.[1] ?? [],
  );
  return [...new Set(lists)].flatMap((list) => parseCpuList(list, 'Cpus_allowed_list'));
}
