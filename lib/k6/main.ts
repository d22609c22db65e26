// The k6 script: runs the phases of a load plan or a search, and prints their outcomes. It is compiled to script.js, which is kept
// with the results and can be run by hand, as its first lines say.
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { LoadResult, PageFigures } from '../result/load-result.ts';
import type { Options } from 'k6/options';
import loadgen from 'k6/x/loadgen';
import { responsesNeeded } from '../analysis/latency.ts';
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
import { mostSteps, searchSides } from './rate-search.ts';
import { meet } from './rendezvous.ts';
import { warmedUp } from './warm-ups.ts';

declare const __ENV: Record<string, string | undefined>;

/** A step plans this many times the answers that its percentile needs, since some may be missing. */
const enough = 1.5;

const json = __ENV[loadPlanVariable];
if (json === undefined)
  throw new Error(
    `set ${loadPlanVariable} to the load plan, e.g. ${loadPlanVariable}="$(cat load.json)"`,
  );
const plan = JSON.parse(json) as LoadPlan;
const { instances = 1 } = plan;

/** The plan's phases with their requests. k6 opens files only now. */
const phases = plan.phases.map(withMix);

export const options: Options = {
  scenarios: {
    // A VU for each k6. k6-operator's tags on the command line replace those at the end, so the load's are here too.
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
  // A wrong segment would leave some of the load out, or make it twice.
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
    const call: CallOptions = { segmented: instances > 1 };
    if (index === 0 && startAtMs !== undefined) call.startAt = startAtMs;
    const warmUps = index === 0 ? warmedUp(phase, plan.warmUps ?? []) : [];
    const outcome: PhaseOutcome = { results: loadgen.alternate({ ...phase, ...call }) };
    for (const { side, result } of warmUps) addWarmUp(outcome.results[side] as LoadResult, result);
    if (plan.aloneSeconds !== undefined && instances === 1)
      addAlone(outcome, phase, plan.aloneSeconds);
    tell(outcome);
    orAbort(() => met?.leave(index + 1, outcome));
  }
}

/** Adds what a warm-up of its own did to the result of the load behind it. */
function addWarmUp(result: LoadResult, { requests, warmupRequests, wire, continuous }: LoadResult) {
  result.warmupRequests += requests + warmupRequests;
  const { wire: measured = {} as NonNullable<LoadResult['wire']> } = result;
  for (const name of Object.keys(measured) as (keyof typeof measured)[])
    measured[name] += wire?.[name] ?? 0;
  if (continuous) result.continuous = { ...continuous, apart: true };
}

/** A side's load with one request at a time, each page as soon as the one before is answered. */
function aloneOptions(
  {
    rate: _,
    arrivals: __,
    requests: ___,
    buckets: ____,
    together: _____,
    mix,
    ...side
  }: SideOptions,
  seconds: number,
): SideOptions {
  const alone: SideOptions = {
    ...side,
    connections: 1,
    streams: 1,
    threads: 1,
    warmup: '100ms',
    duration: `${seconds}s`,
  };
  if (typeof mix === 'string') alone.mix = mix.replace(/,"atMs":\[[^\]]*\]/g, '');
  return alone;
}

function addAlone(outcome: PhaseOutcome, phase: AlternateOptions, seconds: number): void {
  const sides = phase.sides.map((side) => aloneOptions(side, seconds));
  const alone = loadgen.alternate({ ...phase, sides, samples: false });
  for (const [side, { pages }] of outcome.results.entries())
    for (const [index, page] of pages.entries()) {
      const { responses, midMeanMs } = alone[side]?.pages[index] as PageFigures;
      page.alone = { responses, ms: midMeanMs };
    }
}

function orAbort<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    // k6's exit code is 0 after an exception.
    exec.test.abort((error as Error).message);
    throw error;
  }
}

/** The begins of the execution segments of all k6, in their order. */
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

function tell(outcome: PhaseOutcome): void {
  console.log(phaseLinePrefix + JSON.stringify(outcome));
}
