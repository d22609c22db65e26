// What else used the machine while a phase was measured.
import type { CoreSeconds } from '../machine/usage.ts';
import type { Noise } from '../result/result.ts';
import { valueAt, type UsageSample } from './server-usage.ts';

/** Of the time there is: what the kernel's ticks may be wrong by. */
const tickError = 0.02;

/** How many cores each side has. */
export interface NoiseCores {
  server: number;
  /** 0 where the load is made on other hosts: nothing is known of theirs. */
  generator: number;
  /** They are the same ones: what the generator used there is no other's. */
  shared: boolean;
  /** As interruptsApart tells. */
  interruptsApart: boolean | undefined;
  /** The server passes requests on. */
  hasUpstreams: boolean;
}

/** The noise within a window, interpolated; null where the kernel does not tell. @param samples in order of time, at least one */
export function noiseBetween(
  samples: readonly UsageSample[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
  cores: NoiseCores,
): Noise | null {
  const seconds = (toMs - fromMs) / 1000;
  const server = secondsOf('server');
  const generator = secondsOf('generator');
  const last = samples.findLast(({ atMs }) => atMs <= toMs) ?? (samples[0] as UsageSample);
  if (server === null || generator === null || !(seconds > 0)) return null;
  // Where time is counted at all, each of these passes.
  if (server.processes + server.interrupts + server.steal + server.idle <= 0) return null;
  const upstreamSeconds = samples.some(({ upstreamCpuSeconds }) => upstreamCpuSeconds === null)
    ? null
    : between(({ upstreamCpuSeconds }) => upstreamCpuSeconds ?? 0);
  const ofGenerator = between(({ generatorCpuSeconds }) => generatorCpuSeconds);
  const ours =
    (upstreamSeconds ?? 0) +
    between(
      ({ serversCpuSeconds, linkToServerCpuSeconds }) => serversCpuSeconds + linkToServerCpuSeconds,
    ) +
    (cores.shared ? ofGenerator : 0);
  const serverOthersShare = share(
    othersSeconds(server, ours, seconds * cores.server, cores.interruptsApart),
    cores.server,
  );
  return {
    serverStealShare: share(server.steal, cores.server),
    generatorStealShare: share(generator.steal, cores.generator),
    serverOthersShare,
    generatorOthersShare: cores.shared
      ? serverOthersShare
      : share(
          othersSeconds(generator, ofGenerator, seconds * cores.generator, cores.interruptsApart),
          cores.generator,
        ),
    ...(cores.hasUpstreams
      ? { upstreamShare: upstreamSeconds === null ? null : share(upstreamSeconds, cores.server) }
      : {}),
    loadAverage: last.machine.loadAverage,
    serverMhz: clocks(samples, fromMs, toMs),
  };

  function between(of: (sample: UsageSample) => number): number {
    return valueAt(samples, toMs, of) - valueAt(samples, fromMs, of);
  }

  function secondsOf(side: 'server' | 'generator'): CoreSeconds | null {
    if (samples.some(({ machine }) => machine[side] === null)) return null;
    const of = (part: keyof CoreSeconds): number =>
      between(({ machine }) => (machine[side] as CoreSeconds)[part]);
    return {
      processes: of('processes'),
      interrupts: of('interrupts'),
      steal: of('steal'),
      idle: of('idle'),
    };
  }

  function share(part: number, count: number): number {
    return count === 0 ? 0 : Math.min(1, Math.max(0, part / (seconds * count)));
  }
}

/** What others used. Interrupts may count in the CPU time of interrupted processes, and so in ours; if unknown, the least it can be. */
function othersSeconds(
  { processes, interrupts }: CoreSeconds,
  ours: number,
  available: number,
  apart: boolean | undefined,
): number {
  const others = processes - ours;
  return (apart ?? others >= -tickError * available) ? others : others + interrupts;
}

/** The first clock looked up within the window and the last one; outside of it the server may be idle, and its cores slow. */
function clocks(samples: readonly UsageSample[], fromMs: number, toMs: number): Noise['serverMhz'] {
  const known = samples.flatMap(({ atMs, machine }) =>
    typeof machine.serverMhz === 'number' ? [{ atMs, mhz: machine.serverMhz }] : [],
  );
  const inside = known.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  const nearest = known.findLast(({ atMs }) => atMs <= fromMs) ?? known[0];
  const [first, last] = inside.length > 0 ? [inside[0], inside.at(-1)] : [nearest, nearest];
  return first === undefined || last === undefined ? null : [first.mhz, last.mhz];
}
