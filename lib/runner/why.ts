// What the verdict is made of: loads the servers twice more while perf looks on, after the rounds. docs/why.md says how to read it.
import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { messageOf, UserError } from '../errors.ts';
import { linkOf, namesIn, textOf, writeWhole } from '../files.ts';
import { stacksFile, stacksFolder } from '../report/why.ts';
import { causeLine, lastLines, startChild, type Child } from '../process.ts';
import { perfCounts, type Why, type WhySide } from '../result/result.ts';
import type { Load } from '../scenario/load.ts';
import { isStarted, type StartedServer } from '../servers/index.ts';
import type { Group, RunContext, Stage } from './plan.ts';
import { openStages } from './round.ts';
import { underLoad, type Measurement } from './under-load.ts';

/** Load of a side, in seconds, while CPU time is sampled and while calls are counted. */
const whySeconds = { sampled: 2, counted: 0.5 };

/** About how long it takes with perf's own begin and end. */
export const secondsOfWhy = (sides: number): number => 3 + 3 * sides;

/** Samples a second of CPU time. */
const samplesPerSecond = 1999;
/** perf opens a file for each thread on each core. */
const mostOpened = 20_000;

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
  const { plan, interrupt, host } = context;
  const folder = join(context.folder, 'why');
  const { phases: _, ...scenario } = plan.scenario;
  const inside = { ...context, folder, store: null, begun: undefined, plan: { ...plan, scenario } };
  await mkdir(folder);
  try {
    for (const { sides, ...group } of plan.groups) {
      const asked = sides.filter(({ variant }) => names.has(variant.name));
      const elsewhere =
        host !== undefined
          ? asked
          : asked.filter(({ variant }) => variant.server.name === 'address');
      const here = asked.filter((one) => !elsewhere.includes(one));
      why.missing.push(
        ...elsewhere.map(({ variant }) => `${variant.name} was not started on this machine`),
      );
      if (here.length === 0) continue;
      try {
        why.sides.push(...(await sidesOf(inside, { ...group, sides: here }, perf, context.folder)));
      } catch (error) {
        interrupt.signal.throwIfAborted();
        why.missing.push(messageOf(error).replaceAll('\n', ' '));
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return why;
}

async function sidesOf(
  context: RunContext,
  group: Group,
  perf: string,
  runFolder: string,
): Promise<WhySide[]> {
  const { interrupt } = context;
  const stages = await openStages(context, group, { round: 1 });
  const unguards = stages.flatMap(({ server }) =>
    isStarted(server) ? [interrupt.guard(server.pid)] : [],
  );
  const servers = stages.map(({ server }) => server as StartedServer);
  const look = { context, group, stages, perf, calls: namesOfCalls() };
  try {
    const begunSeconds = servers.map((server) => server.usage().cpuSeconds);
    const sampled = await whileLookedAt(look, whySeconds.sampled, samplerArgs);
    const usedSeconds = servers.map((server) => server.usage().cpuSeconds);
    const parts = await Promise.all(
      servers.map((server, side) => partsOf(look, server, fileOf(look, side))),
    );
    const counted = await whileLookedAt(look, whySeconds.counted, (file, side) =>
      counterArgs(file, parts[side]?.callsSeen ?? []),
    );
    await writeStacks(runFolder, stages, parts);
    return stages.map(({ planned }, side) => {
      const measurement = sampled[side] as Measurement;
      const requests = requestsOf(measurement);
      return {
        variant: planned.variant.name,
        requests,
        cpuUs: (1e6 * ((usedSeconds[side] ?? 0) - (begunSeconds[side] ?? 0))) / requests,
        ...countsIn(textOf(fileOf(look, side)), requestsOf(counted[side] as Measurement)),
        ...(parts[side] as Parts).perRequest(requests),
      };
    });
  } finally {
    await Promise.all(stages.map((stage) => stage.stop()));
    for (const unguard of unguards) unguard();
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

const fileOf = ({ context }: Look, side: number): string => join(context.folder, `perf-${side}`);

/** All that ended while perf looked on, connects and warm-up too. At least 1. */
function requestsOf({ results }: Measurement): number {
  const all = results.reduce((sum, one) => sum + one.requests + one.warmupRequests, 0);
  return Math.max(1, all);
}

/** Loads the group for `seconds` a side while a perf looks at each side. */
async function whileLookedAt(
  look: Look,
  seconds: number,
  args: (file: string, side: number) => string[],
): Promise<Measurement[]> {
  const { context, group, stages, perf } = look;
  // k6 appends to its files.
  const folder = await mkdtemp(join(context.folder, 'k6-'));
  const watching: Child[] = [];
  try {
    for (const [side, { server }] of stages.entries()) {
      const processes = (server as StartedServer).processes();
      requireFewThreads(processes, context.plan.cores.serverCpus.length);
      const file = fileOf(look, side);
      const child = await startPerf(context, perf, [...args(file, side), '-p', processes.join()]);
      watching.push(child);
    }
    const sides = group.sides.map((one) => ({ ...one, load: shortened(one.load, seconds) }));
    const attempt = { round: 1, onLoad: () => undefined };
    return await underLoad(context, { ...group, sides }, stages, attempt, folder);
  } finally {
    await Promise.all(watching.map(endPerf));
  }
}

function requireFewThreads(processes: readonly string[], cores: number): void {
  const threads = processes.reduce((sum, pid) => sum + namesIn(`/proc/${pid}/task`).length, 0);
  if (threads * cores > mostOpened)
    throw new UserError(`a side has ${threads} threads, which are too many for perf`);
}

function shortened(
  { rate, requests: _, durationSeconds: __, searched: ___, ...load }: Load,
  seconds: number,
): Load {
  return rate === undefined
    ? { ...load, durationSeconds: seconds }
    : { ...load, rate, requests: Math.max(1, Math.round(rate * seconds)) };
}

/** Starts a perf that looks on once this returns. @throws UserError with its last line if it ends instead */
async function startPerf(
  { folder, plan, interrupt }: RunContext,
  perf: string,
  args: readonly string[],
): Promise<Child> {
  const logFile = join(folder, 'perf.log');
  const log = openSync(logFile, 'w');
  const child = await startChild({
    command: perf,
    args: [...args.slice(0, 1), '-D', '-1', '--control', 'fd:3,4', ...args.slice(1)],
    cpus: plan.cores.generatorCpus,
    env: perfEnvironment(),
    stdio: ['ignore', log, log, 'pipe', 'pipe'],
  }).finally(() => closeSync(log));
  const unguard = interrupt.guard(child.pid);
  void child.exited.then(unguard);
  const [order, answer] = child.process.stdio.slice(3) as [Writable, Readable];
  // It may have ended before it reads.
  order.on('error', () => undefined);
  order.write('enable\n');
  const isOn = await Promise.race([
    once(answer, 'data').then(() => true),
    child.exited.then(() => false),
  ]);
  if (isOn) return child;
  const reason = causeLine(await lastLines(logFile)) ?? 'it says nothing';
  throw new UserError(`perf does not look at these servers: ${reason}`);
}

/** A user's own settings change what perf prints. */
const perfEnvironment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PERF_CONFIG: '/dev/null',
  LC_ALL: 'C',
});

/** perf writes what it has on INT. */
async function endPerf(child: Child): Promise<void> {
  if (!child.hasExited()) child.process.kill('SIGINT');
  const timer = setTimeout(() => void child.stop(0), 10_000);
  await child.exited;
  clearTimeout(timer);
}

const samplerArgs = (file: string): string[] =>
  `record -q -B -N -g -e cpu-clock --freq ${samplesPerSecond} --max-size=200M --output`
    .split(' ')
    .concat(file);

/** Each tracepoint makes perf's end longer: only those of calls that were seen in samples. */
const counterArgs = (file: string, calls: readonly string[]): string[] => [
  'stat',
  '-x;',
  '-o',
  file,
  '-e',
  [
    'raw_syscalls:sys_enter',
    ...perfCounts.map(eventOf),
    ...calls.map((call) => `syscalls:sys_enter_${call}`),
  ].join(),
];

/** "context-switches" of contextSwitches. */
const eventOf = (count: string): string =>
  count.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Reads what `perf stat -x;` writes; a machine without hardware counters has "<not supported>" for some. */
export function countsIn(text: string, requests: number): Pick<WhySide, 'calls' | 'counts'> {
  const rows = text.split('\n').map((line) => line.split(';'));
  const all = new Map(
    rows.flatMap(([count = '', , event]) =>
      event !== undefined && /^\d+$/.test(count)
        ? [[event.replace(/:u$/, ''), Number(count) / requests] as const]
        : [],
    ),
  );
  const named = [...all].flatMap(([event, perRequest]) => {
    const [, name] = /^syscalls:sys_enter_(\w+)$/.exec(event) ?? [];
    return name === undefined ? [] : [{ name, perRequest }];
  });
  const counts: WhySide['counts'] = { calls: all.get('raw_syscalls:sys_enter') ?? 0 };
  for (const name of perfCounts) {
    const count = all.get(eventOf(name));
    if (count !== undefined) counts[name] = count;
  }
  return { calls: named.toSorted((a, b) => b.perRequest - a.perRequest), counts };
}

/** Names of the kernel's system calls, as it traces them. */
function namesOfCalls(): ReadonlySet<string> {
  const names = namesIn('/sys/kernel/tracing/events/syscalls').flatMap(
    (name) => /^sys_enter_(\w+)$/.exec(name)?.[1] ?? [],
  );
  if (names.length > 0) return new Set(names);
  throw new UserError(
    'the kernel does not show its system calls: run as root with tracefs mounted (mount -t tracefs tracefs /sys/kernel/tracing)',
  );
}

interface Parts {
  /** Samples by stack, "outermost;…;innermost". */
  stacks: ReadonlyMap<string, number>;
  callsSeen: string[];
  perRequest(requests: number): Pick<WhySide, 'cpu' | 'functions'>;
}

type Place = Pick<WhySide['cpu'][number], 'kind' | 'name'>;

const mostFunctions = 5;

/** Reads perf's samples of a side. */
async function partsOf({ perf, calls }: Look, server: StartedServer, file: string): Promise<Parts> {
  const programs = new Set(server.processes().map((pid) => linkOf(`/proc/${pid}/exe`)));
  const places = new Map<string, Place & { samples: number }>();
  const functions = new Map<string, number>();
  const stacks = new Map<string, number>();
  let us = 0;
  for await (const { periodNs, frames } of samplesIn(perf, file)) {
    us = periodNs / 1000;
    const place = placeOf(frames, calls, programs);
    const key = `${place.kind} ${place.name}`;
    const known = places.get(key) ?? { ...place, samples: 0 };
    places.set(key, { ...known, samples: known.samples + 1 });
    const stack = foldedStack(frames);
    stacks.set(stack, (stacks.get(stack) ?? 0) + 1);
    const leaf = frames[0];
    if (place.kind === 'user' && leaf !== undefined && leaf.symbol !== '[unknown]')
      functions.set(leaf.symbol, (functions.get(leaf.symbol) ?? 0) + 1);
  }
  if (places.size === 0) throw new UserError('perf saw no sample of a side');
  const largestFirst = <T extends { us: number }>(all: T[]): T[] => all.sort((a, b) => b.us - a.us);
  return {
    stacks,
    callsSeen: [...places.values()].flatMap(({ kind, name }) => (kind === 'call' ? name : [])),
    perRequest: (requests) => ({
      // A count of samples is a Poisson variable.
      cpu: largestFirst(
        [...places.values()].map(({ samples, ...place }) => ({
          ...place,
          us: (us * samples) / requests,
          sdUs: (us * Math.sqrt(samples)) / requests,
        })),
      ),
      functions: largestFirst(
        [...functions].map(([name, samples]) => ({ name, us: (us * samples) / requests })),
      ).slice(0, mostFunctions),
    }),
  };
}

/** Kernel functions end with "_[k]"; an object stands for what has no symbol, once for a run of frames. */
function foldedStack(frames: readonly Frame[]): string {
  const names = frames
    .filter(({ object }) => object !== '[unknown]')
    .map(({ symbol, object }) => {
      if (object.startsWith('[kernel')) return `${symbol}_[k]`;
      return (symbol === '[unknown]' ? `[${basename(object)}]` : symbol).replaceAll(/[;\n]/g, ':');
    })
    .reverse();
  return names
    .filter((name, index) => name !== names[index - 1] || !name.startsWith('['))
    .join(';');
}

interface Frame {
  symbol: string;
  object: string;
}

interface Sample {
  periodNs: number;
  /** The innermost first. */
  frames: Frame[];
}

async function* samplesIn(perf: string, file: string): AsyncGenerator<Sample> {
  const child = await startChild({
    command: perf,
    args: ['script', '--no-inline', '-F', 'period,ip,sym,dso', '-i', file],
    env: perfEnvironment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    let sample: Sample | undefined;
    for await (const line of createInterface({ input: child.process.stdout as Readable })) {
      const [, symbol, object] = /^\s+[\da-f]+ (.*) \((.*)\)$/.exec(line) ?? [];
      if (symbol !== undefined && object !== undefined) sample?.frames.push({ symbol, object });
      else if (/^\s*\d+\s*$/.test(line)) sample = { periodNs: Number(line), frames: [] };
      else if (sample !== undefined) {
        yield sample;
        sample = undefined;
      }
    }
  } finally {
    await child.stop();
  }
}

const syscallEntry = /^(do_syscall_64|do_int80_syscall_32|invoke_syscall|do_el0_svc)/;
/** How the kernel calls the function of a system call; the compiler leaves any of them out. */
const callForms = /^(?:__(?:x64|arm64|ia32|do|se)_sys_|do_sys_|__sys_|ksys_|do_)(\w+?)(?:\.\w+)*$/;
/** The forms stand at the bottom of the stack; functions above them may be called alike. */
const mostFormFrames = 3;

/**
 * Returns the part that a sample belongs to: the system call at the bottom of its kernel stack, else what the kernel did, or the
 * object in user space. @param calls names of system calls. @param programs paths of the server's executables
 */
export function placeOf(
  frames: readonly Frame[],
  calls: ReadonlySet<string>,
  programs: ReadonlySet<string>,
): Place {
  const isKernel = ({ object }: Frame): boolean => /^\[(guest\.)?kernel|^\[\w+\]$/.test(object);
  const leaf = frames[0];
  if (leaf === undefined) return { kind: 'kernel', name: 'unknown' };
  const isVdso = /^\[(vdso|unknown|vvar|anon.*|heap)\]$/.test(leaf.object);
  if (isVdso || !isKernel(leaf)) return { kind: 'user', name: objectName(leaf.object, programs) };
  const above = frames.findIndex((frame) => !isKernel(frame) || frame.object === '[unknown]');
  // The outermost first.
  const stack = frames
    .slice(0, above === -1 ? undefined : above)
    .map(({ symbol }) => symbol)
    .reverse();
  const entry = stack.findIndex((symbol) => syscallEntry.test(symbol));
  if (entry !== -1)
    for (const symbol of stack.slice(entry + 1, entry + 1 + mostFormFrames)) {
      const name = callForms.exec(symbol)?.[1]?.replace(/^openat2$/, 'openat') ?? '';
      const call = [name, `${name}64`].find((one) => calls.has(one));
      if (call !== undefined) return { kind: 'call', name: call };
    }
  const [outermost = ''] = stack;
  if (entry !== -1 || /^entry_|^(do_)?syscall|^__(x64|arm64)_sys|^exit_to_user/.test(outermost))
    return { kind: 'kernel', name: 'entering and leaving system calls' };
  if (/page_fault|^exc_page|^do_mem_abort/.test(outermost))
    return { kind: 'kernel', name: 'page faults' };
  if (/^asm_|_interrupt$|^ret_from_intr|^el\d+\w*_irq/.test(outermost))
    return { kind: 'kernel', name: 'interrupts' };
  return { kind: 'kernel', name: 'the rest of the kernel' };
}

function objectName(object: string, programs: ReadonlySet<string>): string {
  if (programs.has(object)) return 'own code';
  if (/^(\[unknown\]|\/\/anon|\[anon.*|\[heap\]|.*\/perf-\d+\.map|\/memfd:.*)$/.test(object))
    return 'code made at run time';
  // libssl.so.3 and libc-2.36.so are libssl and libc.
  return basename(object).replace(/(-[\d.]+)?\.so(\.[\d.]+)?$/, '');
}
