// Samples of the usage by servers, generator and other programs during the load.
import { extent, total } from '../analysis/statistics.ts';
import { machineClock, type CoreSeconds, type MachineReading } from '../machine/usage.ts';
import { byName } from '../present.ts';
import type { LoadResult } from '../result/load-result.ts';
import type { Noise } from '../result/result.ts';
import type { Load } from '../scenario/load.ts';
import type { RemoteSample, StartedServer } from '../servers/index.ts';
import type { ServerSample, TreeUsage } from '../servers/usage.ts';

/** A sample takes up to 0.5 ms of the generator's core per server, in which requests wait: at most 1 %. */
const intervalMsPerServer = 100;
const longestIntervalMs = 1000;

/** Readings that are the same for all sides; CPU seconds are sums since some start. */
interface SharedUse {
  /** k6, this process, and an enclosure's programs on the generator's cores. */
  generatorCpuSeconds: number;
  /** The same as isStopped, for k6. */
  generatorStopped: boolean;
  /** An enclosure's programs on the server's cores; 0 on loopback. */
  enclosureCpuSeconds: number;
  /** The servers' backends on the server's cores; null if unknown, 0 without backends. */
  upstreamCpuSeconds: number | null;
  /** See ThrottlingWatch.read. */
  throttledMs: number;
  machine: MachineReading;
}

/** A sample of a side's server at an instant of the monotonic clock. */
export interface UsageSample extends SharedUse, TreeUsage {
  atMs: number;
  /** The wall clock minus the monotonic clock. */
  wallAheadMs: number;
  /** CPU seconds of all servers of the group. */
  serversCpuSeconds: number;
}

export type UsageSampler = ReturnType<typeof sampleUsage>;

/** Functions that read the present use; none throws. */
export interface UsageReaders {
  servers: readonly StartedServer['usage'][];
  shared(): SharedUse;
}

const clockTries = 3;
/** Two readings this close had nothing between them. */
const togetherMs = 1;

/** Reads both clocks. On a busy machine, other programs may come between, which would look as if somebody had set the clock. */
function readClocks(): Pick<UsageSample, 'atMs' | 'wallAheadMs'> {
  let [clocks, leastMs] = [{ atMs: 0, wallAheadMs: 0 }, Infinity];
  for (let tries = 0; tries < clockTries && leastMs > togetherMs; tries++) {
    const atMs = machineClock.monotonicMs();
    const wallAheadMs = machineClock.wallMs() - atMs;
    const tookMs = machineClock.monotonicMs() - atMs;
    if (tookMs < leastMs) [clocks, leastMs] = [{ atMs, wallAheadMs }, tookMs];
  }
  return clocks;
}

/** Samples 1 to 10 times a second from now on. */
export function sampleUsage({ servers, shared }: UsageReaders) {
  const samples = servers.map((): UsageSample[] => []);
  const take = () => {
    const clocks = readClocks();
    const usages = servers.map((usage) => usage());
    const all = { ...clocks, serversCpuSeconds: total(usages, cpuOf), ...shared() };
    for (const [place, usage] of usages.entries()) samples[place]?.push({ ...all, ...usage });
  };
  take();
  const timer = setInterval(
    take,
    Math.min(longestIntervalMs, intervalMsPerServer * servers.length),
  );
  return {
    /** The samples so far, of the server at that place. */
    samplesOf: (place: number) => samples[place] ?? [],
    /** Takes a last sample and ends. */
    stop() {
      clearInterval(timer);
      take();
    },
  };
}

/**
 * Adds to a side's samples those of the servers' machine, at the same instants. The generator's cores stay this machine's.
 * @param there samples of all servers of the group; `place` is the side's
 */
