// npm run scenario: lists the scenarios, or runs one and prints its table.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { successRatioOf, wholeRounds } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { roundRps } from '../analysis/summarise.ts';
import { markdownReport } from '../report/markdown.ts';
import { createRunProgress, type RunProgress } from '../report/run-progress.ts';
import { findingLines, headingLines, loadText, storedLine, type Heading } from '../report/sentences.ts';
import { duration, success, whole } from '../format.ts';
import { terminalReport, wrapLines } from '../report/terminal.ts';
import { allowedCpus, divideCores, formatCpuList } from '../runner/cores.ts';
import { readEnvironment } from '../runner/environment.ts';
import { estimatedSeconds } from '../runner/estimate.ts';
import { takeSignals, type Interrupt } from '../runner/interrupt.ts';
import { oneRunAtATime } from '../runner/one-run.ts';
import { makePlan, runName, serversOf, type Plan, type PlanDraft } from '../runner/plan.ts';
import type { Environment, Result } from '../runner/result.ts';
import { checkResultsFolder, createRunFolder, explainFailure, writeWhole } from '../runner/results-folder.ts';
import type { RunContext } from '../runner/round.ts';
import { runRounds, type RunEvents, type RunOutcome } from '../runner/run.ts';
import { compileScript } from '../runner/script.ts';
import { versionsOf } from '../runner/versions.ts';
import { findScenario, findVariants, loadOf, loadScenarios } from '../scenario/catalogue.ts';
import { thisMachine } from '../setup/machine.ts';
import { bakeoffFolder } from '../setup/paths.ts';
import { ensureTools } from '../setup/tools.ts';
import { openStore } from '../store/index.ts';
import { readScenarioOptions, scenarioFlags, type ScenarioOptions } from './scenario-options.ts';
import { flagLines } from './words.ts';

/** Returns the exit code. Throws UserError and Interrupted. */
export async function scenarioCommand(args: readonly string[]): Promise<number> {
  const options = readScenarioOptions(args);
  if (options.name === undefined || options.help) {
    console.log((await overview()).join('\n'));
    return 0;
  }
  const scenario = await findScenario(options.name);
  const variants = findVariants(scenario, options.variants);
  const cores = divideCores(allowedCpus(), { server: options.serverCpus, generator: options.generatorCpus });
  const draft = makePlan(scenario, variants, cores, options);
  await checkResultsFolder(options.out, neededBytes(draft));

  const interrupt = takeSignals(() => console.error(`${process.stderr.isTTY ? '\n' : ''}ending the run in order; again to end it at once`));
  try {
    return await runPlan(draft, options, interrupt);
  } catch (error) {
    // What a signal cut short fails in its own way.
    interrupt.signal.throwIfAborted();
    throw error;
  } finally {
    interrupt.release();
  }
}

