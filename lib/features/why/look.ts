// The look after the rounds: each side once more, the only server alive. Its load is held against the rounds, and perf sees
// where the CPU time of a request goes (docs/verdicts.md). During a short second load perf counts system calls.
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
import { loadAlone, type LoadContext, type Measurement } from '../../runner/under-load.ts';
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
  /** The length of a side's load that is compared with the rounds; 0: there is none. */
  secondsOf(planned: PlannedVariant): number;
  /** Its path; an error: why there is none; undefined: causes are not asked for. */
  perf: string | UserError | undefined;
  /** CPU time per request of a side in the rounds, in µs; undefined if it is not known. */
  cpuMicrosOf(name: string): number | undefined;
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
export async function lookAlone(context: LoadContext, asked: Asked): Promise<Looked> {
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
    const causes = await causesWith(asked, context, looked);
    for (const planned of asked.sides) {
      asked.onSide(planned.variant.name);
      await lookAt({ context: inside, planned }, asked.secondsOf(planned), causes, looked);
    }
    const elsewhere = asked.sides.filter((planned) => !isStartedHere({ context, planned }));
    if (causes !== undefined && elsewhere.length > 0) {
      const named = enumeration(elsewhere.map(({ variant }) => variant.name));
      looked.why.missing.push(`bakeoff did not start ${named} on this machine`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return looked;
}

interface Causes extends Pick<Asked, 'cpuMicrosOf'> {
  perf: string;
  /** The kernel's system calls. */
  calls: ReadonlySet<string>;
  /** The run's folder, for the stacks. */
  folder: string;
}

async function causesWith(
  { perf, cpuMicrosOf }: Pick<Asked, 'perf' | 'cpuMicrosOf'>,
  { folder, signal }: RunContext,
  { why }: Looked,
): Promise<Causes | undefined> {
  if (perf === undefined) return undefined;
  try {
    if (perf instanceof UserError) throw perf;
    return { perf, cpuMicrosOf, calls: await namesOfCalls(perf, signal), folder };
  } catch (error) {
    signal.throwIfAborted();
    why.missing.push(inALine(error));
    return undefined;
  }
}

const inALine = (error: unknown): string => messageOf(error).replaceAll('\n', ' ');

interface Side {
  context: LoadContext;
  planned: PlannedVariant;
}

function isStartedHere({ context: { plan }, planned: { variant } }: Side): boolean {
  return plan.cores.serverHost === undefined && variant.server.name !== 'address';
}

/** Adds to `looked` what is seen of a side. @param checkedSeconds how long its load is held against the rounds; 0: it only shows causes */
async function lookAt(
  side: Side,
  checkedSeconds: number,
  causes: Causes | undefined,
  { alone, why }: Looked,
): Promise<void> {
  const { context, planned } = side;
  const { name } = planned.variant;
  const seesCauses = causes !== undefined && isStartedHere(side);
  if (checkedSeconds === 0 && !seesCauses) return;
  let isChecked = checkedSeconds === 0;
  let stage: Stage | undefined;
  try {
    [stage] = (await openStages(context, { sides: [planned] }, { round: 1 })) as [Stage];
    const long = lastingStage(stage, isChecked ? perfLoadSeconds.sampled : checkedSeconds);
    const sampler = seesCauses ? samplerOf(context, stage, causes.perf) : undefined;
    const measured = await loadOf(context, long, sampler?.observer);
    if (!isChecked) alone.sides.push({ variant: name, phase: phaseOf(context, long, measured) });
    isChecked = true;
    if (sampler !== undefined && seesCauses)
      why.sides.push(await causesOf(context, stage, causes, sampler.seenIn(measured)));
  } catch (error) {
    context.signal.throwIfAborted();
    const { missing } = isChecked ? why : alone;
    missing.push(inALine(error));
  } finally {
    await stage?.stop();
  }
}

const lastingStage = (stage: Stage, seconds: number): Stage => ({
  ...stage,
  planned: lasting(stage.planned, seconds),
});

/** Loads the side, the only one. @param more observes the load besides its usual observers */
async function loadOf(context: LoadContext, stage: Stage, more?: Observer): Promise<Measurement> {
  // k6 appends to its files.
  const folder = await mkdtemp(join(context.folder, 'k6-'));
  return loadAlone(context, stage, folder, more);
}

/** @throws Disturbance if too little is known of the cores' use */
function phaseOf({ plan }: RunContext, { planned, server }: Stage, measured: Measurement): Phase {
  const phases = phasesOf(measured, plan, server.atAddress === undefined);
  requireSampled(planned, measured.samples, phases);
  return phases[0] as Phase;
}

/** What perf's samples are of. */
interface Sampled {
  /** What perf has written. */
  file: string;
  /** All that ended while perf looked on, connects and warm-up too. */
  requests: number;
  /** CPU time that these took. */
  cpuSeconds: number;
}

/** Has perf sample a load. Where perf does not begin, the load is as it is without, and seenIn throws perf's error. */
function samplerOf(context: RunContext, { server }: Stage, perf: string) {
  const started = server as StartedServer;
  const file = join(context.folder, 'samples');
  const { name, begin } = perfObserver(context, started, perf, samplerArgs(), file);
  let [failure, begunSeconds]: [unknown, number] = [undefined, 0];
  const observer: Observer = {
    name,
    async begin(load) {
      begunSeconds = started.usage().cpuSeconds;
      try {
        return await begin(load);
      } catch (error) {
        failure = error;
        return { end: () => [] };
      }
    },
  };
  const seenIn = (measured: Measurement): Sampled => {
    if (failure !== undefined) throw failure;
    const cpuSeconds = started.usage().cpuSeconds - begunSeconds;
    return { file, requests: requestsOf(measured), cpuSeconds };
  };
  return { observer, seenIn };
}

/** Reads perf's samples, and loads the side once more while perf counts its calls. */
async function causesOf(
  context: LoadContext,
  stage: Stage,
  { perf, cpuMicrosOf, calls, folder }: Causes,
  { file, requests, cpuSeconds }: Sampled,
): Promise<WhySide> {
  const { name } = stage.planned.variant;
  const server = stage.server as StartedServer;
  const parts = await partsOf({ perf, calls }, server, file, context.signal);
  if (parts.sampledSeconds < leastSampled * cpuSeconds)
    throw new UserError(
      `perf saw ${percent(parts.sampledSeconds / cpuSeconds)} of the CPU time of ${name}`,
    );
  const counts = join(context.folder, 'counts');
  const counter = perfObserver(context, server, perf, counterArgs(parts.callsSeen), counts);
  const counted = await loadOf(context, lastingStage(stage, perfLoadSeconds.counted), counter);
  await mkdir(join(folder, stacksFolder), { recursive: true });
  const stacks = [...parts.stacks].map(([stack, samples]) => `${stack} ${samples}\n`);
  await writeWhole(join(folder, stacksFile(name)), stacks.join(''));
  const countedRequests = requestsOf(counted);
  const cpuUs = (1e6 * cpuSeconds) / requests;
  return {
    variant: name,
    requests,
    countedRequests,
    cpuUs,
    ...countsIn(textOf(counts), countedRequests),
    // The machine may be slower for one side's load. The parts then still make up what the rounds have seen.
    ...parts.of(cpuMicrosOf(name) ?? cpuUs),
  };
}

/** Returns the number of requests, at least 1. */
const requestsOf = ({ results }: Measurement): number =>
  Math.max(
    1,
    total(results, ({ requests, warmupRequests }) => requests + warmupRequests),
  );

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
