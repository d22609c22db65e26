// The k6 script of a search, in place of lib/k6/main.ts: repeats the load plan's phase, each time at the rates to try.
import loadgen from 'k6/x/loadgen';
import { responsesNeeded } from '../../analysis/latency.ts';
import { roundRps, successRatioOf } from '../../analysis/phases.ts';
import { phases, plan, runGivenPlan, tell } from '../../k6/given-plan.ts';
import { phaseBeginsLine, type AlternateOptions, type SideOptions } from '../../k6/load-plan.ts';
import { zip } from '../../present.ts';
import type { LoadResult } from '../../result/load-result.ts';
import { mostSteps, searchSides, searchStarts, type SearchPlan } from './rate-search.ts';

export { options } from '../../k6/given-plan.ts';

/** A step plans this many times the answers that its percentile needs, because some may be missing. */
const enough = 1.5;

if (plan.steps === undefined)
  throw new Error('this load plan has no steps: run it with the script.js of its own run');
const { within, expected, stepSeconds, ...begin } = plan.steps as SearchPlan;
const phase = phases[0] as AlternateOptions;

export default function makeLoad(): void {
  runGivenPlan(() => searchSides(searchStarts(begin, loadFully), within, loadStep, tell));
}

/** Loads the sides without a rate, and returns the successful responses per second of each. This load is in no sample. */
function loadFully(): number[] {
  const results = loadgen.alternate({ ...phase, samples: false });
  return results.map((result, side) => {
    const answered = { ...result, ...expected[side] };
    return roundRps([answered]) * (successRatioOf([answered]) ?? 0);
  });
}

function loadStep(rates: readonly number[], step: number): LoadResult[] {
  const sides = zip(phase.sides, rates).map(([side, rate]): SideOptions => {
    const seconds = Math.max(stepSeconds, (enough * responsesNeeded[within.metric]) / rate);
    return {
      ...side,
      rate,
      duration: `${Math.ceil(1000 * seconds)}ms`,
      tags: { ...side.tags, phase: String(step) },
    };
  });
  console.log(phaseBeginsLine);
  const seed = mostSteps * ((phase.seed ?? 1) - 1) + step;
  const results = loadgen.alternate({ ...phase, sides, seed });
  return results.map((result, side) => ({ ...result, ...expected[side] }));
}
