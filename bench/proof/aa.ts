// A config against itself, again and again: how often two that are the same are called different, and how narrow intervals are.
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { Run } from './results.ts';

/** Runs of the scenario that compares a config with itself, which are added to the data. @param after each run */
export async function measureAgainstItself(
  lab: Lab,
  { runs }: { runs: Run[] },
  save: () => Promise<void>,
  options: Partial<PlanOptions> = {},
  after: (run: Run, scenario: Scenario) => Promise<void> = async () => {},
): Promise<void> {
  const scenario = await findScenario('aa');
  for (let number = 1; number <= lab.repeats; number++) {
    const run = await noted(lab, async () => runOf(await wholeRun(lab, scenario, options)));
    if (run === undefined) continue;
    runs.push(run);
    lab.say(`run ${number} of ${lab.repeats}: ${runText(run)}`);
    await noted(lab, () => after(run, scenario));
    await save();
  }
}
