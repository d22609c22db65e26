// Samples of what the servers, the generator, the network and others use during the load.
import { extent, total } from '../analysis/statistics.ts';
import type { SampleThere } from '../hosts/messages.ts';
import type { StartedServer } from '../servers/index.ts';
import type { LoadResult, Noise, LinkTraffic, NetworkUse, PacketKind } from '../result/result.ts';
import type { Load } from '../scenario/load.ts';
import type { ServerSample } from '../store/points.ts';
import { machineClock, type Clock } from '../machine/clock.ts';
import type { CoreSeconds, MachineReading, Throttling } from '../machine/usage.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkCounts, LinkReport, Network } from '../network/network.ts';
import { byName } from '../present.ts';

/** A sample takes up to half a millisecond of the generator's core for each server. Requests wait meanwhile: fewer than one in a hundred may. */
const intervalMsPerServer = 100;
const longestIntervalMs = 1000;

/** What belongs to no single server, now. CPU seconds are sums since some start. */
export interface SharedUse {
  /** Of k6, of this process, and of the link on the generator's cores. */
  generatorCpuSeconds: number;
  /** Of the link on the server's cores; 0 on loopback. */
  linkToServerCpuSeconds: number;
  /** On the server's cores, of what the servers pass requests to; null where that cannot be told, 0 where they pass none on. */
  upstreamCpuSeconds: number | null;
  throttling: Throttling;
  machine: MachineReading;
}

/** All that a side's figures need of an instant of the monotonic clock. */
export interface UsageSample extends SharedUse {
  atMs: number;
  /** The wall clock minus the monotonic one. */
  wallAheadMs: number;
  /** Of all servers of the group. */
  serversCpuSeconds: number;
  /** Of the side's own, as what follows. */
  cpuSeconds: number;
  rssBytes: number;
  /** A process of the server's that somebody stopped; looked for while the server uses no CPU. */
  stoppedPid: number | undefined;
}

export interface UsageSampler {
  /** What was sampled so far, as the server at that place in `servers` sees it. */
  samplesOf(place: number): UsageSample[];
  /** Takes a last sample and ends. May be called twice. */
  stop(): void;
}

/** What is sampled. None of them throws. */
export interface UsageReaders {
  clock?: Clock;
  servers: readonly {
    usage: StartedServer['usage'];
    /** The first process of the server's that somebody stopped. */
    stoppedPid(): number | undefined;
  }[];
  shared(): SharedUse;
}

/** Samples 1 to 10 times a second from now on, the first at once. */
export function sampleUsage(readers: UsageReaders): UsageSampler {
  const { clock = machineClock } = readers;
  const samples = readers.servers.map((): UsageSample[] => []);
  const take = (): void => {
    const atMs = clock.monotonicMs();
    const wallAheadMs = clock.wallMs() - atMs;
    const own = readers.servers.map(({ usage, stoppedPid }, place) => {
      const used = usage();
      return {
        ...used,
        stoppedPid:
          used.cpuSeconds === samples[place]?.at(-1)?.cpuSeconds ? stoppedPid() : undefined,
      };
    });
    const shared = { atMs, wallAheadMs, serversCpuSeconds: total(own, cpuOf), ...readers.shared() };
    for (const [place, one] of own.entries()) samples[place]?.push({ ...shared, ...one });
  };
  take();
  const timer = setInterval(
    take,
    Math.min(longestIntervalMs, intervalMsPerServer * readers.servers.length),
  );
  let stopped = false;
  return {
    samplesOf: (place) => samples[place] as UsageSample[],
    stop() {
      if (stopped) return;
      stopped = true;
      clearInterval(timer);
      take();
    },
  };
}

/**
 * The samples with what another host sampled, by this machine's clock: the server's use, and who used its cores.
 * @param used of all servers of the group
 * @param place of the server among them; where nothing was sampled of it, the samples are as they are
 */
export function withServer(
  samples: readonly UsageSample[],
  used: readonly (readonly SampleThere[] | undefined)[],
  place: number,
): UsageSample[] {
  const theirs = used[place];
  if (theirs === undefined || theirs.length === 0) return [...samples];
  const machines = theirs.flatMap(({ atMs, machine }) =>
    machine === undefined ? [] : [{ atMs, machine }],
  );
  return samples.map((sample) => ({
    ...sample,
    cpuSeconds: valueAt(theirs, sample.atMs, cpuOf),
    rssBytes: Math.round(valueAt(theirs, sample.atMs, ({ rssBytes }) => rssBytes)),
    serversCpuSeconds: total(used, (one = []) =>
      one.length === 0 ? 0 : valueAt(one, sample.atMs, cpuOf),
    ),
    machine: machineThere(machines, sample),
  }));
}

/** The generator's cores are not there. */
function machineThere(
  readings: readonly { atMs: number; machine: MachineReading }[],
  { atMs, machine: here }: UsageSample,
): MachineReading {
  const { loadAverage, serverMhz } =
    (readings.findLast((one) => one.atMs <= atMs) ?? readings[0])?.machine ?? here;
  const seconds = (part: keyof CoreSeconds): number =>
    valueAt(readings, atMs, ({ machine }) => machine.server?.[part] ?? 0);
  const isTold = readings.length > 0 && readings.every(({ machine }) => machine.server !== null);
  return {
    server: isTold
      ? {
          processes: seconds('processes'),
          interrupts: seconds('interrupts'),
          steal: seconds('steal'),
          idle: seconds('idle'),
        }
      : null,
    generator: here.generator,
    loadAverage,
    serverMhz,
  };
}

