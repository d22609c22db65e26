// The use of CPU time and memory by servers, generator, enclosures and other programs in a load.
import { total } from '../../analysis/statistics.ts';
import { watchMachine, watchThrottling, type ThrottlingWatch } from '../../machine/usage.ts';
import { isRemote, isWatched, type RunningServer } from '../../servers/index.ts';
import { isStopped, watchProcess, watchUpstreams } from '../../servers/usage.ts';
import type { RunningK6 } from '../k6.ts';
import { sampleUsage, withServer, type UsageReaders, type UsageSampler } from '../samples.ts';
import type { ObservedLoad, Observer } from './observer.ts';

/** On another machine of servers it begins before the load; here with the generator, whose use is part of it. */
export const usage: Observer = {
  name: 'the use of CPU time',
  async begin(load) {
    const { stages } = load;
    const throttling = watchThrottling();
    const endRemote = await Promise.all(
      stages.map(({ server }) => (isRemote(server) ? server.watch() : undefined)),
    );
    let sampler: UsageSampler | undefined;
    return {
      started(generator) {
        sampler = sampleUsage(readersOf(load, generator, throttling));
      },
      async end(outcomes) {
        sampler?.stop();
        if (outcomes === undefined) return [];
        const there = await Promise.all(endRemote.map((end) => end?.()));
        return stages.map((_, side) => {
          const local = sampler?.samplesOf(side) ?? [];
          return {
            samples: withServer(local, there, side),
            ofServer: there[side] ?? local,
            quotas: throttling.quotas,
          };
        });
      },
    };
  },
};

/** Returns whether the server's use is known, here or on its machine. */
export const isSampled = (server: RunningServer): boolean => isWatched(server) || isRemote(server);

function readersOf(
  { plan: { cores }, stages }: ObservedLoad,
  k6: RunningK6,
  throttling: ThrottlingWatch,
): UsageReaders {
  const servers = stages.map(({ server }) => server);
  const ofK6 = watchProcess(k6.pid);
  const ofEnclosures = stages.flatMap(({ enclosure }) => enclosure?.watchCpu() ?? []);
  // Unknown on another machine.
  const ofUpstreams = servers.some((server) => isRemote(server) && server.upstreams.length > 0)
    ? () => null
    : watchUpstreams(
        servers.flatMap(({ upstreams }) => upstreams),
        cores.serverCpus,
      );
  const ofMachine = watchMachine(cores.serverCpus, cores.generatorCpus);
  return {
    servers: servers.map((server) => (isWatched(server) ? server.usage : () => noUsage)),
    shared() {
      const { user, system } = process.cpuUsage();
      const enclosed = ofEnclosures.map((read) => read());
      return {
        generatorCpuSeconds:
          ofK6() + total(enclosed, ({ generator }) => generator) + (user + system) / 1e6,
        generatorStopped: isStopped('/proc', String(k6.pid), []),
        enclosureCpuSeconds: total(enclosed, ({ server }) => server),
        upstreamCpuSeconds: ofUpstreams(),
        throttledMs: throttling.read(),
        machine: ofMachine(),
      };
    },
  };
}

/** The usage of a server whose processes are not known here. */
const noUsage = {
  cpuSeconds: 0,
  waitedSeconds: 0,
  rssBytes: 0,
  quotaThrottledMs: 0,
  quotas: '',
  stopped: false,
};
