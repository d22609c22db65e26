// Why a load did not keep its rate.
import { limitOf, rateOf, type Limit } from '../../analysis/limit.ts';
import { whole } from '../../format.ts';
import type { VariantResult } from '../../result/result.ts';

const causes: Readonly<Record<Limit, string>> = {
  both: 'both sides were at their limit',
  server: 'the server was at its limit',
  generator: 'the generator was at its limit',
  neither:
    'neither side was at its limit (run again on a quieter machine, or with more connections)',
};

/** Whether all connections may have been busy at once: by Little's law, with its longest latency and a burst of ten times its rate. */
function mayLackConnections({ load, rps, latencyMs }: VariantResult): boolean {
  if (rps === null || latencyMs === null) return false;
  const busy = (10 * rps.median * latencyMs.max) / 1000;
  return busy >= (load.connections ?? 0);
}

/** Why requests left late, or not at all. */
export function rateCause(variant: VariantResult): string {
  const limit = limitOf(variant);
  const { growthPerSecond = 0 } = rateOf(variant) ?? {};
  if (growthPerSecond > 0 && limit !== 'generator')
    return `its queue grows by ${whole(growthPerSecond)} each second, so it cannot serve more`;
  if (variant.load['arrivals'] === 'logged' && limit === 'neither' && mayLackConnections(variant))
    return 'they waited for a free connection (more connections move that queue into the server)';
  if (limit === null)
    return 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)';
  return causes[limit];
}
