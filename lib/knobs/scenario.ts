// The scenarios that knobs come to: each knob against the config as it is, beside which it is alive.
import { UserError } from '../errors.ts';
import type { Cores } from '../machine/cores.ts';
import { makePlan, type PlanOptions } from '../runner/make-plan.ts';
import type { PlanDraft } from '../runner/plan.ts';
import { defineScenario } from '../scenario/define-scenario.ts';
import type {
  ConfiguredServer,
  LaidLines,
  LoadProfile,
  Page,
  Scenario,
  Variant,
} from '../scenario/model.ts';

/** The config as it is. */
export interface AsItIs {
  given: string;
  server: ConfiguredServer;
  load: LoadProfile;
  page: Page;
}

/** One or several knobs on it. `page`: what is answered then. */
export interface Changed {
  name: string;
  laid: readonly LaidLines[];
  workers: ConfiguredServer['workers'];
  page: Page;
}

/** More in a group wait too long for their next turn. */
const mostInGroup = 11;

/** What the config as it is is called; there is one in each group. */
const baseline = 'as-it-is';

/**
 * A plan in which each of `changed` is compared with a baseline of its own group.
 * @throws UserError as makePlan does, and where not even two servers can be alive at a time
 */
export function planOf(
  name: string,
  title: string,
  asItIs: AsItIs,
  changed: readonly Changed[],
  cores: Cores,
  options: PlanOptions,
): PlanDraft {
  const all = draftOf(mostInGroup);
  const fits = Math.min(...all.groups.slice(0, -1).map(({ sides }) => sides.length));
  if (fits < 2)
    throw new UserError(
      'knobs are compared with the config as it is while both run, and this machine has no memory or open files for two servers under this load: take fewer connections (--load)',
    );
  const draft = fits > mostInGroup ? all : draftOf(fits - 1);
  const baselines = draft.variants.filter(({ variant }) => variant.against === null);
  return {
    ...draft,
    groups: baselines.map((one) => ({
      sides: draft.variants.filter(
        (side) => side === one || side.variant.against === one.variant.name,
      ),
    })),
  };

  function draftOf(most: number): PlanDraft {
    const scenario = scenarioOf(name, title, asItIs, changed, most);
    return makePlan(scenario, scenario.variants, cores, options);
  }
}

/** The config with the knobs laid over it. */
export function serverWith(server: ConfiguredServer, { workers, laid }: Changed): ConfiguredServer {
  return { ...server, workers, asIs: { ...server.asIs, laid } };
}

/** As evenly as they go into groups of at most so many. */
export function scenarioOf(
  name: string,
  title: string,
  { given, server, load, page }: AsItIs,
  changed: readonly Changed[],
  most: number,
): Scenario {
  const groups = Math.ceil(changed.length / most);
  const variants = Array.from({ length: groups }, (_, group): Variant[] => {
    const against = group === 0 ? baseline : `${baseline}-${group + 1}`;
    const [from, to] = [group, group + 1].map((index) =>
      Math.round((index * changed.length) / groups),
    );
    return [
      { name: against, server, against: null },
      ...changed.slice(from, to).map((one): Variant => ({
        name: one.name,
        against,
        server: serverWith(server, one),
        ...(one.page.bodyBytes === page.bodyBytes ? {} : { page: one.page }),
      })),
    ];
  }).flat();
  return defineScenario({
    name,
    title: `${title} ${given}`,
    knob: 'the usual advice',
    load,
    page,
    variants,
  });
}
