// npm run scenario: lists the scenarios, or runs one and prints its table.
import { usageError } from '../errors.ts';
import { present } from '../present.ts';
import { makePlan } from '../runner/make-plan.ts';
import { findScenario, findVariants, loadScenarios } from '../scenario/catalogue.ts';
import { networkOf } from '../scenario/variants.ts';
import { typed } from '../setup/paths.ts';
import { getTools, openDatabase, runPlan, withRun } from './run.ts';
import { readRunOptions, runFlags } from './run-options.ts';
import { report } from './run-output.ts';
import { onlyWord, printHelp, readWords, type Flag } from './words.ts';

export const scenarioFlags = {
  ...runFlags,
  variants: { value: 'a,b', help: 'only these variants' },
  exact: { help: 'threads, workers, times and counts as published, not fitted to this machine' },
} as const satisfies Record<string, Flag>;

/** Without a name the scenarios are listed. @throws UserError (exit code 2) for words that are wrong or do not go together */
export function readScenarioOptions(args: readonly string[]) {
  const words = readWords(args, scenarioFlags);
  const { positionals, flags } = words;
  const name = onlyWord(positionals, 'scenario');
  return {
    ...readRunOptions(words),
    ...present({ name, variants: flags.get('variants')?.split(',') }),
    exact: flags.has('exact'),
  };
}

/** Returns the exit code. Throws UserError and Interrupted. */
export async function scenarioCommand(args: readonly string[]): Promise<number> {
  const options = readScenarioOptions(args);
  if (options.name === undefined || options.help) {
    printHelp(await overview(), scenarioFlags);
    return 0;
  }
  const scenario = await findScenario(options.name);
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
    const draft = makePlan(scenario, variants, run.cores, options);
    const servers = draft.variants.map(({ variant }) => variant.server);
    const ready = await getTools(run, servers, options);
    const storing = await openDatabase(ready, draft, options);
    const outcome = await runPlan(storing, draft, options, ['fewer --variants']);
    return report(outcome, options);
  });
}

async function overview(): Promise<string[]> {
  const scenarios = await loadScenarios();
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return [
    `${typed('scenario')} NAME|FILE.ts [flags]`,
    '',
    ...scenarios.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`),
  ];
}
