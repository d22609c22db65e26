// Samples what the servers of a group, the generator and everything else use while there is load.
import { extent, total } from '../analysis/statistics.ts';
import type { SampleThere } from '../hosts/messages.ts';
import type { StartedServer } from '../servers/index.ts';
import type { LoadResult } from '../result/result.ts';
import type { Load } from '../scenario/load/fit.ts';
import type { ServerSample } from '../store/index.ts';
import { machineClock, type Clock } from '../machine/clock.ts';
import type { CoreSeconds, MachineReading } from '../machine/usage.ts';
import type { Throttling } from '../machine/throttling.ts';

/** When samples are taken. */
interface Pace { everyMs: number; /** Around an instant that a window begins or ends at. */ atBoundsMs: readonly number[] }

/** The closest that samples without bounds are, in ms. */
const intervalMs = 100;

const closely: Pace = { everyMs: intervalMs, atBoundsMs: [-30, -20, -10, 0, 10, 20, 30] };

/**
 * A sample takes a millisecond of the generator's core, and of servers that take turns several. What is due at a rate waits for it, and that
 * must not be one request in a hundred.
 */
const seldom: Pace = { everyMs: 150, atBoundsMs: [0] };

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
  /** More samples are taken around that instant of the monotonic clock, if it is to come. */
  expect(boundMs: number): void;
  /** Takes a last sample and ends. May be called twice. */
  stop(): void;
}

/** What is sampled. None of them throws. */
export interface UsageReaders {
  clock?: Clock;
  /** A sample would show in the load's figures. */
  seldom: boolean;
  servers: readonly {
    usage: StartedServer['usage'];
    /** The first process of the server's that somebody stopped. */
    stoppedPid(): number | undefined;
  }[];
  shared(): SharedUse;
}

/** Samples 10 times a second from now on, or 7 times, the first at once. */
export function sampleUsage(readers: UsageReaders): UsageSampler {
  const { clock = machineClock } = readers;
  const { everyMs, atBoundsMs } = readers.seldom ? seldom : closely;
  const samples = readers.servers.map((): UsageSample[] => []);
  const take = (): void => {
    const atMs = clock.monotonicMs();
    const wallAheadMs = clock.wallMs() - atMs;
    const own = readers.servers.map(({ usage, stoppedPid }, place) => {
      const used = usage();
      return { ...used, stoppedPid: used.cpuSeconds === samples[place]?.at(-1)?.cpuSeconds ? stoppedPid() : undefined };
    });
    const shared = { atMs, wallAheadMs, serversCpuSeconds: total(own, cpuOf), ...readers.shared() };
    for (const [place, one] of own.entries()) samples[place]?.push({ ...shared, ...one });
  };
  take();
  const timer = setInterval(take, everyMs);
  const atBounds = new Set<NodeJS.Timeout>();
  let stopped = false;
  return {
    samplesOf: (place) => samples[place] as UsageSample[],
    expect(boundMs) {
      const inMs = boundMs - clock.monotonicMs();
      if (stopped || inMs < 0) return;
      for (const offsetMs of atBoundsMs) {
        const once = setTimeout(() => {
          atBounds.delete(once);
          take();
        }, Math.max(0, inMs + offsetMs));
        atBounds.add(once);
      }
    },
    stop() {
      if (stopped) return;
      stopped = true;
      clearInterval(timer);
      for (const once of atBounds) clearTimeout(once);
      take();
    },
  };
}

/**
 * The samples with what another host sampled, by this machine's clock: the server's use, and who used its cores.
 * @param used of all servers of the group
 * @param place of the server among them; where nothing was sampled of it, the samples are as they are
 */
export function withServer(samples: readonly UsageSample[], used: readonly (readonly SampleThere[] | undefined)[], place: number): UsageSample[] {
  const theirs = used[place];
  if (theirs === undefined || theirs.length === 0) return [...samples];
  const machines = theirs.flatMap(({ atMs, machine }) => (machine === undefined ? [] : [{ atMs, machine }]));
  return samples.map((sample) => ({
    ...sample, cpuSeconds: valueAt(theirs, sample.atMs, cpuOf), rssBytes: Math.round(valueAt(theirs, sample.atMs, ({ rssBytes }) => rssBytes)),
    serversCpuSeconds: total(used, (one = []) => (one.length === 0 ? 0 : valueAt(one, sample.atMs, cpuOf))), machine: machineThere(machines, sample),
  }));
}

/** The generator's cores are not there. */
function machineThere(readings: readonly { atMs: number; machine: MachineReading }[], { atMs, machine: here }: UsageSample): MachineReading {
  const { loadAverage, serverMhz } = (readings.findLast((one) => one.atMs <= atMs) ?? readings[0])?.machine ?? here;
  const seconds = (part: keyof CoreSeconds): number => valueAt(readings, atMs, ({ machine }) => machine.server?.[part] ?? 0);
  const isTold = readings.length > 0 && readings.every(({ machine }) => machine.server !== null);
  return { server: isTold ? { processes: seconds('processes'), interrupts: seconds('interrupts'), steal: seconds('steal'), idle: seconds('idle') } : null, generator: here.generator, loadAverage, serverMhz };
}

