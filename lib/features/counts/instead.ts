// What --counts does instead of rounds.
import { onlyLook } from '../../analysis/looks.ts';
import { usageError, UserError } from '../../errors.ts';
import { firstOf } from '../../present.ts';
import type { RunPart } from '../../cli/feature.ts';
import type { Instead } from '../../runner/examine.ts';
import type { PlanDraft, PlannedVariant } from '../../runner/plan.ts';
import type { LoadProfile } from '../../scenario/model.ts';
import { isMix } from '../../scenario/pages.ts';
import { judge, type Condition } from './conditions.ts';

/** @param conditions of --fail-if; undefined without the flag */
export function counting(
  conditions: readonly Condition[] | undefined,
  parts: readonly RunPart[],
): Instead {
  const callCounter = firstOf(parts, (part) => part.callCounter);
  return {
    plan: planOf,
    expectedSeconds,
    async examine(run) {
      const seconds = expectedSeconds(run.context.plan);
      const { countSides } = await import('./passes.ts');
      return countSides(run, { conditions, callCounter, seconds });
    },
    judge({ counts }, say) {
      if (conditions === undefined) return 0;
      if (counts === undefined) throw new UserError('--fail-if: nothing was counted');
      return judge(counts, conditions, say);
    },
  };
}

/** About how long the passes take. */
const expectedSeconds = ({ variants }: Pick<PlanDraft, 'variants'>): number => 4 * variants.length;

/** Seconds of load before a pass. */
const warmSeconds = 0.4;
/** How the load is named. */
const command = 'one request at a time';

/** Without rounds, and with one request at a time: what a loop of events does for one request depends on how many wait. */
function planOf(draft: PlanDraft): PlanDraft {
  const { scenario, variants, groups } = draft;
  if (variants.some(({ page }) => isMix(page)))
    throw usageError('--counts counts requests to a single page: give a --url');
  const alone = new Map(variants.map((planned) => [planned.variant, oneAtATime(planned)]));
  const ofPlan = (planned: PlannedVariant) => alone.get(planned.variant) ?? planned;
  return {
    ...draft,
    scenario: { ...scenario, load: namedLoad(scenario.load) },
    variants: variants.map(ofPlan),
    groups: groups.map((group) => ({ ...group, sides: group.sides.map(ofPlan) })),
    rounds: 0,
    looks: onlyLook(0),
  };
}

/** As the heading shows it: neither threads nor a length are of interest. */
function namedLoad({ requests: _, rate: __, ...load }: LoadProfile): LoadProfile {
  return { ...load, command, threads: 1, durationSeconds: warmSeconds };
}

function oneAtATime(planned: PlannedVariant): PlannedVariant {
  const {
    rate: _,
    searched: __,
    together: ___,
    requests: ____,
    arrivals: _____,
    ...load
  } = planned.load;
  const one = { connections: 1, threads: 1, streams: 1, warmupSeconds: 0, warmupLimitSeconds: 0 };
  return { ...planned, load: { ...load, ...one, command, durationSeconds: warmSeconds } };
}
