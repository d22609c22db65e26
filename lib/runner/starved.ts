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
 * Returns how long a server's tasks waited for its cores during its turns, including waits for each other, how long other programs and
 * the host used these cores, and how long the generator waited while the server had time left. All are absent if unknown or if the
 * generator uses these cores too; the last two are absent if other programs cannot be distinguished from a backend.
 * @param backendsAreKnown a wait for a backend does not look like a wait for another program
 */
export function waitsOf(
  result: LoadResult,
  samples: readonly UsageSample[],
  { fromMs, toMs }: Window,
  noise: Noise,
  cores: NoiseCores,
  { workers, backendsAreKnown }: { workers: number; backendsAreKnown: boolean },
): Pick<Phase, 'waitedShare' | 'othersShare' | 'generatorWaitedShare'> {
  const others = cores.shared ? undefined : othersIn(result, noise, cores);
  if (others === undefined) return {};
  const { seconds, stolen, waits } = others;
  const sampled = valueAt(samples, toMs, waitOf) - valueAt(samples, fromMs, waitOf);
  const usable = seconds * Math.min(workers, cores.server);
  const waitedShare = (Math.max(0, waits?.server ?? sampled) + stolen) / usable;
  const { upstreamShare = 0 } = noise;
  if (!backendsAreKnown || upstreamShare === null || upstreamShare > littleUpstream)
    return { waitedShare };
  const othersShare = (Math.max(0, others.cpuSeconds) + stolen) / usable;
  if (waits === null) return { waitedShare, othersShare };
  const usedShare = (result.serverCpu?.seconds ?? 0) / usable + Math.min(waitedShare, othersShare);
  const ofGenerator = noise.generatorOthersShare + noise.generatorStealShare;
  const generatorWaitedShare = Math.min(
    waits.generator / seconds,
    Math.max(0, 1 - usedShare),
    ofGenerator,
  );
  return { waitedShare, othersShare, generatorWaitedShare };
}

/** CPU seconds of others on the server's cores in its turns, which took `seconds`; undefined if they are not known. */
function othersIn(result: LoadResult, { serverOthersShare }: Noise, cores: NoiseCores) {
  if (result.turns === null)
    return {
      seconds: result.seconds,
      cpuSeconds: serverOthersShare * result.seconds * cores.server,
      stolen: 0,
      waits: null,
    };
  const used = result.serverCpu?.cores;
  if (used === undefined || used.seconds === 0) return undefined;
  const { seconds, servers, stolen, waits } = used;
  // Work of servers without load has a separate warning.
  return {
    seconds,
    cpuSeconds: othersOn(used, servers, seconds * cores.server, cores),
    stolen,
    waits,
  };
}
