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

/** Why requests left late, or not at all. */
export function rateCause(variant: VariantResult): string {
  const limit = limitOf(variant);
  const { growthPerSecond = 0 } = rateOf(variant) ?? {};
  if (growthPerSecond > 0 && limit !== 'generator')
    return `its queue grows by ${whole(growthPerSecond)} each second, so it cannot serve more`;
  if (limit === null)
    return 'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)';
  return causes[limit];
}
