// The k6 script: runs the phases of a load plan, and prints their outcomes. It is compiled to script.js, which is kept with the results and
// can be run by hand, as its first lines say.
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { LoadResult } from '../result/load-result.ts';
import loadgen from 'k6/x/loadgen';
import { keysOf } from '../present.ts';
import { instances, phases, plan, runGivenPlan, segmentBegins, tell } from './given-plan.ts';
import {
  type AlternateOptions,
  type CallOptions,
  phaseBeginsLine,
  type PhaseOutcome,
  type SideOptions,
} from './load-plan.ts';
import { meet } from './rendezvous.ts';
import { warmedUp } from './warm-ups.ts';

export { options } from './given-plan.ts';

if (plan.steps !== undefined)
  throw new Error('this load plan has steps: run it with the script.js of its own run');

export default function makeLoad(): void {
  runGivenPlan(runPhases);
}

function runPhases(): void {
  const pauseSeconds = plan.pauseSeconds ?? 0;
  const met = orAbort(() =>
    plan.meetAt === undefined ? undefined : meet(plan.meetAt, plan, segmentBegins()),
  );
  for (const [index, phase] of phases.entries()) {
    if (index > 0 && pauseSeconds > 0) sleep(pauseSeconds);
    console.log(phaseBeginsLine);
    const call: CallOptions = { segmented: instances > 1 };
    if (index === 0 && met !== undefined) call.startAt = met.beginsAtMs;
    const warmUps = index === 0 ? warmedUp(phase, plan.warmUps ?? []) : [];
    const outcome: PhaseOutcome = { results: loadgen.alternate({ ...phase, ...call }) };
    for (const { side, result } of warmUps) {
      const loaded = outcome.results[side];
      if (loaded !== undefined) addWarmUp(loaded, result);
    }
    if (plan.aloneSeconds !== undefined && instances === 1)
      addAlone(outcome.results, phase, plan.aloneSeconds);
    tell(outcome);
    orAbort(() => met?.leave(index + 1, outcome));
  }
}

/** Adds the counts of a separate warm-up to the result of the load after it. */
function addWarmUp(result: LoadResult, { requests, warmupRequests, wire, continuous }: LoadResult) {
  result.warmupRequests += requests + warmupRequests;
  const { wire: measured } = result;
  if (measured !== undefined)
    for (const name of keysOf(measured)) measured[name] += wire?.[name] ?? 0;
  if (continuous) result.continuous = { ...continuous, apart: true };
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

/** Adds the times of each page alone to a phase's results, for the same sides. This load is in no sample. */
function addAlone(results: readonly LoadResult[], phase: AlternateOptions, seconds: number): void {
  const sides = phase.sides.map((side) => aloneOptions(side, seconds));
  const alone = loadgen.alternate({ ...phase, sides, samples: false });
  for (const [side, { pages }] of results.entries())
    for (const [index, page] of pages.entries()) {
      const asked = alone[side]?.pages[index];
      if (asked !== undefined) page.alone = { responses: asked.responses, ms: asked.midMeanMs };
    }
}

/** Returns a side's load with one request at a time: each page is requested as soon as the one before is answered. */
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