export function withServer(
  samples: readonly UsageSample[],
  there: readonly (readonly RemoteSample[] | undefined)[],
  place: number,
): UsageSample[] {
  const remote = there[place] ?? [];
  const [first] = remote;
  if (first === undefined) return [...samples];
  const lastBy = (atMs: number) => remote.findLast((sample) => sample.atMs <= atMs) ?? first;
  const readings = remote.flatMap(({ atMs, machine }) => (machine ? [{ atMs, ...machine }] : []));
  const isKnown = readings.length > 0 && readings.every(({ server }) => server !== null);
  return samples.map((sample) => {
    const { atMs, machine } = sample;
    const { loadAverage, serverMhz } =
      readings.findLast((reading) => reading.atMs <= atMs) ?? readings[0] ?? machine;
    const partAt = (part: keyof CoreSeconds) =>
      valueAt(readings, atMs, ({ server }) => server?.[part] ?? 0);
    return {
      ...sample,
      cpuSeconds: valueAt(remote, atMs, cpuOf),
      waitedSeconds: valueAt(remote, atMs, waitOf),
      stopped: lastBy(atMs).stopped,
      quotaThrottledMs: valueAt(remote, atMs, ({ quotaThrottledMs }) => quotaThrottledMs),
      quotas: lastBy(atMs).quotas,
      rssBytes: Math.round(valueAt(remote, atMs, ({ rssBytes }) => rssBytes)),
      serversCpuSeconds: total(there, (serverSamples = []) =>
        serverSamples.length === 0 ? 0 : valueAt(serverSamples, atMs, cpuOf),
      ),
      machine: {
        server: isKnown ? byName(coreParts, partAt) : null,
        generator: machine.generator,
        loadAverage,
        serverMhz,
      },
    };
  });
}

const coreParts = ['processes', 'interrupts', 'steal', 'idle'] as const;

export type UsageWindow = ReturnType<typeof windowOf>;

/** A phase's window on the monotonic clock. `idleBefore`: there is no warm-up. */
export function windowOf({ monotonicMs: [fromMs, toMs] }: LoadResult, { warmupSeconds }: Load) {
  return { fromMs, toMs, idleBefore: warmupSeconds === 0 };
}

/**
 * Returns a server's CPU seconds within a window, and its highest memory. The window begins at the sample before it if the server was
 * idle, else between two samples, and ends at the sample behind it, since the load ends there.
 * @param samples in order of time, around the window
 */
export function usageBetween(
  samples: readonly ServerSample[],
  { fromMs, toMs, idleBefore }: UsageWindow,
) {
  const inside = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  const begin = idleBefore
    ? cpuOf(samples.findLast(({ atMs }) => atMs <= fromMs) ?? (samples[0] as ServerSample))
    : valueAt(samples, fromMs, cpuOf);
  const end = samples.find(({ atMs }) => atMs >= toMs) ?? (samples.at(-1) as ServerSample);
  return {
    cpuSeconds: cpuOf(end) - begin,
    rssBytes: extent((inside.length > 0 ? inside : samples).map(({ rssBytes }) => rssBytes))[1],
  };
}

const cpuOf = ({ cpuSeconds }: Pick<ServerSample, 'cpuSeconds'>): number => cpuSeconds;
export const waitOf = ({ waitedSeconds }: TreeUsage): number => waitedSeconds;

/** Interpolates a figure between the samples around an instant; outside of the samples it is constant. */
export function valueAt<S extends { atMs: number }>(
  samples: readonly S[],
  atMs: number,
  of: (sample: S) => number,
): number {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  const before = next === -1 ? samples.at(-1) : samples[next - 1];
  const after = samples[next];
  const nearest = before ?? after;
  if (nearest === undefined) throw new RangeError('no samples');
  if (before === undefined || after === undefined) return of(nearest);
  const perMs = (of(after) - of(before)) / (after.atMs - before.atMs);
  return of(before) + perMs * (atMs - before.atMs);
}

/** Error of the kernel's ticks, as a share of the time. */
const tickError = 0.02;

export interface NoiseCores {
  /** Numbers of cores. */
  server: number;
  generator: number;
  /** Both sides use the same cores. */
  shared: boolean;
  /** See interruptsApart. */
  interruptsApart: boolean | undefined;
  hasUpstreams: boolean;
}

/**
 * Returns the CPU seconds of others on some cores. The kernel may count interrupts in the interrupted process's time, and so in ours;
 * if unknown, the lower figure counts.
 * @param ours CPU seconds of bakeoff and its servers there
 * @param coreSeconds the cores' time
 */
export function othersOn(
  { processes, interrupts }: Pick<CoreSeconds, 'processes' | 'interrupts'>,
  ours: number,
  coreSeconds: number,
  { interruptsApart }: Pick<NoiseCores, 'interruptsApart'>,
): number {
  const others = processes - ours;
  const isApart = interruptsApart ?? others >= -tickError * coreSeconds;
  return isApart ? others : others + interrupts;
}

