// Samples what a server uses while it is under load.
import type { RunningServer } from '../servers/index.ts';
import type { ServerSample } from '../store/index.ts';

const intervalMs = 100;

export interface UsageSampler {
  samples: readonly ServerSample[];
  /** Takes a last sample and ends. May be called twice. */
  stop(): void;
}

/** Samples 10 times a second from now on, the first at once. */
export function sampleUsage(server: RunningServer): UsageSampler {
  const samples: ServerSample[] = [];
  const take = (): void => {
    samples.push({ atMs: Date.now(), ...server.usage() });
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
    cpuSeconds: idleBefore ? cpuAround(samples, fromMs, toMs) : cpuAtEnd(samples, toMs) - cpuAt(samples, fromMs),
    rssBytes: Math.max(...(inside.length > 0 ? inside : samples).map((sample) => sample.rssBytes)),
  };
}

function cpuAround(samples: readonly ServerSample[], fromMs: number, toMs: number): number {
  const before = samples.findLast((sample) => sample.atMs <= fromMs) ?? samples[0] as ServerSample;
  const after = samples.find((sample) => sample.atMs >= toMs) ?? samples.at(-1) as ServerSample;
  return after.cpuSeconds - before.cpuSeconds;
}

function cpuAt(samples: readonly ServerSample[], atMs: number): number {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  const after = samples[next] ?? (samples.at(-1) as ServerSample);
  const before = samples[next - 1];
  if (next <= 0 || before === undefined || after.atMs === before.atMs) return after.cpuSeconds;
  return before.cpuSeconds + rate(before, after) * (atMs - before.atMs);
}

function cpuAtEnd(samples: readonly ServerSample[], atMs: number): number {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  const [earlier, before, after] = [samples[next - 2], samples[next - 1], samples[next]];
  if (earlier === undefined || before === undefined || after === undefined) return cpuAt(samples, atMs);
  if (after.atMs === atMs || earlier.atMs === before.atMs) return after.cpuSeconds;
  return Math.min(after.cpuSeconds, before.cpuSeconds + rate(earlier, before) * (atMs - before.atMs));
}

/** CPU seconds per millisecond. */
function rate(from: ServerSample, to: ServerSample): number {
  return (to.cpuSeconds - from.cpuSeconds) / (to.atMs - from.atMs);
}
