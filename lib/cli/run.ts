// The steps of a run: withRun (machines, cores), getTools, takeMachine, runPlan. Each returns the run with more in it.
import { join } from 'node:path';
import { usageError } from '../errors.ts';
import { counts, duration } from '../format.ts';
import { coreFindings, readEnvironment, type Cores } from '../machine/cores.ts';
import { expectToMeasure, oneRunAtATime } from '../machine/locks.ts';
import { cpusOf, readProcessors } from '../machine/processors.ts';
import { udpNotes } from '../machine/usage.ts';
import { giveToCaller, pin } from '../process.ts';
import { takeSignals } from '../signals.ts';
import { firstOf, present } from '../present.ts';
import { sentencesOf } from '../report/finding-words.ts';
import { headingLines } from '../report/heading.ts';
import { byText } from '../report/sentences.ts';
import type { Environment } from '../result/environment.ts';
import { examine, secondsToExamine } from '../runner/examine.ts';
import { compileScript } from '../runner/k6.ts';
import { removeMixFiles } from '../runner/mix-files.ts';
import { fewAnswersLines, fewRoundsLines, runName, serversOf } from '../runner/make-plan.ts';
import { onlyThisMachine, type Machines } from '../runner/machines.ts';
import { type Plan, type PlanDraft, type RunContext } from '../runner/plan.ts';
import { estimatedSeconds } from '../runner/times.ts';
import { priorityOf } from '../runner/priority.ts';
import {
  checkResultsFolder,
  createRunFolder,
  explainFailure,
  removeWithoutResult,
  type RunFolder,
} from '../runner/results-folder.ts';
import { runGroup } from '../runner/round.ts';
import { runRounds, settleSink, type RunOutcome } from '../runner/run.ts';
import type { Scenario, ServerSpec } from '../scenario/model.ts';
import { runBeforeStart } from '../servers/own-command.ts';
import { versionsOf } from '../servers/build.ts';
import { isLoopback, type Answer } from '../servers/index.ts';
import { thisMachine } from '../setup/machine.ts';
import { ensureTools, type ToolName } from '../setup/tools.ts';
import type { RunOptions } from './run-options.ts';
import {
  createRunProgress,
  checkExports,
  checkOutput,
  headingOf,
  progressEvents,
  say,
  shorterLine,
} from './run-output.ts';

interface Run {
  machines: Machines;
  cores: Cores;
  /** Adds work for the end of the run. */
  onClose(work: () => unknown): void;
}

export type ReadyRun = Awaited<ReturnType<typeof getTools>>;

type StoringRun = Awaited<ReturnType<typeof takeMachine>>;

/**
 * Connects to the machines, divides the cores and runs `work`. At the end it calls what was added with onClose, the last first.
 * @param kinds of the servers, or of the sides
 * @throws UserError, Interrupted if a signal has ended the run, or what `work` throws
 */
export async function withRun<T>(
  { machines: planned, serverCpus, generatorCpus }: RunOptions,
  kinds: readonly string[],
  scenario: Pick<Scenario, 'sharedCores'>,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const closing: (() => unknown)[] = [];
  let failure: { error: unknown } | undefined;
  let result: T | undefined;
  try {
    const asked = { server: serverCpus, generator: generatorCpus };
    const machines = await (planned ?? onlyThisMachine).open({ kinds, asked, scenario });
    closing.push(() => machines.close());
    result = await work({
      machines,
      cores: machines.cores,
      onClose: (last) => void closing.push(last),
    });
  } catch (error) {
    failure = { error };
  }
  for (const last of closing.reverse()) {
    try {
      await last();
    } catch (error) {
      failure = { error };
    }
  }
  if (failure !== undefined) throw failure.error;
  return result as T;
}

/** A run's files take at least this, whatever its plan. */
const leastBytes = 1e6;

