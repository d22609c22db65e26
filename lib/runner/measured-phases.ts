// The phases of a side's round: the engine's results, with what was observed within their windows.
import { pauseMs } from '../analysis/limit.ts';
import { responsesOf } from '../analysis/phases.ts';
import { sharesCores } from '../machine/cores.ts';
import { interruptsApart } from '../machine/usage.ts';
import { present } from '../present.ts';
import type { LoadResult } from '../result/load-result.ts';
import type { Phase } from '../result/result.ts';
import { isConfigured } from '../scenario/variants.ts';
import { isRemote } from '../servers/index.ts';
import { expectedOf } from './k6-plan.ts';
import { isSampled } from './observers/usage.ts';
import type { Plan } from './plan.ts';
import {
  mostTaken,
  noiseBetween,
  usageBetween,
  windowOf,
  type NoiseCores,
  type UsageWindow,
} from './samples.ts';
import { stoppedShareOf, waitsOf } from './starved.ts';
import type { Measurement } from './under-load.ts';

/**
 * Joins the engine's results with the samples within their windows.
 * @param othersAreKnown the use of the server's cores by others can be told from the sides' own
 */
export function phasesOf(
  measurement: Measurement,
  { cores }: Plan,
  othersAreKnown: boolean,
): Phase[] {
  const { planned, server } = measurement.stage;
  const { results, samples, ofServer, enclosed, perRequest, acceptQueue } = measurement;
  const { alsoLoadedBy, otherCpus } = measurement;
  const counts: NoiseCores = {
    server: cores.serverCpus.length,
    generator: cores.generatorCpus.length,
    shared: sharesCores(cores),
    interruptsApart: isRemote(server) ? undefined : interruptsApart(),
    hasUpstreams: server.upstreams.length > 0,
  };
  const knownOfServer = {
    workers: server.workers,
    backendsAreKnown: isConfigured(planned.variant.server) || !measurement.mayHaveBackends,
  };
  return results.map((loaded) => {
    const { serverCpu = null, serverMemoryBytes: __, wire: _, ...result } = loaded;
    const window = windowOf(result, planned.load);
    const noise = othersAreKnown ? noiseBetween(samples, window, counts) : null;
    const network = enclosed?.within(window) ?? null;
    const pause = pauseMs({ ...result, network });
    if (noise !== null && pause !== null)
      noise.duringPause = mostTaken(pause, samples, window, counts, server.workers);
    const { rssBytes } = usageBetween(ofServer, window);
    const { cpuSeconds } = usageBetween(ofServer, spanOfTurns(result, window));
    const ofTurns = (serverCpu?.seconds ?? cpuSeconds) * countedShare(result);
    return {
      ...result,
      ...expectedOf(planned),
      serverCpuSeconds: isSampled(server) ? ofTurns : null,
      serverRssBytes: isSampled(server) ? rssBytes : null,
      idleCpuShare: serverCpu?.idleShare ?? null,
      ...present({
        perRequest,
        acceptQueue,
        alsoLoadedBy,
        otherCpus,
        cpuGain: serverCpu?.gain || undefined,
        stoppedShare: isSampled(server) ? stoppedShareOf(samples, window) : undefined,
      }),
      ...(noise && waitsOf(loaded, samples, window, noise, counts, knownOfServer)),
      generatorCpuSeconds: result.cpuSeconds,
      noise,
      network,
    };
  });
}

/**
 * The time from a side's first request in its turns to its last answer. A window leaves out the ramp before the first turn and the drain
 * after the last one. The server is idle before and after, unless its warm-up was just before.
 */
function spanOfTurns({ turns, latencyMs }: LoadResult, window: UsageWindow): UsageWindow {
  if (turns === null || turns.rampMs === 0) return window;
  return {
    ...window,
    fromMs: window.fromMs - turns.rampMs,
    toMs: window.toMs + latencyMs.max,
  };
}

/** Share of the responses in its turns, ramps and drains included, that the figures count: each costs the same CPU time. */
function countedShare(result: LoadResult): number {
  const all = result.turns?.responses ?? 0;
  return all === 0 ? 1 : responsesOf(result) / all;
}
