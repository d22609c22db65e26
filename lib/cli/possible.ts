// Which rows of a scenario can be run on this machine, before anything is started.
import { UserError } from '../errors.ts';
import { enumeration } from '../format.ts';
import { serversOf } from '../runner/make-plan.ts';
import { hasTls } from '../scenario/load.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import { isOwn, isRunnable, loadOf } from '../scenario/variants.ts';
import { hasCertificate } from '../servers/certificate.ts';
import { thisMachine, type Machine } from '../setup/machine.ts';
import { missingTools, type ToolName } from '../setup/tools.ts';
import { allNames } from '../present.ts';

interface Possible {
  /** Names of the variants that can be run, and of those that are published only. */
  names: string[];
  /** Names of the others. */
  left: string[];
  /** What they need, and the commands that get it. */
  why: string;
}

/**
 * Variants that can run, if others lack a program. Undefined if all can. @param among programs that rows may lack; others are looked for
 * at the run's start @throws UserError if none can
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
    left: variants.filter((variant) => !isPossible(variant)).map(({ name }) => name),
    why: [...missing.values()].join('; '),
  };
}

/** What is said when the other rows are run. */
export function leftOutLine({ left, why }: Possible): string {
  return `${enumeration(left)} ${left.length === 1 ? 'is' : 'are'} left out: ${why}; the other rows are run`;
}

/** Programs on the servers' machine. openssl makes the certificate, once. */
function toolsOf(scenario: Scenario, variant: Variant, withCertificate: boolean): ToolName[] {
  if (!isRunnable(variant)) return [];
  const tools: ToolName[] = serversOf([variant.server]);
  // A config of the user's own has a certificate of its own.
  if (hasTls(loadOf(scenario, variant)) && !isOwn(variant.server) && !withCertificate)
    tools.push('openssl');
  return tools;
}