/** Those that are as far apart as without bounds: between closer ones the kernel's ticks show, which bring a task's CPU time up to date. */
export function sparse<S extends { atMs: number }>(samples: readonly S[]): S[] {
  let lastMs = -Infinity;
  return samples.filter(({ atMs }) => {
    const isFar = atMs - lastMs >= intervalMs * 0.9;
    if (isFar) lastMs = atMs;
    return isFar;
  });
}

/**
 * Of the monotonic clock. `idleBefore`: no load comes before the window, so that the server does nothing until it begins;
 * `idleAfter`: none comes after it, so that the server does nothing then but to close connections.
 */
export interface UsageWindow { fromMs: number; toMs: number; idleBefore: boolean; idleAfter?: boolean }

/** Of a phase. @param isLast no load comes after it */
export function windowOf({ monotonicMs: [fromMs, toMs] }: LoadResult, { warmupSeconds }: Load, isLast: boolean): UsageWindow {
  return { fromMs, toMs, idleBefore: warmupSeconds === 0, idleAfter: isLast };
}

/** Between samples that are further apart a straight line says too little, whatever the window is. */
export const farMs = 250;

/**
 * CPU seconds used within a window, and the highest memory seen there. Where the server is idle before and after it, the
 * samples around it say exactly what was used, however short it is. After a warm-up, within steady load, a straight line
 * lies between the samples around the start, and at the end, where the load stops, the rate before it goes on for the rest,
 * up to what the sample behind it says. Where these are far apart and no load follows, it is what the sample behind it says: the
 * end of the connections, some milliseconds of CPU, is the lesser error then.
 *
 * What it may be wrong by: at most a quarter of the time between the two samples, times the server's cores, at the start
 * (a sum that grows by at most that in a line's place), and at most that time at the end; and by a tick of the kernel's (1 to
 * 10 ms) for each process that runs at the bound, since only then its CPU time is brought up to date. With bounds that are
 * expected (UsageSampler) the samples are about 10 ms apart; at a rate one is at the bound, and the others 150 ms apart.
 * @param samples in order of time, around the window (gapIn says whether they are)
 */
export function usageBetween(samples: readonly ServerSample[], { fromMs, toMs, idleBefore, idleAfter = false }: UsageWindow): { cpuSeconds: number; rssBytes: number } {
  const inside = samples.filter((sample) => sample.atMs >= fromMs && sample.atMs <= toMs);
  return {
    cpuSeconds: idleBefore ? cpuAround(samples, fromMs, toMs) : cpuAtEnd(samples, toMs, idleAfter) - valueAt(samples, fromMs, cpuOf),
    rssBytes: extent((inside.length > 0 ? inside : samples).map((sample) => sample.rssBytes))[1],
  };
}

const cpuOf = ({ cpuSeconds }: Pick<ServerSample, 'cpuSeconds'>): number => cpuSeconds;

/** The last sample before an instant, and the first one that is not; undefined where there is none. @param samples in order of time */
export function around<S extends { atMs: number }>(samples: readonly S[], atMs: number): [before: S | undefined, after: S | undefined] {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  return next === -1 ? [samples.at(-1), undefined] : [samples[next - 1], samples[next]];
}

/** A figure at an instant, on a straight line between the samples around it; outside of them that of the nearest one. */
export function valueAt<S extends { atMs: number }>(samples: readonly S[], atMs: number, of: (sample: S) => number): number {
  const [before, after] = around(samples, atMs);
  if (before === undefined || after === undefined) return of((before ?? after) as S);
  return of(before) + rate(before, after, of) * (atMs - before.atMs);
}

function cpuAround(samples: readonly ServerSample[], fromMs: number, toMs: number): number {
  const before = samples.findLast((sample) => sample.atMs <= fromMs) ?? samples[0] as ServerSample;
  const after = samples.find((sample) => sample.atMs >= toMs) ?? samples.at(-1) as ServerSample;
  return after.cpuSeconds - before.cpuSeconds;
}

function cpuAtEnd(samples: readonly ServerSample[], atMs: number, idleAfter: boolean): number {
  const [before, after] = around(samples, atMs);
  if (before === undefined || after === undefined) return valueAt(samples, atMs, cpuOf);
  if (idleAfter && after.atMs - before.atMs > farMs) return after.cpuSeconds;
  // Long enough for a rate that the kernel's ticks do not show in.
  const earlier = samples.findLast((sample) => before.atMs - sample.atMs >= intervalMs * 0.9);
  if (earlier === undefined) return valueAt(samples, atMs, cpuOf);
  if (after.atMs === atMs) return after.cpuSeconds;
  return Math.min(after.cpuSeconds, before.cpuSeconds + rate(earlier, before, cpuOf) * (atMs - before.atMs));
}

/** Per millisecond. */
function rate<S extends { atMs: number }>(from: S, to: S, of: (sample: S) => number): number {
  return (of(to) - of(from)) / (to.atMs - from.atMs);
}
