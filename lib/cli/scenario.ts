// npm run scenario: lists the scenarios, or runs one and prints its table.
import { UserError } from '../errors.ts';
import { makePlan } from '../runner/plan.ts';
import { findScenario, findVariants, loadScenarios, networkOf } from '../scenario/catalogue.ts';
import { typed } from '../setup/paths.ts';
import { onHosts } from './on-hosts.ts';
import { perform } from './perform.ts';
import { readScenarioOptions, scenarioFlags } from './scenario-options.ts';
import { flagLines, printHelp } from './words.ts';

/** Returns the exit code. Throws UserError and Interrupted. */
export async function scenarioCommand(args: readonly string[]): Promise<number> {
  const options = readScenarioOptions(args);
  if (options.name === undefined || options.help) {
    printHelp(await overview());
    return 0;
  }
  const scenario = await findScenario(options.name);
  const variants = findVariants(scenario, options.variants);
  if ((options.serverHost !== undefined || options.generatorHosts !== undefined) && variants.some((variant) => networkOf(scenario, variant) !== undefined)) {
    throw new UserError(`${scenario.name} has networks of its own, which are made on one machine: leave --server-host and --generator-host out`, 2);
  }
  const kinds = variants.flatMap(({ server }) => (typeof server === 'string' ? [] : [server.name]));
  return onHosts(options, scenario, kinds, (cores, { host, generators }) => {
    const draft = makePlan(scenario, variants, cores, options);
    return perform({ servers: draft.variants.map(({ variant }) => variant.server), cores, host, generators, shorterBy: ['fewer --variants'], prepare: () => Promise.resolve(draft) }, options);
  });
}

async function overview(): Promise<string[]> {
  const scenarios = await loadScenarios();
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return [
    `${typed('scenario')} NAME|FILE.ts [flags]`,
    '',
    ...scenarios.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`),
    '',
    ...flagLines(scenarioFlags),
  ];
}