/** Of the monotonic clock. `idleBefore`: no load comes before the window, so that the server does nothing until it begins. */
export interface UsageWindow {
  fromMs: number;
  toMs: number;
  idleBefore: boolean;
}

/** The window of a phase. */
export function windowOf(
  { monotonicMs: [fromMs, toMs] }: LoadResult,
  { warmupSeconds }: Load,
): UsageWindow {
  return { fromMs, toMs, idleBefore: warmupSeconds === 0 };
}

/**
 * The CPU seconds that a server used within a window, and its highest memory. It is for a server on another host than the load engine,
 * which reads the CPU time of its own host's servers itself. A window begins at the sample before it if the server was idle, and
 * after a warm-up on a straight line between two samples. It ends at the sample behind it, since the load ends there. The error is
 * at most what the server uses between two samples.
 * @param samples in order of time, around the window (gapIn says whether they are)
 */
export function usageBetween(
  samples: readonly ServerSample[],
  { fromMs, toMs, idleBefore }: UsageWindow,
): { cpuSeconds: number; rssBytes: number } {
  const inside = samples.filter((sample) => sample.atMs >= fromMs && sample.atMs <= toMs);
  const begin = idleBefore
    ? cpuOf(samples.findLast((sample) => sample.atMs <= fromMs) ?? (samples[0] as ServerSample))
    : valueAt(samples, fromMs, cpuOf);
  return {
    cpuSeconds:
      cpuOf(samples.find((sample) => sample.atMs >= toMs) ?? (samples.at(-1) as ServerSample)) -
      begin,
    rssBytes: extent((inside.length > 0 ? inside : samples).map((sample) => sample.rssBytes))[1],
  };
}

const cpuOf = ({ cpuSeconds }: Pick<ServerSample, 'cpuSeconds'>): number => cpuSeconds;

/** The last sample before an instant, and the first one that is not; undefined where there is none. @param samples in order of time */
function around<S extends { atMs: number }>(
  samples: readonly S[],
  atMs: number,
): [before: S | undefined, after: S | undefined] {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  return next === -1 ? [samples.at(-1), undefined] : [samples[next - 1], samples[next]];
}

/** A figure at an instant, on a straight line between the samples around it; outside of them that of the nearest one. */
export function valueAt<S extends { atMs: number }>(
  samples: readonly S[],
  atMs: number,
  of: (sample: S) => number,
): number {
  const [before, after] = around(samples, atMs);
  if (before === undefined || after === undefined) return of((before ?? after) as S);
  return of(before) + rate(before, after, of) * (atMs - before.atMs);
}

/** Per millisecond. */
function rate<S extends { atMs: number }>(from: S, to: S, of: (sample: S) => number): number {
  return (of(to) - of(from)) / (to.atMs - from.atMs);
}

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

const intervalMs = 100;

export interface LinkSampler {
  /** In order of time. */
  samples: readonly LinkCounts[];
  /** Takes a last sample and ends. Returns why it had ended before, if so: not all was counted. Never throws; may be called twice. */
  stop(): Promise<Error | undefined>;
}

/** Asks 10 times a second, until it is stopped or the link ends. Lateness begins anew after the warm-up, which the first packet begins. */
export function sampleLink(
  network: Pick<Network, 'counts' | 'mark'>,
  warmupSeconds: number,
): LinkSampler {
  const samples: LinkCounts[] = [];
  const over = new AbortController();
  let firstAtMs = Infinity;
  let marked = warmupSeconds === 0;
  const ended: Promise<Error | undefined> = (async (): Promise<void> => {
    for (;;) {
      const isTime = !marked && machineClock.monotonicMs() >= firstAtMs + warmupSeconds * 1000;
      const sample = await (isTime ? network.mark() : network.counts());
      marked ||= isTime;
      if (sample.toServer.packets > 0) firstAtMs = Math.min(firstAtMs, sample.atMs);
      samples.push(sample);
      if (over.signal.aborted) return;
      await delay(intervalMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })().then(
    () => undefined,
    (error: Error) => error,
  );
  return {
    samples,
    stop() {
      over.abort();
      return ended;
    },
  };
}

/**
 * What the network did in a phase: all of the report if the window is idle before. Otherwise counts are interpolated at the window's ends,
 * and lateness is that of the last sample in it. @param samples at least one, unless the window is idle before
 */
export function networkUseBetween(
  samples: readonly LinkCounts[],
  report: LinkReport,
  { fromMs, toMs, idleBefore }: UsageWindow,
): NetworkUse {
  const within = (of: (use: NetworkUse) => number): number =>
    idleBefore ? of(report) : valueAt(samples, toMs, of) - valueAt(samples, fromMs, of);
  const counted = <N extends string>(
    names: readonly N[],
    of: (use: NetworkUse) => Record<N, number>,
  ): Record<N, number> => byName(names, (name) => Math.round(within((use) => of(use)[name])));
  const last = idleBefore ? report : (samples.findLast(({ atMs }) => atMs <= toMs) ?? report);
  return {
    ...byName(['toServer', 'toClient'], (direction): LinkTraffic => ({
      ...counted(['packets', 'bytes', 'delivered', 'dropped', 'lost'], (use) => use[direction]),
      kinds: counted(
        Object.keys(report[direction].kinds) as PacketKind[],
        (use) => use[direction].kinds,
      ),
      latenessMs: last[direction].latenessMs,
    })),
    retransmits: counted(['client', 'server'], ({ retransmits }) => retransmits),
    ...counted(['listenOverflows'], (use) => use),
    linkCpuSeconds: byName(['toServer', 'toClient'], (direction) =>
      within(({ linkCpuSeconds }) => linkCpuSeconds[direction]),
    ),
  };
}
