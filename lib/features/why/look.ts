// The look after the rounds: each side once more, the only server alive. Its first load is held against the rounds (docs/verdicts.md). During
// the others perf sees where the CPU time of a request goes (docs/why.md).
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { total } from '../../analysis/statistics.ts';
import { messageOf, UserError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { enumeration, percent } from '../../format.ts';
import type { Phase, Result } from '../../result/result.ts';
import type { Why, WhySide } from '../../result/why.ts';
import { writeMixFiles } from '../../runner/mix-files.ts';
import { requireSampled } from '../../runner/disturbance.ts';
import { phasesOf } from '../../runner/measured-phases.ts';
import type { Observer } from '../../runner/observers/observer.ts';
import type { PlannedVariant, RunContext, Stage } from '../../runner/plan.ts';
import { openStages } from '../../runner/round.ts';
import { compileScript } from '../../runner/k6.ts';
import { underLoad, type Measurement } from '../../runner/under-load.ts';
import { atRateFor } from '../../scenario/load.ts';
import type { StartedServer } from '../../servers/index.ts';
import { writeWhole } from '../../writing.ts';
import { countsIn, namesOfCalls, partsOf } from './perf-output.ts';
import { perfLoadSeconds } from './length.ts';
import { counterArgs, perfObserver, samplerArgs } from './perf.ts';
import { stacksFile, stacksFolder } from './report.ts';

/** Share of the CPU time. Below this, processes are missing. */
const leastSampled = 0.5;

export interface Asked {
  sides: readonly PlannedVariant[];
  /** How long a side's first load is; 0: there is none. */
  secondsOf(planned: PlannedVariant): number;
  /** Its path; an error: why there is none; undefined: causes are not asked for. */
  perf: string | UserError | undefined;
  /** Called before each side. */
  onSide(name: string): void;
}

/** What was seen; lines in `missing` say what was not, and why. */
export interface Looked {
  alone: NonNullable<Result['alone']>;
  why: Why;
}

/**
 * Loads the sides one after the other. Leaves nothing running, and the sides' stacks in the run's folder.
 * @throws Interrupted after a signal
 */
export async function lookAlone(context: RunContext, asked: Asked): Promise<Looked> {
  const looked: Looked = { alone: { sides: [], missing: [] }, why: { sides: [], missing: [] } };
  const folder = join(context.folder, 'why');
  const { stepped, ...plan } = context.plan;
  const { phases: _, ...scenario } = plan.scenario;
  const inside = { ...context, folder, sink: null, plan: { ...plan, scenario } };
  await mkdir(folder);
  if (stepped !== undefined) {
    // The run's own makes steps.
    inside.script = join(folder, 'script.js');
    await compileScript(inside.script);
    await writeMixFiles(
      asked.sides.map(({ page }) => page),
      folder,
    );
  }
  try {
    const causes = await causesWith(asked.perf, context, looked);
    for (const planned of asked.sides) {
      asked.onSide(planned.variant.name);
      await lookAt({ context: inside, planned }, asked.secondsOf(planned), causes, looked);
    }
    const elsewhere = asked.sides.filter((planned) => !isStartedHere({ context, planned }));
    if (causes !== undefined && elsewhere.length > 0) {
      const named = enumeration(elsewhere.map(({ variant }) => variant.name));
      const were = elsewhere.length === 1 ? 'was' : 'were';
      looked.why.missing.push(`${named} ${were} not started on this machine`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return looked;
}

interface Causes {
  perf: string;
  /** The kernel's system calls. */
  calls: ReadonlySet<string>;
  /** The run's folder, for the stacks. */
  folder: string;
}

async function causesWith(
  perf: Asked['perf'],
  { folder, signal }: RunContext,
  { why }: Looked,
): Promise<Causes | undefined> {
  if (perf === undefined) return undefined;
  try {
    if (perf instanceof UserError) throw perf;
    return { perf, calls: await namesOfCalls(perf, signal), folder };
  } catch (error) {
    signal.throwIfAborted();
    why.missing.push(inALine(error));
    return undefined;
  }
}

const inALine = (error: unknown): string => messageOf(error).replaceAll('\n', ' ');

interface Side {
  context: RunContext;
  planned: PlannedVariant;
}

function isStartedHere({ context: { plan }, planned: { variant } }: Side): boolean {
  return plan.cores.serverHost === undefined && variant.server.name !== 'address';
}

/** Adds to `looked` what is seen of a side. @param seconds of the first load */
async function lookAt(
  side: Side,
  seconds: number,
  causes: Causes | undefined,
  { alone, why }: Looked,
): Promise<void> {
  const { context, planned } = side;
  const { name } = planned.variant;
  const seesCauses = causes !== undefined && isStartedHere(side);
  if (seconds === 0 && !seesCauses) return;
  let isChecked = seconds === 0;
  let stage: Stage | undefined;
  try {
    [stage] = (await openStages(context, { sides: [planned] }, { round: 1 })) as [Stage];
    if (seconds > 0) {
      alone.sides.push({ variant: name, phase: await phaseAlone(side, stage, seconds) });
      isChecked = true;
    }
    if (seesCauses) why.sides.push(await causesOf({ ...side, stage, ...causes }));
  } catch (error) {
    context.signal.throwIfAborted();
    const { missing } = isChecked ? why : alone;
    missing.push(inALine(error));
  } finally {
    await stage?.stop();
  }
}

/** Loads the side for so long, without observers of its own. @throws Disturbance, RoundFailure, Interrupted */
async function phaseAlone(side: Side, stage: Stage, seconds: number): Promise<Phase> {
  const { plan } = side.context;
  const planned = lasting(stage.planned, seconds);
  const measurement = await underLoadFor(side, stage, seconds);
  const othersAreKnown = stage.server.atAddress === undefined;
  const phases = phasesOf(measurement, planned, plan, stage.server, othersAreKnown);
  requireSampled(planned, measurement.samples, phases);
  return phases[0] as Phase;
}

async function underLoadFor(
  { context }: Side,
  stage: Stage,
  seconds: number,
  observers: readonly Observer[] = [],
): Promise<Measurement> {
  // k6 appends to its files.
  const folder = await mkdtemp(join(context.folder, 'k6-'));
  const planned = lasting(stage.planned, seconds);
  const attempt = { round: 1, onLoad: () => undefined };
  const group = { sides: [planned] };
  const stages = [{ ...stage, planned }];
  const measured = await underLoad(context, group, stages, attempt, folder, observers);
  return measured[0] as Measurement;
}

/** The side with a load of so many seconds. @param rate in requests/s; default: the load's own, if it has one */
export function lasting(
  planned: PlannedVariant,
  seconds: number,
  rate = planned.load.rate,
): PlannedVariant {
  const { rate: _, requests: __, durationSeconds: ___, searched: ____, ...load } = planned.load;
  const length = rate === undefined ? { durationSeconds: seconds } : atRateFor(rate, seconds);
  return { ...planned, load: { ...load, ...length } };
}

/** Loads the server twice more, under perf. */
async function causesOf({
  perf,
  calls,
  folder,
  ...side
}: Side & Causes & { stage: Stage }): Promise<WhySide> {
  const { context, stage } = side;
  const { name } = stage.planned.variant;
  const server = stage.server as StartedServer;
  const file = join(context.folder, 'perf');
  const observed = (args: readonly string[]) => [perfObserver(context, server, perf, args, file)];
  const begunSeconds = server.usage().cpuSeconds;
  const sampled = await underLoadFor(side, stage, perfLoadSeconds.sampled, observed(samplerArgs()));
  const cpuSeconds = server.usage().cpuSeconds - begunSeconds;
  const parts = await partsOf({ perf, calls }, server, file, context.signal);
  const counted = await underLoadFor(
    side,
    stage,
    perfLoadSeconds.counted,
    observed(counterArgs(parts.callsSeen)),
  );
  await mkdir(join(folder, stacksFolder), { recursive: true });
  const stacks = [...parts.stacks].map(([stack, samples]) => `${stack} ${samples}\n`);
  await writeWhole(join(folder, stacksFile(name)), stacks.join(''));
  if (parts.sampledSeconds < leastSampled * cpuSeconds)
    throw new UserError(
      `perf saw ${percent(parts.sampledSeconds / cpuSeconds)} of the CPU time of ${name}`,
    );
  const requests = requestsOf(sampled);
  const countedRequests = requestsOf(counted);
  const cpuUs = (1e6 * cpuSeconds) / requests;
  return {
    variant: name,
    requests,
    countedRequests,
    cpuUs,
    ...countsIn(textOf(file), countedRequests),
    ...parts.of(cpuUs),
  };
}

/** All that ended while perf looked on, connects and warm-up too. At least 1. */
const requestsOf = ({ results }: Measurement): number =>
  Math.max(
    1,
    total(results, ({ requests, warmupRequests }) => requests + warmupRequests),
  );
