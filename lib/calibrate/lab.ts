// Runs comparisons with the project's runner, in this process.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cores } from '../machine/cores.ts';
import type { Environment } from '../result/environment.ts';
import type { Phase, Result } from '../result/result.ts';
import { makePlan, type PlanOptions } from '../runner/make-plan.ts';
import type { Plan, RunContext } from '../runner/plan.ts';
import { runGroup } from '../runner/round.ts';
import { runRounds, type RunEvents } from '../runner/run.ts';
import type { Scenario } from '../scenario/model.ts';
import type { ToolName } from '../setup/tools.ts';

/** What all measurements share. */
export interface Lab {
  /** One core on each side. */
  cores: Cores;
  binaries: Partial<Record<ToolName, string>>;
  environment: Environment;
  signal: AbortSignal;
  /** An empty folder; the caller removes it. */
  scratch: string;
  /** The compiled k6 script. */
  script: string;
  /** The program of servers.ts. */
  server: string;
  say(line: string): void;
}

const silent: RunEvents = {
  load() {},
  stepped() {},
  measured() {},
  say() {},
};

async function inContext<T>(
  { scratch, script, signal, cores, binaries }: Lab,
  scenario: Scenario,
  options: Partial<PlanOptions>,
  work: (context: RunContext) => Promise<T>,
): Promise<T> {
  const plan: Plan = {
    ...makePlan(scenario, scenario.variants, cores, { quick: false, exact: false, ...options }),
    run: scenario.name,
  };
  const folder = await mkdtemp(join(scratch, `${scenario.name}-`));
  try {
    return await work({
      plan,
      folder,
      script,
      store: null,
      signal,
      tools: { k6: binaries.k6 as string, delaylink: undefined, servers: binaries },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes a run, like `npm run scenario`, without progress. @throws UserError, Interrupted */
export function wholeRun(
  lab: Lab,
  scenario: Scenario,
  options: Partial<PlanOptions> = {},
): Promise<Result> {
  return inContext(lab, scenario, options, async (context) => {
    const { result, ended } = await runRounds(
      context,
      (...of) => runGroup(context, ...of),
      lab.environment,
      silent,
      new Date(),
    );
    if (ended !== undefined) throw ended;
    return result;
  });
}

/** The phases of all sides in a run of one round, by variant. @throws UserError, Interrupted */
export async function oneRound(
  lab: Lab,
  scenario: Scenario,
  durationSeconds: number,
): Promise<ReadonlyMap<string, Phase[]>> {
  const { variants } = await wholeRun(lab, scenario, { durationSeconds, rounds: 1 });
  return new Map(variants.map(({ name, rounds }) => [name, rounds.at(-1)?.phases ?? []]));
}
