// Runs comparisons with the project's runner, in this process.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import type { Additions } from '../../cli/feature.ts';
import { sinkOf, inEveryRun } from '../../cli/run-options.ts';
import { UserError } from '../../errors.ts';
import { coreFindings, divideCores, readEnvironment, type Cores } from '../../machine/cores.ts';
import { readProcessors } from '../../machine/processors.ts';
import { pin } from '../../process.ts';
import type { Environment } from '../../result/environment.ts';
import type { Phase, Result } from '../../result/result.ts';
import { examine } from '../../runner/examine.ts';
import { makePlan, type PlanOptions } from '../../runner/make-plan.ts';
import { localMachines } from '../../runner/machines.ts';
import type { Plan, Sink } from '../../runner/plan.ts';
import { priorityOf } from '../../runner/priority.ts';
import { runGroup } from '../../runner/round.ts';
import type { RunEvents } from '../../runner/run-events.ts';
import { runRounds, settleSink } from '../../runner/run.ts';
import type { LoadContext } from '../../runner/under-load.ts';
import type { Scenario } from '../../scenario/model.ts';
import { compileScript } from '../../runner/k6.ts';
import { thisMachine } from '../../setup/machine.ts';
import { ensureTools, type ToolName } from '../../setup/tools.ts';
import { buildServer } from './servers.ts';
import { toolVersions } from './installed-peers.ts';

/** The parts that all measurements share. */
export interface Lab {
  additions: Additions;
  /** One core on each side. */
  cores: Cores;
  binaries: Partial<Record<ToolName, string>> & { k6: string };
  environment: Environment;
  signal: AbortSignal;
  /** An empty folder; the caller removes it. */
  scratch: string;
  /** The compiled k6 script. */
  script: string;
  /** The program of servers.ts. */
  server: string;
  /** A sink with a new, empty database, for whole runs; null: they store nothing. */
  sink: Sink | null;
  say(line: string): void;
}

/** One core for each side: so machines are alike, and effects are ratios per core. */
export function oneCoreEach(): Cores {
  const { serverCpus, generatorCpus } = divideCores(readProcessors(), {});
  return { serverCpus: serverCpus.slice(0, 1), generatorCpus: generatorCpus.slice(0, 1) };
}

/** Like oneCoreEach. @throws UserError with a single core */
export function calibrationCores(): Cores {
  const cores = oneCoreEach();
  if (cores.serverCpus[0] === cores.generatorCpus[0])
    throw new UserError('calibrate needs a core for the server and one for the generator', 2);
  return cores;
}

/**
 * Gets the tools, builds the server, and does the work on pinned cores.
 * @param stores whether whole runs store into an InfluxDB
 */
export async function inLab<T>(
  cores: Cores,
  signal: AbortSignal,
  additions: Additions,
  work: (lab: Lab) => Promise<T>,
  stores = false,
): Promise<T> {
  const machine = thisMachine();
  const planned = stores ? sinkOf(additions.runParts, new Map()) : undefined;
  if (stores && planned === undefined)
    throw new UserError('--disturb needs InfluxDB, which this bakeoff does not have');
  const tools: readonly ToolName[] = ['k6', 'nginx', ...(planned?.tools ?? [])];
  const binaries: Lab['binaries'] = await ensureTools(tools, machine, signal);
  // Read before pinning, because a pinned process does not see the other cores.
  const processors = readProcessors();
  await pin(process.pid, cores.generatorCpus);
  const scratch = await mkdtemp(join(os.tmpdir(), 'bakeoff-calibrate-'));
  let sink: Sink | null = null;
  try {
    if (planned !== undefined)
      sink = await planned.open({
        tools: binaries,
        cpus: cores.generatorCpus,
        signal,
        folder: join(scratch, 'sink'),
      });
    const script = join(scratch, 'script.js');
    const [versions, server] = await allOrNone(signal, (until) => [
      toolVersions(binaries, until),
      buildServer(machine, scratch, until),
      compileScript(script),
    ]);
    return await work({
      cores,
      binaries,
      additions,
      environment: readEnvironment(processors, cores, versions),
      signal,
      scratch,
      script,
      server,
      sink,
      say: (line) => console.error(line),
    });
  } finally {
    await sink?.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Waits for all parts. If one fails, the signal passed to `begin` ends the others, so that none goes on in a folder that is removed.
 * @throws the error of the part that failed first, or the signal's reason
 */
export async function allOrNone<const Parts extends readonly Promise<unknown>[]>(
  signal: AbortSignal,
  begin: (until: AbortSignal) => Parts,
): Promise<{ [Place in keyof Parts]: Awaited<Parts[Place]> }> {
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const parts = begin(until);
  for (const part of parts) part.catch((error: unknown) => failed.abort(error));
  await Promise.allSettled(parts);
  until.throwIfAborted();
  return Promise.all(parts);
}

const silent: RunEvents = {
  load() {},
  stepped() {},
  measured() {},
  say() {},
  announce() {},
};

/** Verdicts are held against each side alone. Their causes do not matter. */
const looking = {
  flags: new Map([['no-why', '']]),
  examined: 'all',
  tell() {},
  say() {},
} as const;

async function inContext<T>(
  { scratch, script, signal, cores, binaries, additions, sink }: Lab,
  scenario: Scenario,
  options: Partial<PlanOptions>,
  work: (context: LoadContext) => Promise<T>,
): Promise<T> {
  const { planners, observers } = inEveryRun(additions.runParts);
  const usual = { quick: false, exact: false, planners };
  const plan: Plan = {
    ...makePlan(scenario, scenario.variants, cores, { ...usual, ...options }),
    run: scenario.name,
  };
  const folder = await mkdtemp(join(scratch, `${scenario.name}-`));
  try {
    return await work({
      plan,
      folder,
      script,
      sink,
      signal,
      observers,
      contributionsTo: additions.contributionsTo,
      templates: additions.templates,
      coreFindings: coreFindings(readProcessors(), cores),
      priority: priorityOf(plan),
      machines: localMachines,
      tools: { k6: binaries.k6, servers: binaries },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Makes a run like `npm run scenario`, without progress.
 * @throws UserError, Interrupted
 */
export function wholeRun(
  lab: Lab,
  scenario: Scenario,
  options: Partial<PlanOptions> = {},
): Promise<Result> {
  return inContext(lab, scenario, options, async (context) => {
    const outcome = await runRounds({
      context,
      runGroup: (...of) => runGroup(context, ...of),
      environment: lab.environment,
      events: silent,
      startedAt: new Date(),
    });
    const { examiners } = inEveryRun(lab.additions.runParts);
    if (outcome.ended === undefined) await examine(context, outcome, { ...looking, examiners });
    if (outcome.ended !== undefined) throw outcome.ended;
    return settleSink(context, outcome);
  });
}

/**
 * Makes a run of one round, and returns the phases of all sides by variant.
 * @throws UserError, Interrupted
 */
export async function oneRound(
  lab: Lab,
  scenario: Scenario,
  durationSeconds: number,
): Promise<ReadonlyMap<string, Phase[]>> {
  const { variants } = await wholeRun(lab, scenario, { durationSeconds, rounds: 1 });
  return new Map(variants.map(({ name, rounds }) => [name, rounds.at(-1)?.phases ?? []]));
}
