// The load plan inside k6: a script reads it, loads, and prints the outcomes.
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import {
  loadOverLine,
  loadPlanVariable,
  phaseLinePrefix,
  type AlternateOptions,
  type LoadPlan,
  type PhaseOutcome,
  type SideOptions,
} from './load-plan.ts';

declare const __ENV: Record<string, string | undefined>;

const json = __ENV[loadPlanVariable];
if (json === undefined)
  throw new Error(
    `set ${loadPlanVariable} to the load plan, e.g. ${loadPlanVariable}="$(cat load.json)"`,
  );
export const plan = JSON.parse(json) as LoadPlan;
export const { instances = 1 } = plan;

/** The plan's phases with their requests. k6 opens files only now. */
export const phases = plan.phases.map(withMix);

export const options: Options = {
  scenarios: {
    // A VU for each k6. k6-operator's tags replace those at the end, so the load's are here too.
    [plan.scenario]: {
      executor: 'per-vu-iterations',
      vus: instances,
      iterations: 1,
      maxDuration: `${plan.maxDurationSeconds}s`,
      gracefulStop: '0s',
      tags: { ...plan.tags },
    },
  },
  tags: { ...plan.tags },
};

/** Makes the load. Throws an Error if the execution segments are not the plan's. */
export function runGivenPlan(load: () => void): void {
  // A wrong segment would leave some of the load out, or make it twice.
  const segments = segmentBegins().length;
  if (segments !== instances)
    throw new Error(
      `the load is divided among ${instances} k6, and the execution segments of this one among ${segments}: give --execution-segment and --execution-segment-sequence for ${instances}`,
    );
  load();
  console.log(loadOverLine);
}

/** The begins of the execution segments of all k6, in their order. */
export function segmentBegins(): string[] {
  return (exec.test.options.executionSegmentSequence ?? '0,1').split(',').slice(0, -1);
}

/** The runner reads it. */
export function tell(outcome: PhaseOutcome): void {
  console.log(phaseLinePrefix + JSON.stringify(outcome));
}

function withMix(phase: AlternateOptions): AlternateOptions {
  const mixOf = (file: string | null | undefined): Pick<SideOptions, 'mix'> =>
    typeof file === 'string' ? { mix: open(`./${file}`) } : {};
  return {
    ...phase,
    // The tables are made of loadgen_*.
    k6Metrics: false,
    sides: phase.sides.map((side, index) => ({ ...side, ...mixOf(plan.mixFiles?.[index]) })),
  };
}
