// The runs in a results folder.
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { whoMayChange } from '../../bin/trust.mjs';
import { judgedBy } from '../analysis/metrics.ts';
import { prefixed, UserError } from '../errors.ts';
import { readBytes } from '../files.ts';
import { readEnvironment } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import type { Metric, Result, VariantResult } from '../result/result.ts';
import { checkResult } from '../result/result-file.ts';
import { runName } from '../runner/make-plan.ts';
import type { PlanDraft } from '../runner/plan.ts';
import { isAtRate } from '../scenario/load.ts';
import type { Scenario } from '../scenario/model.ts';
import { shownCommand } from '../secrets.ts';
import { localDraft, type AskedOptions } from './run-scenario.ts';

/** Names of the runs, oldest first; none if the folder cannot be read. */
export async function runsIn(results: string): Promise<string[]> {
  const names = await readdir(results).catch((): string[] => []);
  return names.filter((name) => existsSync(path.join(results, name, 'result.json'))).sort();
}

/** The scenario of a run by the run's name, which begins with its time. */
export function scenarioOfRun(run: string): string {
  return run.slice(runName('', new Date(0)).length);
}

/**
 * The largest result file in bytes: four times a run of 80 rounds and 16 variants. A variant has up to 0.05 MB in a round, most of it
 * its histogram.
 */
const mostBytes = 256e6;

/** @throws UserError if result.json at `file` cannot be read, or is no result */
export function readResult(file: string): Result {
  const bytes = prefixed(
    () => readBytes(file, mostBytes, { below: path.dirname(file) }),
    `cannot read ${file}: `,
    1,
  );
  return checkResult(bytes.toString('utf8'), file);
}

/**
 * Returns the newest complete run of the scenario in --out with the same plan, made since this boot, for which verdicts hold.
 * @param tell gets a line for a run that is not used since others may have written it
 */
export async function findDone(
  scenario: Scenario,
  asked: AskedOptions,
  tell: (line: string) => void,
): Promise<{ folder: string; result: Result } | undefined> {
  const draft = localDraft(scenario, asked);
  if (draft === undefined) return undefined;
  const { bootId } = readEnvironment(readProcessors(), draft.cores, {});
  const names = await runsIn(asked.out);
  for (const name of names.reverse()) {
    if (scenarioOfRun(name) !== scenario.name) continue;
    const folder = path.join(asked.out, name);
    const result = resultIn(folder);
    if (result?.environment.bootId !== bootId || !isOfPlan(result, draft)) continue;
    const others = whoMayChange(path.join(folder, 'result.json'));
    if (others === undefined) return { folder, result };
    tell(`${folder} does not count: ${others}`);
  }
  return undefined;
}

/** @param folder of a run; undefined if its result is not of this version, or damaged */
function resultIn(folder: string): Result | undefined {
  try {
    return readResult(path.join(folder, 'result.json'));
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Returns whether the result is complete, and a run of this plan would measure the same. */
function isOfPlan(result: Result, plan: PlanDraft): boolean {
  const { scenario, looks, together, quick, variants, cores, sameWithin, prepare } = plan;
  const { serverCpus, generatorCpus } = result.environment;
  if (result.state !== 'complete' || result.article?.id !== scenario.article?.id) return false;
  const loadsPlanned = variants.map(({ variant: { name }, load }) => [name, askedOf(load)]);
  const ran = result.variants.filter(({ server }) => server !== null);
  const loadsRun = ran.map(({ name, load }) => [name, askedOf(load)]);
  return (
    result.quick === quick &&
    result.together === together &&
    result.sameWithin === sameWithin &&
    result.prepare === (prepare && shownCommand(prepare)) &&
    result.comparisons.every(({ metric }) => mayDecide(metric, plan)) &&
    isDeepStrictEqual([serverCpus, generatorCpus], [cores.serverCpus, cores.generatorCpus]) &&
    isDeepStrictEqual(
      result.looks,
      looks.map(({ rounds }) => rounds),
    ) &&
    isDeepStrictEqual(loadsRun, loadsPlanned)
  );
}

/** What flags change of a load. */
function askedOf({
  command,
  threads,
  durationSeconds,
  requests,
  warmupSeconds,
  warmupLimitSeconds,
  arrivals,
}: VariantResult['load']) {
  return {
    command,
    threads,
    durationSeconds,
    requests,
    warmupSeconds,
    warmupLimitSeconds,
    arrivals,
  };
}

/** Returns whether a comparison of the plan may be decided by the metric. */
function mayDecide(metric: Metric, { metric: asked, variants }: PlanDraft): boolean {
  if (asked !== undefined) return metric === asked;
  return variants.some(({ load }) => {
    const { together = false, streams = 1 } = load;
    const ofPages = together && streams > 1;
    return judgedBy({ ofPages, atRate: isAtRate(load), atLimit: false })[0] === metric;
  });
}
