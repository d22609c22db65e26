// Servers whose threads' affinity, which they set themselves, reaches beyond the servers' cores.
import { namesIn, textOf } from '../../files.ts';
import { lookAtRandom } from '../../random.ts';
import { parseCpuList } from '../../machine/processors.ts';
import { present } from '../../present.ts';
import { isWatched, type RunningServer } from '../../servers/index.ts';
import type { Observer } from './observer.ts';

/** Looks during a load; there is one more at its end. `mostUsed`: share of a core. */
const looks = { everyMs: 500, mostUsed: 0.01 };
/** Threads that a look reads, so that a side with thousands of them is not looked at less often. */
const mostThreads = { ofProcess: 30, ofServer: 150 };

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

/** The cores on which threads of the server may run; none of a server whose processes are not known here. */
function cpusOf(server: RunningServer): number[] {
  if (!isWatched(server)) return [];
  const ofProcesses = atRandom(server.processes(), mostThreads.ofServer).map(threadsOf);
  // One of each process comes first: threads of a helper must not hide another process.
  const places = Array.from({ length: mostThreads.ofProcess }, (_, place) => place);
  const tasks = places.flatMap((place) => ofProcesses.flatMap((threads) => threads[place] ?? []));
  const lists = tasks
    .slice(0, mostThreads.ofServer)
    .flatMap((task) => /^Cpus_allowed_list:\s+(\S+)$/m.exec(textOf(`${task}/status`))?.[1] ?? []);
  return [...new Set(lists)].flatMap((list) => parseCpuList(list, 'Cpus_allowed_list'));
}

function threadsOf(pid: string): string[] {
  const folder = `/proc/${pid}/task`;
  return atRandom(namesIn(folder), mostThreads.ofProcess).map((task) => `${folder}/${task}`);
}

/** Up to `most` of the names, in an order that nobody can foresee. */
function atRandom(names: readonly string[], most: number): string[] {
  const keyed = names.map((name) => ({ name, key: Math.random() }));
  return keyed
    .sort((a, b) => a.key - b.key)
    .slice(0, most)
    .map(({ name }) => name);
}