/** Returns the noise within a window; null if the kernel does not count it. @param samples in order of time, not empty */
export function noiseBetween(
  samples: readonly UsageSample[],
  { fromMs, toMs }: Pick<UsageWindow, 'fromMs' | 'toMs'>,
  cores: NoiseCores,
): Noise | null {
  const seconds = (toMs - fromMs) / 1000;
  const between = (of: (sample: UsageSample) => number) =>
    valueAt(samples, toMs, of) - valueAt(samples, fromMs, of);
  const share = (part: number, count: number) => Math.min(1, Math.max(0, part / (seconds * count)));
  const secondsOf = (side: 'server' | 'generator'): CoreSeconds | null =>
    samples.some(({ machine }) => machine[side] === null)
      ? null
      : byName(coreParts, (part) => between(({ machine }) => machine[side]?.[part] ?? 0));
  const othersShare = (used: CoreSeconds, ours: number, count: number) =>
    share(othersOn(used, ours, seconds * count, cores), count);

  const [server, generator] = [secondsOf('server'), secondsOf('generator')];
  if (server === null || generator === null || !(seconds > 0)) return null;
  if (total(coreParts, (part) => server[part]) <= 0) return null;
  const upstreamSeconds = samples.some(({ upstreamCpuSeconds }) => upstreamCpuSeconds === null)
    ? null
    : between(({ upstreamCpuSeconds }) => upstreamCpuSeconds ?? 0);
  const ofGenerator = between(({ generatorCpuSeconds }) => generatorCpuSeconds);
  const ours =
    (upstreamSeconds ?? 0) +
    between((sample) => sample.serversCpuSeconds + sample.enclosureCpuSeconds) +
    (cores.shared ? ofGenerator : 0);
  const serverOthersShare = othersShare(server, ours, cores.server);
  const last = samples.findLast(({ atMs }) => atMs <= toMs) ?? (samples[0] as UsageSample);
  return {
    serverStealShare: share(server.steal, cores.server),
    generatorStealShare: share(generator.steal, cores.generator),
    serverOthersShare,
    generatorOthersShare: cores.shared
      ? serverOthersShare
      : othersShare(generator, ofGenerator, cores.generator),
    ...(cores.hasUpstreams && {
      upstreamShare: upstreamSeconds === null ? null : share(upstreamSeconds, cores.server),
    }),
    loadAverage: last.machine.loadAverage,
    serverMhz: clocks(samples, fromMs, toMs),
  };
}

/** Spans overlap: this many begin within the length of one. */
const beginsPerSpan = 8;
/** In a pause a server uses less than this part of its usual CPU time, also if the span is not quite that of the pause. */
const atRest = 0.25;

/**
 * Returns the greatest share (0 to 1) of the cores that a server can use which the host or others took from it in a span of the window.
 * Others took no more than the server's tasks waited for: a server that waits for something else leaves them its cores.
 */
export function mostTaken(
  spanMs: number,
  samples: readonly UsageSample[],
  { fromMs, toMs }: Pick<UsageWindow, 'fromMs' | 'toMs'>,
  cores: NoiseCores,
  workers: number,
): number {
  const usable = Math.min(workers, cores.server);
  const usableSeconds = (spanMs / 1000) * usable;
  const stepMs = spanMs / beginsPerSpan;
  const usedPerMs =
    (valueAt(samples, toMs, cpuOf) - valueAt(samples, fromMs, cpuOf)) / (toMs - fromMs);
  let most = 0;
  for (let begin = fromMs; begin < toMs; begin += stepMs) {
    const noise = noiseBetween(samples, { fromMs: begin, toMs: begin + spanMs }, cores);
    if (noise === null) return 0;
    const used = valueAt(samples, begin + spanMs, cpuOf) - valueAt(samples, begin, cpuOf);
    if (used > atRest * usedPerMs * spanMs) continue;
    // The kernel counts a task's wait when the task runs again.
    const seenBy = begin + spanMs + stepMs;
    const waited = valueAt(samples, seenBy, waitOf) - valueAt(samples, begin, waitOf);
    const others = (noise.serverOthersShare * cores.server) / usable;
    const missed = Math.min(others, waited / usableSeconds);
    most = Math.max(most, Math.min(1, noise.serverStealShare + missed));
  }
  return most;
}

/** The first and last clock rate within the window: outside of it an idle server's cores may be slow. */
function clocks(samples: readonly UsageSample[], fromMs: number, toMs: number): Noise['serverMhz'] {
  const known = samples.flatMap(({ atMs, machine }) =>
    typeof machine.serverMhz === 'number' ? [{ atMs, mhz: machine.serverMhz }] : [],
  );
  const inside = known.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  const nearest = known.findLast(({ atMs }) => atMs <= fromMs) ?? known[0];
  const [first, last] = [inside[0] ?? nearest, inside.at(-1) ?? nearest];
  return first === undefined || last === undefined ? null : [first.mhz, last.mhz];
}
