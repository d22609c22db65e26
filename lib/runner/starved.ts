// How long others kept a side's server from working: they used its cores, or stopped its processes.
import type { LoadResult } from '../result/load-result.ts';
import type { Noise, Phase } from '../result/result.ts';
import {
  othersOn,
  valueAt,
  waitOf,
  type NoiseCores,
  type UsageSample,
  type UsageWindow,
} from './samples.ts';

type Window = Pick<UsageWindow, 'fromMs' | 'toMs'>;

/** Share of the samples within a window in which a process of the server was stopped; undefined without samples. */
export function stoppedShareOf(
  samples: readonly Pick<UsageSample, 'atMs' | 'stopped'>[],
  { fromMs, toMs }: Window,
): number | undefined {
  const inside = samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  if (inside.length === 0) return undefined;
  return inside.filter(({ stopped }) => stopped).length / inside.length;
}

/** With more of the server's cores for its backend, a wait may be for the backend. */
const littleUpstream = 0.01;

/**
 * Returns how long a server's tasks waited for its cores during its turns, including waits for each other, and how long other
 * programs used these cores. Both are absent if unknown or if the generator uses these cores too; the use by others is absent if it
 * cannot be distinguished from a backend's.
 * @param backendsAreKnown a wait for a backend does not look like a wait for another program
 */
export function waitsOf(
  result: LoadResult,
  samples: readonly UsageSample[],
  { fromMs, toMs }: Window,
  noise: Noise,
  cores: NoiseCores,
  { workers, backendsAreKnown }: { workers: number; backendsAreKnown: boolean },
): Pick<Phase, 'waitedShare' | 'othersShare'> {
  const others = cores.shared ? undefined : othersIn(result, noise, cores);
  if (others === undefined) return {};
  const waited = valueAt(samples, toMs, waitOf) - valueAt(samples, fromMs, waitOf);
  const usable = others.seconds * Math.min(workers, cores.server);
  const { upstreamShare = 0 } = noise;
  const areApart = backendsAreKnown && upstreamShare !== null && upstreamShare <= littleUpstream;
  return {
    waitedShare: Math.max(0, waited) / usable,
    ...(areApart && { othersShare: Math.max(0, others.cpuSeconds) / usable }),
  };
}

/** CPU seconds of others on the server's cores in its turns, which took `seconds`; undefined if they are not known. */
function othersIn(result: LoadResult, { serverOthersShare }: Noise, cores: NoiseCores) {
  if (result.turns === null)
    return {
      seconds: result.seconds,
      cpuSeconds: serverOthersShare * result.seconds * cores.server,
    };
  const used = result.serverCpu?.cores;
  if (used === undefined || used.seconds === 0) return undefined;
  const { seconds, servers } = used;
  // Work of servers without load has a separate warning.
  return { seconds, cpuSeconds: othersOn(used, servers, seconds * cores.server, cores) };
}
