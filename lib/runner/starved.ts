// How long others kept a side's server from working: they used its cores, or stopped its processes.
import { total } from '../analysis/statistics.ts';
import type { PhaseOutcome } from '../k6/load-plan.ts';
import type { LoadResult, Noise, Phase } from '../result/result.ts';
import {
  othersOn,
  valueAt,
  waitOf,
  type NoiseCores,
  type UsageSample,
  type UsageWindow,
} from './samples.ts';

type Window = Pick<UsageWindow, 'fromMs' | 'toMs'>;

/** The side's results and samples, and the outcomes of all sides. */
interface Seen {
  results: readonly LoadResult[];
  outcomes: readonly Pick<PhaseOutcome, 'results'>[];
  samples: readonly UsageSample[];
}

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
 * Returns how long a server's tasks waited for its cores in its turns, also for each other, and how long others used these cores;
 * undefined if others cannot be told from the generator or a backend. @param index of the phase. @param workers of the server
 */
export function starvedOf(
  { results, outcomes, samples }: Seen,
  index: number,
  { fromMs, toMs }: Window,
  noise: Noise,
  cores: NoiseCores,
  workers: number,
): Phase['starved'] {
  const { upstreamShare = 0 } = noise;
  if (cores.shared || upstreamShare === null || upstreamShare > littleUpstream) return undefined;
  const result = results[index] as LoadResult;
  const sides = outcomes[index]?.results ?? [];
  const others = othersIn(result, sides, noise, cores);
  if (others === undefined) return undefined;
  const waited = valueAt(samples, toMs, waitOf) - valueAt(samples, fromMs, waitOf);
  const usable = others.seconds * Math.min(workers, cores.server);
  return {
    waitedShare: Math.max(0, waited) / usable,
    othersShare: Math.max(0, others.cpuSeconds) / usable,
  };
}

/** CPU seconds of others on the server's cores in its turns, which took `seconds`; undefined if they are not known. */
function othersIn(
  result: LoadResult,
  sides: readonly LoadResult[],
  { serverOthersShare }: Noise,
  cores: NoiseCores,
) {
  if (result.turns === null)
    return {
      seconds: result.seconds,
      cpuSeconds: serverOthersShare * result.seconds * cores.server,
    };
  const own = result.serverCpu;
  if (!own || own.cores.seconds === 0) return undefined;
  const { seconds } = own.cores;
  // What the other servers do while they are not loaded has a warning of its own.
  const idle = total(sides, (side) => (side === result ? 0 : (side.serverCpu?.idleShare ?? 0)));
  const ours = own.seconds + idle * seconds;
  return { seconds, cpuSeconds: othersOn(own.cores, ours, seconds * cores.server, cores) };
}
