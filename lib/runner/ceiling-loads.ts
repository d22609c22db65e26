// The loads of a plan as they are laid on the responder, to find what the generator can do at most.
import { networkOf, pageOf } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import { assumed } from './assumed.ts';
import type { PlanDraft, PlannedVariant } from './plan.ts';

/** Each load is laid on so often, and the best counts: what disturbs it makes it less. */
export const attempts = 2;
/** Of each, at most; no longer than a round is. */
const measuredSeconds = { full: 0.5, quick: 0.25 };
/** Before that, beside the time of the handshakes. */
const warmupSeconds = 0.2;
const timeoutSeconds = 5;

/** A load, and who has it. */
export interface CeilingLoad {
  variants: string[];
  load: Load & { durationSeconds: number };
  tls: boolean;
  page: Page;
}

/**
 * Each load that differs, once. Those with a rate are left out: they ask for no more than it; and those with a network of the
 * run's own: what can be done over it is the link's to say too.
 * @param overTls whether the variant's server speaks TLS; before it was tried, what its protocol says
 */
export function ceilingLoads(plan: PlanDraft, overTls = ({ load }: PlannedVariant): boolean => load.protocol === 'h2'): CeilingLoad[] {
  const found = new Map<string, CeilingLoad>();
  for (const planned of plan.variants) {
    if (planned.load.rate !== undefined || networkOf(plan.scenario, planned.variant) !== undefined) continue;
    const tls = overTls(planned);
    const page = pageOf(plan.scenario, planned.variant);
    const load = shortened(planned.load, tls, plan.quick);
    const key = JSON.stringify([{ ...load, command: '' }, tls, page.path, page.host, page.bodyBytes]);
    const known = found.get(key);
    if (known === undefined) found.set(key, { variants: [planned.variant.name], load, tls, page });
    else known.variants.push(planned.variant.name);
  }
  return [...found.values()];
}

function shortened({ requests: _requests, rate: _rate, expectedRps: _expectedRps, durationSeconds = Infinity, ...load }: Load, tls: boolean, quick: boolean): CeilingLoad['load'] {
  return {
    ...load,
    durationSeconds: Math.min(quick ? measuredSeconds.quick : measuredSeconds.full, durationSeconds),
    timeoutSeconds,
    warmupSeconds: warmupSeconds + (tls ? load.connections * assumed.handshakeSeconds : 0),
  };
}
