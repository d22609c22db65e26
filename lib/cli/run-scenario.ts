// Runs a shipped or own scenario from its plan to its report.
import { usageError } from '../errors.ts';
import { duration } from '../format.ts';
import { estimatedSeconds } from '../runner/plan.ts';
import { makePlan } from '../runner/make-plan.ts';
import type { Result } from '../result/result.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Scenario } from '../scenario/model.ts';
import { networkOf } from '../scenario/variants.ts';
import { getTools, openDatabase, runPlan, withRun } from './run.ts';
import type { RunOptions } from './run-options.ts';
import { report, say } from './run-output.ts';

export type ScenarioOptions = RunOptions & { exact: boolean; variants?: readonly string[] };

/**
 * Runs a scenario, prints its table and writes its files. Returns the exit code.
 * @param options `mostSeconds`: if it would take longer, it is run with --quick
 * @param keep gets the result, also of a run that was ended early
 * @throws UserError and Interrupted
 */
export async function runScenario(
  scenario: Scenario,
  given: ScenarioOptions & { mostSeconds?: number },
  keep: (result: Result) => unknown,
): Promise<number> {
  let options = given;
  const variants = findVariants(scenario, options.variants);
  if (
    (options.serverHost !== undefined || options.generatorHosts !== undefined) &&
    variants.some((variant) => networkOf(scenario, variant) !== undefined)
  ) {
    throw usageError(
      `${scenario.name} has networks of its own, which are made on one machine: leave --server-host and --generator-host out`,
    );
  }
  const kinds = variants.flatMap(({ server }) => (typeof server === 'string' ? [] : [server.name]));
  return withRun(options, kinds, scenario, async (run) => {
    let draft = makePlan(scenario, variants, run.cores, options);
    if (estimatedSeconds(draft) > (given.mostSeconds ?? Infinity)) {
      options = { ...given, quick: true, why: 'none' };
      draft = makePlan(scenario, variants, run.cores, options);
      say(options, [`it would take ${duration(estimatedSeconds(draft))} or more: so --quick`]);
    }
    const servers = draft.variants.map(({ variant }) => variant.server);
    const ready = await getTools(run, servers, options);
    const storing = await openDatabase(ready, draft, options);
    const outcome = await runPlan(storing, draft, options, ['fewer --variants']);
    keep(outcome.result);
    return report(outcome, options);
  });
}
