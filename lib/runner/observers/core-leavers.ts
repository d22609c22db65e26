// Servers that may run on other cores than the servers', since they have set the affinity of their threads themselves.
import { namesIn, textOf } from '../../files.ts';
import { lookAtRandom } from '../../looks-at-random.ts';
import { parseCpuList } from '../../machine/processors.ts';
import { present } from '../../present.ts';
import { isWatched, type RunningServer } from '../../servers/index.ts';
import type { Observer } from './observer.ts';

/** There is one more at the end. */
const looks = { everyMs: 500, mostUsed: 0.01 };

export const coreLeavers: Observer = {
  name: 'the cores of the servers',
  begin({ plan: { cores }, stages }) {
    const found = stages.map(() => new Set<number>());
    const own = new Set(cores.serverCpus);
    const look = () => {
      for (const [side, { server }] of stages.entries())
        for (const cpu of cpusOf(server)) if (!own.has(cpu)) found[side]?.add(cpu);
    };
    const endLooks = lookAtRandom(look, looks);
    return {
      async end() {
        await endLooks();
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
