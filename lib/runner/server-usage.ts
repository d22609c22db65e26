// Samples what a server uses while it is under load.
import type { RunningServer } from '../servers/server.ts';
import type { ServerSample } from '../store/schema.ts';

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

/**
 * CPU seconds used between two instants, by straight lines between the samples around each, and the highest memory seen
 * there. Instants outside of the samples count as the nearest one.
 * @param samples in order of time, at least one
 */
export function usageBetween(samples: readonly ServerSample[], fromMs: number, toMs: number): { cpuSeconds: number; rssBytes: number } {
  const inside = samples.filter((sample) => sample.atMs >= fromMs && sample.atMs <= toMs);
  return {
    cpuSeconds: cpuAt(samples, toMs) - cpuAt(samples, fromMs),
    rssBytes: Math.max(...(inside.length > 0 ? inside : samples).map((sample) => sample.rssBytes)),
  };
}

function cpuAt(samples: readonly ServerSample[], atMs: number): number {
  const next = samples.findIndex((sample) => sample.atMs >= atMs);
  const after = samples[next] ?? (samples.at(-1) as ServerSample);
  const before = samples[next - 1];
  if (next <= 0 || before === undefined || after.atMs === before.atMs) return after.cpuSeconds;
  return before.cpuSeconds + ((after.cpuSeconds - before.cpuSeconds) * (atMs - before.atMs)) / (after.atMs - before.atMs);
}
