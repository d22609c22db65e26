// Runs a shipped or own scenario from its plan to its report.
import { usageError, UserError } from '../errors.ts';
import { duration, enumeration } from '../format.ts';
import { divideCores, type Cores } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import type { PlanDraft } from '../runner/plan.ts';
import { estimatedSeconds } from '../runner/times.ts';
import { enclosureOf, makePlan, serversOf } from '../runner/make-plan.ts';
import { firstOf, allNames } from '../present.ts';
import type { Result } from '../result/result.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import { getTools, runPlan, takeMachine, withRun } from './run.ts';
import type { RunOptions } from './run-options.ts';
import { reportRun, say } from './run-output.ts';
import { hasTls } from '../scenario/load.ts';
import { isOwn, isRunnable, loadOf } from '../scenario/variants.ts';
import { hasCertificate } from '../servers/certificate.ts';
import { thisMachine, type Machine } from '../setup/machine.ts';
import { missingTools, type ToolName } from '../setup/tools.ts';

export type ScenarioOptions = RunOptions & {
  exact: boolean;
  variants?: readonly string[];
  /** For an article: skip scenarios that have a result. */
  resume?: true;
};

/** A scenario of an article that would take longer is run with --quick. */
export const mostSeconds = 300;

/** Options of one run of a scenario. A run that would take longer than `mostSeconds` uses --quick. */
export type AskedOptions = ScenarioOptions & { mostSeconds?: number; together?: number };

/** Returns the plan of a run, and the options with which it is made. Throws UserError as makePlan does. */
function draftOf(
  scenario: Scenario,
  variants: readonly Variant[],
  cores: Cores,
  asked: AskedOptions,
): { draft: PlanDraft; options: ScenarioOptions } {
  const { mostSeconds: most = Infinity, maxTimeSeconds: _, ...untimed } = asked;
  const isShort = estimatedSeconds(makePlan(scenario, variants, cores, untimed)) <= most;
  const options = isShort ? asked : { ...asked, quick: true, examined: 'none' as const };
  return { draft: makePlan(scenario, variants, cores, options), options };
}

/** The plan of a run on this machine's cores, before anything is started; undefined if it cannot run here. */
export function localDraft(scenario: Scenario, asked: AskedOptions): PlanDraft | undefined {
  const { serverCpus: server, generatorCpus: generator, variants } = asked;
  try {
    const cores = divideCores(readProcessors(), { server, generator }, scenario);
    return draftOf(scenario, findVariants(scenario, variants), cores, asked).draft;
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/**
 * Runs a scenario, prints its table and writes its files. Without openssl, rows over TLS are left out.
 * @param keep gets the result, also that of a run that was ended early
 * @returns the exit code, at least 1 if rows were left out
 * @throws UserError and Interrupted
 */
export async function runScenario(
  scenario: Scenario,
  asked: AskedOptions,
  keep: (result: Result) => unknown,
): Promise<number> {
  const variants = findVariants(scenario, asked.variants);
  const possible =
    asked.machines !== undefined
      ? undefined
      : await possibleVariants(scenario, variants, (tool) => tool === 'openssl');
  if (possible !== undefined) {
    console.error(leftOutLine(possible));
    return Math.max(1, await runScenario(scenario, { ...asked, variants: possible.names }, keep));
  }
  const enclosure = firstOf(variants, (variant) => enclosureOf(scenario, variant, asked.planners));
  if (asked.machines !== undefined && enclosure !== undefined)
    throw usageError(
      `${scenario.name} has ${enclosure.name}, made on one machine only: leave ${asked.machines.flag} out`,
    );
  const kinds = variants.flatMap(({ server }) => (typeof server === 'string' ? [] : [server.name]));
  return withRun(asked, kinds, scenario, async (run) => {
    const { draft, options } = draftOf(scenario, variants, run.cores, asked);
    if (options.quick && !asked.quick)
      say(options, [`it would take over ${duration(asked.mostSeconds as number)}: so --quick`]);
    const servers = draft.variants.map(({ variant }) => variant.server);
    const ready = await getTools(run, servers, options);
    const storing = await takeMachine(ready, draft, options);
    const outcome = await runPlan(storing, draft, options, ['fewer --variants']);
    keep(outcome.result);
    return reportRun(outcome, options);
  });
}

interface Possible {
  /** Names of the variants that can be run, and of those that are published only. */
  names: string[];
  /** Names of the others. */
  left: string[];
  /** What they need, and the commands that get it. */
  why: string;
}

/**
 * Returns the variants that can run on this machine; undefined if no program is missing.
 * @param among chooses the programs that are looked for now; the others are looked for when the run starts
 * @throws UserError if no variant can run
 */
export async function possibleVariants(
  scenario: Scenario,
  variants: readonly Variant[],
  among: (tool: ToolName) => boolean,
  machine: Machine = thisMachine(),
): Promise<Possible | undefined> {
  const withCertificate = await hasCertificate(machine);
  const needs = new Map<Variant, ToolName[]>();
  for (const variant of variants) {
    const tools = toolsOf(scenario, variant, withCertificate);
    needs.set(variant, tools.filter(among));
  }
  const missing = await missingTools([...new Set([...needs.values()].flat())], machine);
  const isPossible = (variant: Variant) => !needs.get(variant)?.some((tool) => missing.has(tool));
  const possible = variants.filter(isPossible);
  if (missing.size === 0) return undefined;
  if (!possible.some(isRunnable)) throw new UserError([...missing.values()]);
  return {
    names: allNames(possible),
    left: allNames(variants.filter((variant) => !isPossible(variant))),
    why: [...missing.values()].join('; '),
  };
}

export function leftOutLine({ left, why }: Possible): string {
  return `${enumeration(left)} ${left.length === 1 ? 'is' : 'are'} left out: ${why}; the other rows are run`;
}

/** Returns the programs that a variant needs on the servers' machine. openssl makes the certificate, once. */
function toolsOf(scenario: Scenario, variant: Variant, withCertificate: boolean): ToolName[] {
  if (!isRunnable(variant)) return [];
  const tools: ToolName[] = serversOf([variant.server]);
  // A config of the user's own has a certificate of its own.
  if (hasTls(loadOf(scenario, variant)) && !isOwn(variant.server) && !withCertificate)
    tools.push('openssl');
  return tools;
}
