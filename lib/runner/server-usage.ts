// Samples what a server, the generator and everything else use while there is load.
import { extent } from '../analysis/statistics.ts';
import type { RunningServer } from '../servers/index.ts';
import type { ServerSample } from '../store/index.ts';
import type { MachineReading } from './machine-usage.ts';

const intervalMs = 100;

/** All of one instant. CPU seconds are sums since some start. */
export interface UsageSample extends ServerSample {
  /** Of k6, of this process, and of the link on the generator's cores. */
  generatorCpuSeconds: number;
  /** Of the link on the server's cores; 0 on loopback. */
  linkToServerCpuSeconds: number;
  machine: MachineReading;
}

export interface UsageSampler {
  samples: readonly UsageSample[];
  /** Takes a last sample and ends. May be called twice. */
  stop(): void;
}

/** What is sampled. */
export interface UsageReaders {
  server: RunningServer['usage'];
  /** CPU seconds of k6, and of the link on its cores. */
  generator(): number;
  /** CPU seconds of the link on the server's cores. */
  linkToServer(): number;
  machine(): MachineReading;
}

/** Samples 10 times a second from now on, the first at once. */
export function sampleUsage(readers: UsageReaders): UsageSampler {
  const samples: UsageSample[] = [];
  const take = (): void => {
    const own = process.cpuUsage();
    samples.push({
      atMs: Date.now(),
      ...readers.server(),
      generatorCpuSeconds: readers.generator() + (own.user + own.system) / 1e6,
      linkToServerCpuSeconds: readers.linkToServer(),
      machine: readers.machine(),
    });
  };
  take();
  const timer = setInterval(take, intervalMs);
  let stopped = false;
  return {
    samples,
    stop() {
      if (stopped) return;
      stopped = true;
      clearInterval(timer);
      take();
    },
  };
}

/** `idleBefore`: no load comes before the window, so that the server does nothing until it begins. */
export interface UsageWindow { fromMs: number; toMs: number; idleBefore: boolean }

/**
 * CPU seconds used within a window, and the highest memory seen there. Where the server is idle before and after it, the
 * samples around it say exactly what was used, however short it is. After a warm-up, within steady load, a straight line
 * lies between the samples around the start, and at the end, where the load stops, the rate before it goes on for the rest.
 * Instants outside of the samples count as the nearest one.
 * @param samples in order of time, at least one
 */
export function usageBetween(samples: readonly ServerSample[], { fromMs, toMs, idleBefore }: UsageWindow): { cpuSeconds: number; rssBytes: number } {
  const inside = samples.filter((sample) => sample.atMs >= fromMs && sample.atMs <= toMs);
  return {
    cpuSeconds: idleBefore ? cpuAround(samples, fromMs, toMs) : cpuAtEnd(samples, toMs) - valueAt(samples, fromMs, cpuOf),
    rssBytes: extent((inside.length > 0 ? inside : samples).map((sample) => sample.rssBytes))[1],
  };
}

const cpuOf = ({ cpuSeconds }: ServerSample): number => cpuSeconds;

/** A figure at an instant, on a straight line between the samples around it; outside of them that of the nearest one. */
export function valueAt<S extends { atMs: number }>(samples: readonly S[], atMs: number, of: (sample: S) => number): number {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  const after = samples[next] ?? (samples.at(-1) as S);
  const before = samples[next - 1];
  if (next <= 0 || before === undefined || after.atMs === before.atMs) return of(after);
  return of(before) + rate(before, after, of) * (atMs - before.atMs);
}

function cpuAround(samples: readonly ServerSample[], fromMs: number, toMs: number): number {
  const before = samples.findLast((sample) => sample.atMs <= fromMs) ?? samples[0] as ServerSample;
  const after = samples.find((sample) => sample.atMs >= toMs) ?? samples.at(-1) as ServerSample;
  return after.cpuSeconds - before.cpuSeconds;
}

function cpuAtEnd(samples: readonly ServerSample[], atMs: number): number {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  const [earlier, before, after] = [samples[next - 2], samples[next - 1], samples[next]];
  if (earlier === undefined || before === undefined || after === undefined) return valueAt(samples, atMs, cpuOf);
  if (after.atMs === atMs || earlier.atMs === before.atMs) return after.cpuSeconds;
  return Math.min(after.cpuSeconds, before.cpuSeconds + rate(earlier, before, cpuOf) * (atMs - before.atMs));
}

/** Per millisecond. */
function rate<S extends { atMs: number }>(from: S, to: S, of: (sample: S) => number): number {
  return (of(to) - of(from)) / (to.atMs - from.atMs);
}
