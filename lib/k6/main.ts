// The k6 script: runs the phases of a load plan, or searches for the rates of one, and prints what each came to. Compiled to one file, script.js, which is
// kept with the results and can be run by hand, as its first lines say.
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import loadgen from 'k6/x/loadgen';
import { responsesNeeded } from '../analysis/metric.ts';
import {
  loadOverLine,
  loadPlanVariable,
  phaseBeginsLine,
  phaseLinePrefix,
  type AlternateOptions,
  type CallOptions,
  type LoadPlan,
  type PhaseOutcome,
  type SearchPlan,
  type SideOptions,
} from './load-plan.ts';
import { meet } from './meeting.ts';
import { mostSteps, searchSides } from './rate-search.ts';

declare const __ENV: Record<string, string | undefined>;

/** So many times the answers that a percentile needs: some of them may be missing. */
const enough = 1.5;

const json = __ENV[loadPlanVariable];
if (json === undefined)
  throw new Error(
    `set ${loadPlanVariable} to the load plan, e.g. ${loadPlanVariable}="$(cat load.json)"`,
  );
const plan = JSON.parse(json) as LoadPlan;
const { instances = 1 } = plan;

/** Those of the plan, with all pages. Files can be opened now only. */
const phases = plan.phases.map(withPages);

export const options: Options = {
  scenarios: {
    // One VU for each k6. Tags of the command line, as k6-operator gives them, take the place of all that stand below: the load's stand here, too.
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

export default function runPlan(): void {
  // A k6 that makes another part than the others count on would leave some of the load out, or make it twice.
  const segments = segmentBegins().length;
  if (segments !== instances)
    throw new Error(
      `the load is divided among ${instances} k6, and the execution segments of this one among ${segments}: give --execution-segment and --execution-segment-sequence for ${instances}`,
    );
  if (plan.search === undefined) runPhases();
  else searchRates(plan.search, phases[0] as AlternateOptions);
  console.log(loadOverLine);
}

function runPhases(): void {
  const pauseSeconds = plan.pauseSeconds ?? 0;
  const met = orAbort(() =>
    plan.meetAt === undefined ? undefined : meet(plan.meetAt, plan, segmentBegins()),
  );
  const startAtMs = met?.beginsAtMs ?? plan.startAtMs;
  for (const [index, phase] of phases.entries()) {
    if (index > 0 && pauseSeconds > 0) sleep(pauseSeconds);
    console.log(phaseBeginsLine);
    const call: CallOptions = {
      segmented: instances > 1,
      ...(index === 0 && startAtMs !== undefined ? { startAt: startAtMs } : {}),
    };
    const outcome: PhaseOutcome = { results: loadgen.alternate({ ...phase, ...call }) };
    tell(outcome);
    orAbort(() => met?.leave(index + 1, outcome));
  }
}

function orAbort<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    // Whoever started it has its exit code only, which is 0 after an exception.
    exec.test.abort((error as Error).message);
    throw error;
  }
}

/** Of all k6, in their order. */
function segmentBegins(): string[] {
  return (exec.test.options.executionSegmentSequence ?? '0,1').split(',').slice(0, -1);
}

function searchRates(
  { within, from, expected, stepSeconds }: SearchPlan,
  phase: AlternateOptions,
): void {
  searchSides(
    from,
    within,
    (rates, step) => {
      const seconds = rates.map((rate) =>
        Math.max(stepSeconds, (enough * responsesNeeded[within.metric]) / rate),
      );
      const sides = phase.sides.map((side, index): SideOptions => ({
        ...side,
        rate: rates[index] as number,
        duration: `${Math.ceil(1000 * (seconds[index] as number))}ms`,
        tags: { ...side.tags, phase: String(step) },
      }));
      console.log(phaseBeginsLine);
      const results = loadgen.alternate({
        ...phase,
        sides,
        seed: mostSteps * ((phase.seed ?? 1) - 1) + step,
      });
      return results.map((result, side) => ({ ...result, ...expected[side] }));
    },
    tell,
  );
}

function withPages(phase: AlternateOptions): AlternateOptions {
  const pagesOf = (file: string | null | undefined): Pick<SideOptions, 'pages'> =>
    typeof file === 'string' ? { pages: open(`./${file}`) } : {};
  return {
    ...phase,
    sides: phase.sides.map((side, index) => ({ ...side, ...pagesOf(plan.pageFiles?.[index]) })),
  };
}

function tell(outcome: PhaseOutcome): void {
  console.log(phaseLinePrefix + JSON.stringify(outcome));
}
