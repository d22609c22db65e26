// Causes of the verdict: after the rounds, loads the servers twice more under perf. docs/why.md explains the result.
import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { total } from '../../analysis/statistics.ts';
import { messageOf, UserError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { writeWhole } from '../../writing.ts';
import { enumeration, percent } from '../../format.ts';
import { stacksFile, stacksFolder } from './report.ts';
import { limitChild, startChild, type Child } from '../../process.ts';
import { causeLine, lastLines } from '../../program-logs.ts';
import { perfCounts, type Why, type WhySide } from '../../result/why.ts';
import { atRateFor, type Load } from '../../scenario/load.ts';
import type { StartedServer } from '../../servers/index.ts';
import type { Group, PlannedVariant, RunContext, Stage } from '../../runner/plan.ts';
import {
  countsIn,
  eventOf,
  namesOfCalls,
  partsOf,
  perfEnvironment,
  perfSeconds,
  type Parts,
} from './perf-output.ts';
import { openStages } from '../../runner/round.ts';
import type { Observer } from '../../runner/observers/observer.ts';
import { underLoad, type Measurement } from '../../runner/under-load.ts';

/** Load of a side, in seconds, while CPU time is sampled and while calls are counted. */
const whySeconds = { sampled: 2, counted: 0.5 };

/** About how long it takes with perf's own begin and end. */
export const secondsOfWhy = (sides: number): number => 3 + 3 * sides;

/** Samples a second of CPU time. */
const samplesPerSecond = 1999;
/** Share of the CPU time. Below this, processes are missing. */
const leastSampled = 0.5;

/**
 * Loads the sides of each group that has started servers, and returns what the CPU time of a request is made of, by side. What
 * cannot be looked at is in `missing`, a line each. Leaves nothing running, and the sides' stacks in the run's folder.
 * @param names of the sides to look at
 * @param perf its path; an error: why there is none
 * @throws Interrupted after a signal
 */
export async function lookWhy(
  context: RunContext,
  names: ReadonlySet<string>,
  perf: string | UserError,
): Promise<Why> {
  const why: Why = { missing: [], sides: [] };
  if (typeof perf !== 'string') return { ...why, missing: [perf.message] };
  const { plan, signal } = context;
  const folder = join(context.folder, 'why');
  const { phases: _, ...scenario } = plan.scenario;
  const inside = { ...context, folder, sink: null, plan: { ...plan, scenario } };
  await mkdir(folder);
  const elsewhere: PlannedVariant[] = [];
  try {
    for (const { sides, ...group } of plan.groups) {
      const asked = sides.filter(({ variant }) => names.has(variant.name));
      const isLocal = ({ variant }: PlannedVariant) =>
        plan.cores.serverHost === undefined && variant.server.name !== 'address';
      const local = asked.filter(isLocal);
      elsewhere.push(...asked.filter((side) => !isLocal(side)));
      if (local.length === 0) continue;
      try {
        why.sides.push(
          ...(await sidesOf(inside, { ...group, sides: local }, perf, context.folder)),
        );
      } catch (error) {
        signal.throwIfAborted();
        why.missing.push(messageOf(error).replaceAll('\n', ' '));
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  if (elsewhere.length > 0) {
    const named = enumeration(elsewhere.map(({ variant }) => variant.name));
    why.missing.push(
      `${named} ${elsewhere.length === 1 ? 'was' : 'were'} not started on this machine`,
    );
  }
  return why;
}

async function sidesOf(
  context: RunContext,
  group: Group,
  perf: string,
  runFolder: string,
): Promise<WhySide[]> {
  const calls = await namesOfCalls(perf, context.signal);
  const stages = await openStages(context, group, { round: 1 });
  const servers = stages.map(({ server }) => server as StartedServer);
  const look = { context, group, stages, perf, calls };
  try {
    const begunSeconds = servers.map((server) => server.usage().cpuSeconds);
    const sampled = await whileLookedAt(look, whySeconds.sampled, samplerArgs);
    const usedSeconds = servers.map((server) => server.usage().cpuSeconds);
    const parts = await Promise.all(
      servers.map((server, side) => partsOf(look, server, fileOf(context, side), context.signal)),
    );
    const counted = await whileLookedAt(look, whySeconds.counted, (side) =>
      counterArgs(parts[side]?.callsSeen ?? []),
    );
    await writeStacks(runFolder, stages, parts);
    return stages.map(({ planned: { variant } }, side) => {
      const requests = requestsOf(sampled[side] as Measurement);
      const cpuSeconds = (usedSeconds[side] ?? 0) - (begunSeconds[side] ?? 0);
      const { sampledSeconds, of } = parts[side] as Parts;
      if (sampledSeconds < leastSampled * cpuSeconds)
        throw new UserError(
          `perf saw ${percent(sampledSeconds / cpuSeconds)} of the CPU time of ${variant.name}`,
        );
      const cpuUs = (1e6 * cpuSeconds) / requests;
      const countedRequests = requestsOf(counted[side] as Measurement);
      return {
        variant: variant.name,
        requests,
        countedRequests,
        cpuUs,
        ...countsIn(textOf(fileOf(context, side)), countedRequests),
        ...of(cpuUs),
      };
    });
  } finally {
    await Promise.all(stages.map((stage) => stage.stop()));
  }
}

/** Writes the stacks of each side in the folded format, for report.html, speedscope and the like. */
async function writeStacks(
  runFolder: string,
  stages: readonly Stage[],
  parts: readonly Parts[],
): Promise<void> {
  await mkdir(join(runFolder, stacksFolder), { recursive: true });
  for (const [side, { planned }] of stages.entries()) {
    const lines = [...(parts[side]?.stacks ?? [])].map(
      ([stack, samples]) => `${stack} ${samples}\n`,
    );
    await writeWhole(join(runFolder, stacksFile(planned.variant.name)), lines.join(''));
  }
}

interface Look {
  context: RunContext;
  group: Group;
  stages: readonly Stage[];
  perf: string;
  calls: ReadonlySet<string>;
}

const fileOf = ({ folder }: RunContext, side: number): string => join(folder, `perf-${side}`);

/** All that ended while perf looked on, connects and warm-up too. At least 1. */
const requestsOf = ({ results }: Measurement): number =>
  Math.max(
    1,
    total(results, ({ requests, warmupRequests }) => requests + warmupRequests),
  );

async function whileLookedAt(
  look: Look,
  seconds: number,
  args: (side: number) => string[],
): Promise<Measurement[]> {
  const { context, group, stages } = look;
  // k6 appends to its files.
  const folder = await mkdtemp(join(context.folder, 'k6-'));
  const short = stages.map((stage) => ({
    ...stage,
    planned: { ...stage.planned, load: shortened(stage.planned.load, seconds) },
  }));
  const attempt = { round: 1, onLoad: () => undefined };
  return underLoad(context, group, short, attempt, folder, [perfObserver(look, args)]);
}

/** Observes each side's processes by a perf of its own. */
function perfObserver({ context, stages, perf }: Look, args: (side: number) => string[]): Observer {
  return {
    name: 'what perf has seen',
    async begin() {
      const watching: Child[] = [];
      const endAll = async () => {
        await Promise.all(watching.map((child) => endPerf(child, context.signal)));
      };
      try {
        for (const [side, { server }] of stages.entries()) {
          const processes = (server as StartedServer).processes();
          const all = [...args(side), '-p', processes.join()];
          watching.push(await startPerf(context, perf, all, fileOf(context, side)));
        }
      } catch (error) {
        await endAll();
        throw error;
      }
      return {
        async end() {
          await endAll();
          return [];
        },
      };
    },
  };
}

function shortened(
  { rate, requests: _, durationSeconds: __, searched: ___, ...load }: Load,
  seconds: number,
): Load {
  if (rate === undefined) return { ...load, durationSeconds: seconds };
  return { ...load, ...atRateFor(rate, seconds) };
}

/**
 * Starts perf, which records when this returns. @param file receives its output. @throws UserError with its last line if it ends
 * instead
 */
async function startPerf(
  { folder, plan, signal }: RunContext,
  perf: string,
  args: readonly string[],
  file: string,
): Promise<Child> {
  const logFile = join(folder, 'perf.log');
  const [output, log] = [openSync(file, 'w'), openSync(logFile, 'w')];
  const child = await startChild({
    command: perf,
    args: [...args.slice(0, 1), '-D', '-1', '--control', 'fd:3,4', ...args.slice(1)],
    cpus: plan.cores.generatorCpus,
    env: perfEnvironment(),
    stdio: ['ignore', output, log, 'pipe', 'pipe'],
  }).finally(() => [output, log].forEach(closeSync));
  const [order, answer] = child.process.stdio.slice(3) as [Writable, Readable];
  // It may have ended before it reads.
  order.on('error', () => undefined).write('enable\n');
  const atEnd = limitChild(child, signal, perfSeconds);
  await Promise.race([once(answer, 'data'), child.exited]);
  if (atEnd()) throw new UserError(`perf does not begin within ${perfSeconds} s`);
  signal.throwIfAborted();
  if (!child.hasExited()) return child;
  const reason = causeLine(await lastLines(logFile)) ?? 'it says nothing';
  throw new UserError(`perf does not look at these servers: ${reason}`);
}

/** perf writes what it has on INT. */
async function endPerf(child: Child, signal: AbortSignal): Promise<void> {
  if (!child.hasExited()) child.process.kill('SIGINT');
  const atEnd = limitChild(child, signal, 10);
  await child.exited;
  atEnd();
}

/** Arguments of perf; the samples go to stdout. */
export const samplerArgs = (): string[] =>
  `record -q -B -N -g -e cpu-clock --freq ${samplesPerSecond} --max-size=200M --output -`.split(
    ' ',
  );

/** Each tracepoint makes perf's end longer: only those of calls that were seen in samples. */
const counterArgs = (calls: readonly string[]): string[] => [
  'stat',
  '-x;',
  '--log-fd',
  '1',
  '-e',
  [
    'raw_syscalls:sys_enter',
    ...perfCounts.map(eventOf),
    ...calls.map((call) => `syscalls:sys_enter_${call}`),
  ].join(),
];
