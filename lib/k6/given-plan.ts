// The load plan inside k6: a script reads the plan, makes its load, and prints the outcomes of its phases.
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
    // There is a VU for each k6. The load's tags are here too, because k6-operator's tags on the command line replace those at the end.
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

/** Makes the load, which prints its outcomes. Throws an Error if the execution segments are not those of the plan. */
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

/** Prints the outcome of a phase for the runner. */
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