async function overview(): Promise<string[]> {
  const scenarios = await loadScenarios();
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return [
    'npm run scenario -- NAME [flags]',
    '',
    ...scenarios.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`),
    '',
    ...flagLines(scenarioFlags),
  ];
}

async function runPlan(draft: PlanDraft, options: ScenarioOptions, interrupt: Interrupt): Promise<number> {
  const release = await oneRunAtATime();
  try {
    const { k6, influxd, ...servers } = await ensureTools(
      ['k6', ...serversOf(draft), ...(options.store === 'local' ? ['influxd' as const] : [])], thisMachine(), interrupt.signal,
    );
    interrupt.signal.throwIfAborted();
    await runOn(draft.cores.generatorCpus);
    const store = options.store === 'none' ? null : await openStore({
      ...(options.store === 'local' ? { influxdBinary: influxd } : { url: options.store.url }),
      folder: join(bakeoffFolder, 'influxdb'),
      cpus: draft.cores.generatorCpus,
    });
    try {
      interrupt.signal.throwIfAborted();
      return await measure(draft, options, { tools: { k6, servers }, store, interrupt });
    } finally {
      await store?.close();
    }
  } finally {
    release();
  }
}

/** The run itself, with everything there that it needs. */
async function measure(draft: PlanDraft, options: ScenarioOptions, { tools, store, interrupt }: Pick<RunContext, 'tools' | 'store' | 'interrupt'>): Promise<number> {
  const print = options.json ? console.error : console.log;
  const versions = await versionsOf({ k6: tools.k6, ...tools.servers }, interrupt.signal);
  const startedAt = new Date();
  const { run, folder } = await createRunFolder(options.out, runName(draft.scenario, startedAt));
  const plan: Plan = { ...draft, run };
  try {
    const script = join(folder, 'script.js');
    await compileScript(script);
    const environment = readEnvironment(plan.cores, { ...versions, ...(store === null ? {} : { influxdb: store.version }) });
    const heading = headingOf(plan, environment);
    print(wrapLines([...headingLines(heading), ...shorterLine(draft, options)], outputWidth(options)).join('\n'));
    const progress = createRunProgress(process.stderr);
    const outcome = await runRounds({ plan, tools, folder, script, store, interrupt }, environment, eventsFor(plan, progress), startedAt);
    progress.clear();
    return await report(outcome, plan, folder, options, print, { ...heading, estimated: false, seconds: (Date.now() - startedAt.getTime()) / 1000 });
  } catch (error) {
    throw await explainFailure(folder, error);
  }
}

/** Pins this process, with all its threads, to the generator's cores: the server's are for the server alone. */
async function runOn(cpus: readonly number[]): Promise<void> {
  await promisify(execFile)('taskset', ['-a', '-c', '-p', formatCpuList(cpus), String(process.pid)]);
}

function headingOf(plan: Plan, environment: Environment): Heading {
  const { scenario, variants, cores, rounds } = plan;
  const { k6, ...others } = environment.versions;
  return {
    scenario: scenario.name,
    load: listed(variants.map(({ variant, load }) => loadText(loadOf(scenario, variant), load))),
    bodyBytes: scenario.page.bodyBytes,
    protocol: listed(variants.map(({ load }) => load.protocol)),
    rounds,
    seconds: estimatedSeconds(plan),
    estimated: true,
    server: serversOf(plan).map((name) => `${name} ${others[name]}`).join(', '),
    k6: `k6 ${k6}`,
    serverCpus: cores.serverCpus,
    generatorCpus: cores.generatorCpus,
    kernel: environment.kernel,
    cpuModel: environment.cpuModel,
  };
}

/** Each text once; more than two are too many for a heading. */
function listed(texts: readonly string[]): string {
  const [first, second, ...more] = new Set(texts);
  if (second === undefined) return first ?? '';
  return more.length === 0 ? `${first} and ${second}` : `${first} and ${more.length + 1} others`;
}

/** A run longer than this says how to make it shorter. */
const longSeconds = 300;

function shorterLine(plan: PlanDraft, options: ScenarioOptions): string[] {
  if (estimatedSeconds(plan) <= longSeconds) return [];
  const quick = makePlan(plan.scenario, plan.shown, plan.cores, { ...options, quick: true });
  const first = plan.quick ? [] : [`--quick (about ${duration(estimatedSeconds(quick))})`];
  return [`To make it shorter: ${[...first, ...(plan.rounds > 1 ? ['fewer --rounds'] : []), 'fewer --variants'].join(', ')}.`];
}

function eventsFor(plan: Plan, progress: RunProgress): RunEvents {
  return {
    load({ round, variant, rps, secondsLeft }) {
      progress.running({ what: `round ${round} of ${plan.rounds} · ${variant}`, rps, secondsLeft });
    },
    measured({ round, variant, outcome: { phases } }) {
      const ratio = successRatioOf(phases) ?? 0;
      const errors = `${whole(total(phases, (phase) => phase.errors.total))} errors${ratio === 1 ? '' : `, ${success(ratio)} succeeded`}`;
      progress.finished(`round ${round} of ${plan.rounds} · ${variant} · ${whole(roundRps(phases))} requests/s · ${errors}`);
    },
    repeated({ round, why }) {
      progress.say(`round ${round} is dropped and repeated: ${why}`);
    },
  };
}

/** Prints what there is and returns the exit code. */
async function report(outcome: RunOutcome, plan: Plan, folder: string, options: ScenarioOptions, print: (text: string) => void, heading: Heading): Promise<number> {
  const { result, ended } = outcome;
  const measured = wholeRounds(result.variants) > 0;
  if (measured) {
    const lines = [...partialLine(result, plan), ...findingLines(result, plan.scenario)];
    const stored = `${storedLine(result.integrity)} · ${folder}`;
    const width = outputWidth(options);
    const colour = width !== Infinity && process.env['NO_COLOR'] === undefined;
    print(['', ...terminalReport(result, [...lines, stored], { width, colour })].join('\n'));
    await writeTable(folder, markdownReport(result, { heading: headingLines(heading), findings: [...lines, storedLine(result.integrity)] }), ended);
  }
  if (options.json && measured) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  if (ended !== undefined) throw ended;
  return 0;
}

/** Characters per line where the person reads; Infinity in a pipe. */
function outputWidth({ json }: ScenarioOptions): number {
  const stream = json ? process.stderr : process.stdout;
  return stream.isTTY ? stream.columns : Infinity;
}

function partialLine(result: Result, plan: Plan): string[] {
  return result.state === 'complete' ? [] : [`Ended early: ${wholeRounds(result.variants)} of ${plan.rounds} rounds are whole and count here.`];
}

/** When the run has failed already, e.g. on a full disk, that is what the person has to hear. */
async function writeTable(folder: string, text: string, ended: unknown): Promise<void> {
  await writeWhole(join(folder, 'table.md'), text).catch((error: unknown) => {
    if (ended === undefined) throw error;
  });
}

/** k6's record takes most: about 60 series a second, 300 B each. */
function neededBytes(plan: PlanDraft): number {
  return 1e6 + plan.rounds * plan.variants.length * 250e3 + estimatedSeconds(plan) * 20e3;
}