/** Waits until no other run measures, and keeps others from it until the returned function is called. Throws UserError. */
export function waitForOtherRuns(
  { waitSeconds = 0 }: RunOptions,
  signal: AbortSignal,
): Promise<() => void> {
  return oneRunAtATime({ wait: { seconds: waitSeconds, signal, say: console.error } });
}

/** Checks permission and the results folder, and gets the tools. Throws UserError. */
export async function getTools(run: Run, servers: readonly ServerSpec[], options: RunOptions) {
  requirePermission(servers, options.hosts);
  await checkResultsFolder(options.out, leastBytes);
  await checkExports(options.exports);
  checkOutput(options);
  const { signal, release } = takeSignals('ending the run cleanly; again to end it at once');
  run.onClose(() => {
    release();
    signal.throwIfAborted();
  });
  // A run that would have to wait, but may not, is refused before tools are built. A user's --prepare command comes after this wait, so
  // that it disturbs no other run.
  if (options.waitSeconds === undefined || options.prepare !== undefined)
    (await waitForOtherRuns(options, signal))();
  const { machines } = run;
  const names = serversOf(servers);
  const needed: ToolName[] = [
    'k6',
    ...machines.neededLocally(names),
    ...(options.sink?.tools ?? []),
  ];
  const binaries = await ensureTools(needed, thisMachine(), signal);
  const { k6 } = binaries;
  const ofServers = await machines.tools(names, binaries, signal);
  signal.throwIfAborted();
  const tools: RunContext['tools'] = { k6, servers: ofServers.binaries };
  const versions = { ...(await versionsOf({ k6 }, signal)), ...ofServers.versions };
  return { ...run, signal, tools, binaries, versions };
}

/**
 * Checks that the network enclosures of the plan can be made and its records stored, waits for the machine, moves this process to the
 * generator's cores and opens the sink. Whatever can be refused is refused before the wait. Throws UserError.
 * @param hasTurn whether the run has waited for the machine before, and keeps it
 */
export async function takeMachine(
  run: ReadyRun,
  draft: PlanDraft,
  options: RunOptions,
  hasTurn = false,
) {
  const { tools, cores, signal } = run;
  const enclosure = firstOf(draft.variants, (planned) => planned.enclosure);
  await enclosure?.requirePossible(tools.k6, draft.scenario.name, signal);
  await checkResultsFolder(options.out, neededBytes(draft));
  await options.sink?.requireSpace(neededBytes(draft));
  if (!hasTurn) run.onClose(await waitForOtherRuns(options, signal));
  // Read before this process is pinned: then it no longer sees the others.
  const processors = readProcessors();
  await pin(process.pid, cores.generatorCpus);
  // Another run may follow, such as of an article.
  run.onClose(() => pin(process.pid, cpusOf(processors.cores)));
  const at = { tools: run.binaries, cpus: cores.generatorCpus, signal };
  const sink = (await options.sink?.open(at)) ?? null;
  run.onClose(() => sink?.close());
  signal.throwIfAborted();
  const versions = { ...run.versions, ...sink?.versions };
  const facts = await run.machines.facts();
  return {
    ...run,
    sink,
    coreFindings: coreFindings(processors, cores),
    environment: (): Environment => ({
      ...readEnvironment(processors, cores, versions),
      ...facts,
    }),
  };
}

/** k6's record takes most: about 60 series a second, 300 B each. */
function neededBytes(plan: PlanDraft): number {
  return leastBytes + plan.rounds * plan.variants.length * 250e3 + estimatedSeconds(plan) * 20e3;
}

/**
 * Prints the heading and runs the rounds.
 * @param shorterBy other ways to make a run of this command shorter: "fewer --variants"
 * @param answers of variants that were started before; how they differ is printed
 */
