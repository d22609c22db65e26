// Reads what perf has written: counts of system calls, and samples of CPU time by the part that they belong to.
import { closeSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { printable, UserError } from '../../errors.ts';
import { linkOf, textOf } from '../../files.ts';
import { userOf } from '../../proc-files.ts';
import { lastLine, limitChild, run, startChild, type ChildOptions } from '../../process.ts';
import { perfCounts, type WhySide } from '../../result/why.ts';
import type { StartedServer } from '../../servers/index.ts';
import { requireRunnable, unprivilegedUser } from '../../servers/rights.ts';

/** A user's own settings change what perf prints. */
export const perfEnvironment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PERF_CONFIG: '/dev/null',
  LC_ALL: 'C',
});

/** For each of perf's works beside the load: far more than it takes on a busy machine. */
export const perfSeconds = 60;

const perfHangs = `perf does not end within ${perfSeconds} s`;

/** "context-switches" of contextSwitches. */
export const eventOf = (count: string): string =>
  count.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Reads the output of `perf stat -x;`. A machine without hardware counters has "<not supported>" for some. */
export function countsIn(text: string, requests: number): Pick<WhySide, 'calls' | 'counts'> {
  const rows = text.split('\n').map((line) => line.split(';'));
  const all = new Map(
    rows
      .filter(([count = '']) => /^\d+$/.test(count))
      .map(([count, , event = '']) => [event.replace(/:u$/, ''), Number(count) / requests]),
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

/**
 * Returns the names of the kernel's system calls that perf may trace. As root, perf mounts tracefs if it is not mounted.
 * @throws UserError if perf may not trace
 */
export async function namesOfCalls(
  perf: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const { stdout, stderr } = await run({
    command: perf,
    args: ['list', 'syscalls:sys_enter_*'],
    env: perfEnvironment(),
    signal,
    limit: { seconds: perfSeconds, message: perfHangs },
  });
  const names = [...stdout.matchAll(/\bsyscalls:sys_enter_(\w+)/g)].flatMap(
    ([, name]) => name ?? [],
  );
  if (names.length > 0) return new Set(names);
  throw new UserError(
    `perf does not look at these servers: ${lastLine(stderr) || 'it lists no system calls: run as root'}`,
  );
}

export type Parts = Awaited<ReturnType<typeof partsOf>>;

type Place = Pick<WhySide['cpu'][number], 'kind' | 'name'>;

const mostFunctions = 5;

/**
 * Reads perf's samples of a side.
 * @param file that `perf record` wrote
 * @throws UserError if it has no sample
 */
export async function partsOf(
  { perf, calls }: { perf: string; calls: ReadonlySet<string> },
  server: StartedServer,
  file: string,
  signal: AbortSignal,
) {
  const programs = new Set(server.processes().map((pid) => linkOf(`/proc/${pid}/exe`)));
  const places = new Map<string, Place & { samples: number }>();
  const functions = new Map<string, number>();
  const stacks = new Map<string, number>();
  const addTo = (counts: Map<string, number>, name: string) =>
    counts.set(name, (counts.get(name) ?? 0) + 1);
  const reader = await readerOf(perf, server);
  let [all, sampledSeconds] = [0, 0];
  for await (const { periodNs, frames } of samplesIn(perf, file, reader, signal)) {
    all++;
    sampledSeconds += periodNs / 1e9;
    const place = placeOf(frames, calls, programs);
    const key = `${place.kind} ${place.name}`;
    places.set(key, { ...place, samples: (places.get(key)?.samples ?? 0) + 1 });
    addTo(stacks, foldedStack(frames));
    const leaf = frames[0]?.symbol ?? '[unknown]';
    if (place.kind === 'user' && leaf !== '[unknown]') addTo(functions, leaf);
  }
  if (all === 0) throw new UserError('perf saw no sample of a side');
  const largestFirst = <T extends { us: number }>(them: T[]) => them.sort((a, b) => b.us - a.us);
  return {
    /** Samples by stack, "outermost;…;innermost". */
    stacks,
    callsSeen: [...places.values()].flatMap(({ kind, name }) => (kind === 'call' ? name : [])),
    sampledSeconds,
    /**
     * Divides the CPU time of a request by the shares of the samples. The samples' own time is not used, because a virtual machine that
     * stalls loses some samples.
     */
    of(cpuUs: number): Pick<WhySide, 'cpu' | 'functions'> {
      const us = (samples: number) => (cpuUs * samples) / all;
      const cpu = [...places.values()].map(({ samples, ...place }) => ({
        ...place,
        us: us(samples),
        // A count of samples is a Poisson variable.
        sdUs: us(Math.sqrt(samples)),
      }));
      const named = [...functions].map(([name, samples]) => ({ name, us: us(samples) }));
      return { cpu: largestFirst(cpu), functions: largestFirst(named).slice(0, mostFunctions) };
    },
  };
}

/**
 * Returns a stack in the folded format. Names of kernel functions end with "_[k]". An object's name stands for a run of frames without
 * symbols.
 */
function foldedStack(frames: readonly Frame[]): string {
  const names = frames
    .filter(({ object }) => object !== '[unknown]')
    .map(({ symbol, object }) => {
      if (isKernel(object)) return `${symbol}_[k]`;
      return (symbol === '[unknown]' ? `[${basename(object)}]` : symbol).replaceAll(/[;\n]/g, ':');
    })
    .reverse();
  return names
    .filter((name, index) => name !== names[index - 1] || !name.startsWith('['))
    .join(';');
}

/**
 * Returns whether an object is the kernel or one of its modules, such as [kernel.kallsyms] and [veth]. A process has objects in brackets
 * too, which are excluded.
 */
const isKernel = (object: string): boolean =>
  /^\[(guest\.)?kernel|^\[\w+\]$/.test(object) &&
  !/^\[(vdso|unknown|vvar|anon.*|heap)\]$/.test(object);

interface Frame {
  symbol: string;
  object: string;
}

interface Sample {
  periodNs: number;
  /** The innermost first. */
  frames: Frame[];
}

/** Limit of perf's memory, because a file with symbols may be endless. */
const mostMemoryBytes = 1e9;

/** CAP_SYSLOG, which shows the addresses of the kernel's functions. */
const seesKernel = (): boolean => {
  const [, effective = '0'] = /^CapEff:\s*(\w+)/m.exec(textOf('/proc/self/status')) ?? [];
  return ((BigInt(`0x${effective}`) >> 34n) & 1n) === 1n;
};

/**
 * Returns the user as whom perf reads samples. perf opens all programs and symbol maps (/tmp/perf-PID.map) that processes name, and
 * follows links there. So for servers that do not run as root, this is a user who owns nothing.
 */
async function readerOf(perf: string, server: StartedServer): Promise<ChildOptions['user']> {
  const isRoots = server.processes().some((pid) => userOf(pid) === 0);
  const user = isRoots ? undefined : unprivilegedUser();
  await requireRunnable(perf, user);
  return user && (seesKernel() ? { ...user, keeps: 'syslog' } : user);
}

async function* samplesIn(
  perf: string,
  file: string,
  user: ChildOptions['user'],
  signal: AbortSignal,
): AsyncGenerator<Sample> {
  const samples = openSync(file, 'r');
  const child = await startChild({
    command: perf,
    args: ['script', '--no-inline', '-F', 'period,ip,sym,dso', '-i', '-'],
    before: [['prlimit', `--data=${mostMemoryBytes}`, '--']],
    user,
    env: perfEnvironment(),
    stdio: [samples, 'pipe', 'ignore'],
  }).finally(() => closeSync(samples));
  const atEnd = limitChild(child, signal, perfSeconds);
  try {
    let sample: Sample | undefined;
    for await (const raw of createInterface({ input: child.process.stdout as Readable })) {
      // The names are the server's.
      const line = printable(raw);
      const [, symbol, object] = /^\s+[\da-f]+ (.*) \((.*)\)$/.exec(line) ?? [];
      if (symbol !== undefined && object !== undefined) sample?.frames.push({ symbol, object });
      else if (/^\s*\d+\s*$/.test(line)) sample = { periodNs: Number(line), frames: [] };
      else if (sample !== undefined) {
        yield sample;
        sample = undefined;
      }
    }
    signal.throwIfAborted();
    if (atEnd()) throw new UserError(perfHangs);
  } finally {
    atEnd();
    await child.stop();
  }
}

const syscallEntry = /^(do_syscall_64|do_int80_syscall_32|invoke_syscall|do_el0_svc)/;
/** The names that the kernel gives to the function of a system call. The compiler may leave any of them out. */
const callForms = /^(?:__(?:x64|arm64|ia32|do|se)_sys_|do_sys_|__sys_|ksys_|do_)(\w+?)(?:\.\w+)*$/;
/** These names are looked for in so many frames at the bottom of the stack; functions above may have similar names. */
const mostFormFrames = 3;

/**
 * Returns the part that a sample belongs to: the system call at the bottom of its kernel stack, else what the kernel did, or the object
 * in user space.
 * @param calls names of system calls
 * @param programs paths of the server's executables
 */
export function placeOf(
  frames: readonly Frame[],
  calls: ReadonlySet<string>,
  programs: ReadonlySet<string>,
): Place {
  const leaf = frames[0];
  if (leaf === undefined) return { kind: 'kernel', name: 'unknown' };
  if (!isKernel(leaf.object)) return { kind: 'user', name: objectName(leaf.object, programs) };
  const above = frames.findIndex(({ object }) => !isKernel(object));
  // The outermost first.
  const stack = frames
    .slice(0, above === -1 ? undefined : above)
    .map(({ symbol }) => symbol)
    .reverse();
  const entry = stack.findIndex((symbol) => syscallEntry.test(symbol));
  if (entry !== -1)
    for (const symbol of stack.slice(entry + 1, entry + 1 + mostFormFrames)) {
      const name = callForms.exec(symbol)?.[1]?.replace(/^openat2$/, 'openat') ?? '';
      const call = [name, `${name}64`].find((form) => calls.has(form));
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
