// What was measured of a side in one round, and the figures that it comes to.
import { responsesOf } from '../analysis/phases.ts';
import { isHosted } from '../hosts/server-host.ts';
import type { PhaseOutcome } from '../k6/load-plan.ts';
import { sharesCores } from '../machine/cores.ts';
import { interruptsApart } from '../machine/usage.ts';
import type { LinkCounts, LinkReport } from '../network/link-messages.ts';
import type { LoadResult, Phase } from '../result/result.ts';
import type { Load } from '../scenario/load.ts';
import { isStarted, type RunningServer } from '../servers/index.ts';
import { networkUseBetween } from './network-usage.ts';
import { noiseBetween, type NoiseCores } from './noise.ts';
import { expectedOf } from './plan.ts';
import type { Plan, PlannedVariant } from './planned.ts';
import { usageBetween, type UsageSample, type UsageWindow } from './server-usage.ts';

/** What k6, a side's server and the link left to be put together. */
export interface Measurement {
  /** Of the phases. */
  results: LoadResult[];
  /** The same of all sides. */
  outcomes: readonly PhaseOutcome[];
  /** See K6Outcome. */
  outputHung: boolean;
  samples: readonly UsageSample[];
  quotas: string;
  recordFile: string;
  /** null on loopback. */
  link: { samples: readonly LinkCounts[]; report: LinkReport } | null;
}

/** Puts the engine's results and what was sampled within their windows together. @param othersAreKnown what else used the server's cores is no side of the group */
export function phasesOf({ results, samples, link }: Measurement, { load, variant }: PlannedVariant, { scenario, cores }: Plan, server: RunningServer, othersAreKnown: boolean): Phase[] {
  const counts: NoiseCores = {
    server: cores.serverCpus.length, generator: cores.generatorHosts === undefined ? cores.generatorCpus.length : 0, shared: sharesCores(cores), interruptsApart: isHosted(server) ? undefined : interruptsApart(),
    hasUpstreams: server.upstreams.length > 0,
  };
  return results.map((result, index) => {
    const window = windowOf(result, load, index === results.length - 1);
    const { cpuSeconds, rssBytes } = usageBetween(samples, window);
    return {
      ...result, ...expectedOf(scenario, variant), ...(isStarted(server) || isHosted(server) ? { serverCpuSeconds: cpuSeconds * shareOfLoad(result), serverRssBytes: rssBytes } : { serverCpuSeconds: null, serverRssBytes: null }),
      generatorCpuSeconds: result.cpuSeconds, noise: othersAreKnown ? noiseBetween(samples, window, counts) : null,
      // In a network there is one phase.
      network: link === null ? null : networkUseBetween(link.samples, link.report, window),
    };
  });
}

/** Of what the server answered within the window, 0 to 1: responses that were for nobody have cost it as much. */
function shareOfLoad(result: LoadResult): number {
  const responses = responsesOf(result);
  return responses === 0 ? 1 : responses / (responses + (result.settling ?? 0));
}

/** @param isLast no load comes after it */
export function windowOf({ monotonicMs: [fromMs, toMs] }: LoadResult, { warmupSeconds }: Load, isLast: boolean): UsageWindow {
  return { fromMs, toMs, idleBefore: warmupSeconds === 0, idleAfter: isLast };
}
