// The k6 script: runs the phases of a load plan and prints what each came to. Compiled to one file, script.js, which is
// kept with the results and can be run by hand, as its first lines say.
import { sleep } from 'k6';
import type { Options } from 'k6/options';
import loadgen from 'k6/x/loadgen';
import { loadPlanVariable, phaseBeginsLine, phaseLinePrefix, type LoadPlan } from './load-plan.ts';

declare const __ENV: Record<string, string | undefined>;

const plan = readPlan();

export const options: Options = {
  scenarios: {
    [plan.scenario]: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${plan.maxDurationSeconds}s`, gracefulStop: '0s' },
  },
  tags: { ...plan.tags },
};

export default function runPhases(): void {
  const pauseSeconds = plan.pauseSeconds ?? 0;
  for (const [index, phase] of plan.phases.entries()) {
    if (index > 0 && pauseSeconds > 0) sleep(pauseSeconds);
    console.log(phaseBeginsLine);
    console.log(phaseLinePrefix + JSON.stringify(loadgen.alternate(phase)));
  }
}

function readPlan(): LoadPlan {
  const json = __ENV[loadPlanVariable];
  if (json === undefined) throw new Error(`set ${loadPlanVariable} to the load plan, e.g. ${loadPlanVariable}="$(cat load.json)"`);
  return JSON.parse(json) as LoadPlan;
}
