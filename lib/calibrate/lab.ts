// Runs comparisons with the project's runner, in this process.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import type { Cores } from '../machine/cores.ts';
import type { Environment } from '../result/environment.ts';
import type { Phase, Result } from '../result/result.ts';
import { makePlan, type PlanOptions } from '../runner/make-plan.ts';
import { orderOfRound, RoundFailure, type Plan, type RunContext } from '../runner/plan.ts';
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

/** Makes a complete run, like `npm run scenario`. @throws UserError, Interrupted */
export function wholeRun(lab: Lab, scenario: Scenario): Promise<Result> {
  return inContext(lab, scenario, {}, async (context) => {
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

/** A disturbed round is made again, as in a run. */
const tries = 3;

/** Loads all sides for one round, in turns if there are several. Returns the phases by variant. @throws UserError if all tries fail, Interrupted */
export function oneRound(
  lab: Lab,
  scenario: Scenario,
  durationSeconds: number,
): Promise<ReadonlyMap<string, Phase[]>> {
  return inContext(lab, scenario, { durationSeconds }, async (context) => {
    for (let tried = 1; ; tried++) {
      try {
        const all = new Map<string, Phase[]>();
        for (const [index, group] of orderOfRound(
          context.plan.groups,
          1,
          scenario.name,
        ).entries()) {
          const attempt = { round: tried, onLoad() {} };
          for (const [name, { phases }] of await runGroup(context, group, index + 1, attempt))
            all.set(name, phases);
        }
        return all;
      } catch (error) {
        if (!(error instanceof RoundFailure)) throw error;
        if (tried === tries) throw new UserError(`a round failed ${tries} times: ${error.message}`);
      }
    }
  });
}