export async function runPlan(
  run: StoringRun,
  draft: PlanDraft,
  options: RunOptions,
  shorterBy: readonly string[],
  answers?: ReadonlyMap<string, Answer>,
): Promise<RunOutcome & { folder: RunFolder }> {
  const startedAt = new Date();
  const plan: Plan = { ...draft, run: runName(draft.scenario.name, startedAt) };
  const toExamine = secondsToExamine(plan, options);
  const priority = priorityOf(plan);
  expectToMeasure(estimatedSeconds(plan) + Math.max(toExamine.fewest, toExamine.most));
  const folder = await createRunFolder(options.out, plan.run);
  run.onClose(() => giveToCaller(folder.path));
  if (options.keepSecrets !== true) run.onClose(() => removeMixFiles(folder.path));
  run.onClose(() => removeWithoutResult(folder));
  const progress = createRunProgress(process.stderr);
  try {
    const script = join(folder.path, 'script.js');
    await compileScript(script, plan.stepped?.script);
    const environment = run.environment();
    say(options, [
      ...addressLines(plan),
      ...headingLines(headingOf(plan, environment)),
      ...(options.instead ? [] : lookLine(toExamine)),
      ...sentencesOf(run.coreFindings, 0),
      ...fewAnswersLines(draft),
      ...fewRoundsLines(draft),
      ...udpNotes(plan.variants.map(({ load }) => load)),
      ...shorterLine(draft, options, shorterBy),
    ]);
    const events = progressEvents(plan, progress);
    priority.tell = () => progress.say(goesFirstLine);
    const context = {
      ...run,
      plan,
      folder: folder.path,
      script,
      observers: options.observers,
      contributionsTo: options.contributionsTo,
      templates: options.templates,
      priority,
      ...present({ answers, prepare: preparing(plan.prepare, run.signal, events.say) }),
    };
    const outcome = await runRounds({
      context,
      runGroup: (...of) => runGroup(context, ...of),
      environment,
      events,
      startedAt,
    });
    if (outcome.ended === undefined)
      await examine(context, outcome, {
        ...options,
        tell: progress.running,
        say: progress.say,
      });
    outcome.result = await settleSink(context, outcome);
    return { ...outcome, folder };
  } catch (error) {
    throw await explainFailure(folder, error);
  } finally {
    progress.clear();
  }
}

const goesFirstLine =
  'servers and k6 go before other programs on their cores (BAKEOFF_PRIORITY=no: they do not)';

/** Announces the loads after the rounds, if there are any. With --max-time, more rounds may leave less time for them. */
function lookLine({ fewest, most }: ReturnType<typeof secondsToExamine>): string[] {
  if (fewest === 0 && most === 0) return [];
  const [least, longest] = [Math.min(fewest, most), Math.max(fewest, most)].map(duration);
  const time = least === longest ? least : `${least} to ${longest}`;
  return [`then each side alone, about ${time} for all (--no-look leaves that out)`];
}

/** Returns what runs the command; undefined without one. @param tell gets a line, once */
export function preparing(
  command: string | undefined,
  signal: AbortSignal,
  tell: (line: string) => void,
): RunContext['prepare'] {
  if (command === undefined) return undefined;
  let isTold = false;
  const say = (line: string) => {
    if (!isTold) tell(line);
    isTold = true;
  };
  return () => runBeforeStart({ command, signal, say });
}

/** Throws UserError (exit code 2) for an address beyond this machine that is not among `hosts` (--host). */
export function requirePermission(servers: readonly ServerSpec[], hosts: readonly string[]): void {
  const plain = (host: string) => host.toLowerCase().replace(/^\[|\]$/g, '');
  const allowed = hosts.map(plain);
  for (const server of servers) {
    if (server.name !== 'address') continue;
    const host = plain(new URL(server.origin).hostname);
    if (!isLoopback(host) && !allowed.includes(host))
      throw usageError(
        `${server.origin} is not on this machine: add --host ${host} if you may load it`,
      );
  }
}

export function addressLines({ variants }: Pick<PlanDraft, 'variants'>): string[] {
  return byText(
    variants.flatMap(({ variant: { name, server }, load: { connections } }) => {
      if (server.name !== 'address') return [];
      const text = `the server at ${server.origin} is loaded with ${counts(connections, 'connection')}, and keeps running`;
      return [{ name, text }];
    }),
  );
}
