// CPU time and memory of processes, read from /proc; also of a user's own backends, which bakeoff does not start.
import { lstatSync } from 'node:fs';
import path from 'node:path';
import { total } from '../analysis/statistics.ts';
import { namesIn, readIfThere, textOf } from '../files.ts';
import { statFields } from '../proc-files.ts';
import { ticksPerSecond, watchThrottling, type ThrottlingWatch } from '../machine/usage.ts';
import { byName } from '../present.ts';
import { counterNames } from '../result/result.ts';
import { listeningUnixSockets, livingFolder, processIds, socketsOf } from '../proc-files.ts';
import { listeningSockets, type UpstreamAddress } from './ports.ts';

export interface TreeUsage {
  /** CPU seconds so far, with those of processes that began and ended between two calls, see watchUsage. */
  cpuSeconds: number;
  /** Seconds that the tasks waited for a core (sched-stats.rst); 0 if the kernel does not count it. */
  waitedSeconds: number;
  /** Sum of the processes' resident sets (VmRSS). A page that n workers share counts n times. */
  rssBytes: number;
  /** Milliseconds for which CPU quotas of the processes' control groups held them back, as in ThrottlingWatch.read. */
  quotaThrottledMs: number;
  /** See ThrottlingWatch.quotas. */
  quotas: string;
  /** Whether a process is stopped by a signal, or by a debugger that is none of these processes. */
  stopped: boolean;
}

/** A server's use at an instant. `atMs`: since 1970; `cpuSeconds`: since the server's start. */
export interface ServerSample {
  atMs: number;
  cpuSeconds: number;
  rssBytes: number;
}

type TaskUse = Pick<TreeUsage, 'cpuSeconds' | 'waitedSeconds'>;

/** Time between two look-ups of processes. Between them, a call costs one small read per task and one per process. */
const refreshMs = 1000;

interface UsageOptions {
  /** Returns the CPU seconds of the processes' control group, which has no other processes; undefined if the group does not count them. */
  cpuSecondsOfGroup?: (() => number | undefined) | undefined;
  /** The folder of the proc file system. */
  proc?: string;
}

/**
 * Returns a function that returns the use of the processes that `lookUp` finds, and never throws. Waits and memory leave out tasks that
 * live less than a second. CPU seconds are those of the control group; without one, they include such short processes once their parent has
 * waited for them.
 */
export function watchUsage(
  lookUp: () => string[],
  { cpuSecondsOfGroup = () => undefined, proc = '/proc' }: UsageOptions = {},
): () => TreeUsage {
  let cpuSeconds = 0;
  let waitedSeconds = 0;
  let rssBytes = 0;
  let processes: string[] = [];
  let throttling: ThrottlingWatch | undefined;
  const reaped = watchReaped(proc);
  const tasks = watchTasks(() => {
    processes = lookUp();
    reaped.look(processes);
    const kilobytes = (pid: string) =>
      Number(/^VmRSS:\s+(\d+) kB/m.exec(textOf(`${livingFolder(pid, proc)}/status`))?.[1] ?? 0);
    rssBytes = 1024 * total(processes, kilobytes);
    return processes;
  }, proc);
  return () => {
    // This is read first: a child that ends between the two readings is then missing in this one, and does not count twice.
    reaped.read();
    const byTask = tasks();
    const used = [...byTask.values()];
    const ofTasks = total(used, (task) => task.cpuSeconds);
    cpuSeconds = cpuSecondsOfGroup() ?? cpuSeconds + ofTasks + reaped.notCounted(byTask);
    waitedSeconds += total(used, (task) => task.waitedSeconds);
    throttling ??= watchThrottling('/', processes);
    return {
      cpuSeconds,
      waitedSeconds,
      rssBytes: used.length === 0 ? 0 : rssBytes,
      quotaThrottledMs: throttling.read(),
      quotas: throttling.quotas,
      stopped: processes.some((pid) => isStopped(proc, pid, processes)),
    };
  };
}

/** A process whose children's CPU time is watched; times in seconds. */
interface Parent {
  parent: string;
  /** CPU time of the process itself, without its children. */
  used: number;
  /** CPU time of all descendants that were waited for, rounded down to clock ticks. */
  reaped: number;
  /** The part of `reaped` that was counted, here or as a descendant's own. */
  counted: number;
  hasReaped: boolean;
}

/**
 * Counts the CPU time of processes that no look-up has found. The kernel keeps it as the time of children that their parent has waited for.
 */
function watchReaped(proc: string) {
  const parents = new Map<string, Parent>();
  const readStat = (pid: string, watched: Parent) => {
    const stat = statFields(`${proc}/${pid}`);
    if (stat === undefined) return;
    [, watched.parent = ''] = stat;
    // cminflt, cutime and cstime of proc(5): no child runs without page faults.
    watched.hasReaped = Number(stat[8]) > 0;
    watched.reaped = (Number(stat[13]) + Number(stat[14])) / ticksPerSecond;
  };
  /** When a process ends, its parent has the CPU time of the process and its children in `reaped`. */
  const endOf = (ended: readonly Parent[]) => {
    for (const child of ended) {
      let waiter = parents.get(child.parent);
      while (waiter !== undefined && ended.includes(waiter)) waiter = parents.get(waiter.parent);
      if (waiter !== undefined) waiter.counted += child.used + child.counted;
    }
  };
  return {
    look(processes: readonly string[]): void {
      for (const pid of processes) {
        const known = parents.get(pid);
        const watched = known ?? { parent: '', used: 0, reaped: 0, counted: 0, hasReaped: false };
        parents.set(pid, watched);
        readStat(pid, watched);
      }
    },
    read(): void {
      for (const [pid, watched] of parents) if (watched.hasReaped) readStat(pid, watched);
    },
    /** Returns the new seconds that are in no task's use. @param byTask the use of all running tasks */
    notCounted(byTask: ReadonlyMap<string, TaskUse>): number {
      const running = new Set<string>();
      for (const [task, { cpuSeconds }] of byTask) {
        const pid = path.basename(path.dirname(path.dirname(task)));
        running.add(pid);
        const watched = parents.get(pid);
        if (watched !== undefined) watched.used += cpuSeconds;
      }
      const ended = [...parents].filter(([pid]) => !running.has(pid));
      endOf(ended.map(([, child]) => child));
      for (const [pid] of ended) parents.delete(pid);
      let seconds = 0;
      for (const watched of parents.values()) {
        const news = Math.max(0, watched.reaped - watched.counted);
        watched.counted += news;
        seconds += news;
      }
      return seconds;
    },
  };
}

/** Returns whether a process is stopped by a signal, or by a debugger that is none of these processes. */
export function isStopped(proc: string, pid: string, processes: readonly string[]): boolean {
  // The state of the first thread. The process's own file combines those of all threads.
  const state = statFields(`${proc}/${pid}/task/${pid}`)?.[0];
  if (state !== 't') return state === 'T';
  // A command may be a server under strace.
  const tracer = /^TracerPid:\s+(\d+)/m.exec(textOf(`${proc}/${pid}/status`))?.[1];
  return tracer !== undefined && !processes.includes(tracer);
}

/** Returns the use of each task since the previous call, or since the task began. */
function watchTasks(lookUp: () => string[], proc: string): () => Map<string, TaskUse> {
  const lastSeen = new Map<string, TaskUse>();
  let refreshedAtMs = -Infinity;
  return () => {
    const nowMs = performance.now();
    if (nowMs - refreshedAtMs >= refreshMs) {
      for (const task of lookUp().flatMap((pid) => tasksOf(proc, pid)))
        lastSeen.set(task, lastSeen.get(task) ?? noUse);
      refreshedAtMs = nowMs;
    }
    const used = new Map<string, TaskUse>();
    for (const [task, before] of lastSeen) {
      const now = useOf(task);
      if (now === undefined) lastSeen.delete(task);
      else {
        // If the time is less than before, a new task has got the id.
        const from = now.cpuSeconds < before.cpuSeconds ? noUse : before;
        used.set(task, {
          cpuSeconds: now.cpuSeconds - from.cpuSeconds,
          waitedSeconds: now.waitedSeconds - from.waitedSeconds,
        });
        lastSeen.set(task, now);
      }
    }
    return used;
  };
}

const noUse: TaskUse = { cpuSeconds: 0, waitedSeconds: 0 };

/** The task's use since it began; undefined if it has ended. */
function useOf(task: string): TaskUse | undefined {
  // The times are in ns. Kernels without schedstat only have clock ticks.
  const schedstat = readIfThere(`${task}/schedstat`);
  if (schedstat) {
    const [ran = 0, waited = 0] = schedstat.split(' ').map(Number);
    return { cpuSeconds: ran / 1e9, waitedSeconds: waited / 1e9 };
  }
  const cpuSeconds = statCpuSeconds(task);
  return cpuSeconds === undefined ? undefined : { cpuSeconds, waitedSeconds: 0 };
}

/** Returns a function that returns a process's CPU seconds, with those of its ended threads; once the process has ended, the last value. */
export function watchProcess(pid: number, proc = '/proc'): () => number {
  let cpuSeconds = 0;
  return () => {
    cpuSeconds = statCpuSeconds(`${proc}/${pid}`) ?? cpuSeconds;
    return cpuSeconds;
  };
}

export function processTree(proc: string, root: string): string[] {
  const byParent = childrenByTask(proc, root) === undefined ? childrenByParent(proc) : undefined;
  const tree = [root];
  for (const pid of tree)
    tree.push(...((byParent ? byParent.get(pid) : childrenByTask(proc, pid)) ?? []));
  return tree;
}

/** undefined on a kernel without CONFIG_PROC_CHILDREN, or if the process has ended. */
function childrenByTask(proc: string, pid: string): string[] | undefined {
  const lists = tasksOf(proc, pid).flatMap((task) => readIfThere(`${task}/children`) ?? []);
  return lists.length === 0 ? undefined : lists.flatMap((list) => list.match(/\d+/g) ?? []);
}

function childrenByParent(proc: string): Map<string, string[]> {
  const children = new Map<string, string[]>();
  for (const pid of processIds(proc)) {
    const parent = statFields(`${proc}/${pid}`)?.[1];
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return children;
}

function tasksOf(proc: string, pid: string): string[] {
  return namesIn(`${proc}/${pid}/task`).map((tid) => `${proc}/${pid}/task/${tid}`);
}

function statCpuSeconds(folder: string): number | undefined {
  const fields = statFields(folder);
  return fields && (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Counts of processes since they began; the names say what and in which unit. */
export type Counters = Record<(typeof counterNames)[number], number>;

/**
 * Sums over these processes, with ended threads and children that were waited for; context switches leave out the children. Counters that
 * cannot be read are 0.
 */
export function countersOf(pids: readonly string[]): Counters {
  const ticksToUs = 1e6 / ticksPerSecond;
  const sum = byName(counterNames, () => 0);
  const numberIn = (text: string, name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  for (const pid of pids) {
    const stat = (statFields(`/proc/${pid}`) ?? []).map(Number);
    const io = textOf(`/proc/${pid}/io`);
    const sumOf = (...fields: number[]) => total(fields, (field) => stat[field] ?? 0);
    // minflt, cminflt, majflt, cmajflt, utime, cutime, stime and cstime of proc(5).
    sum.pageFaults += sumOf(7, 8, 9, 10);
    sum.userCpuUs += ticksToUs * sumOf(11, 13);
    sum.systemCpuUs += ticksToUs * sumOf(12, 14);
    sum.readBytes += numberIn(io, 'rchar');
    sum.writtenBytes += numberIn(io, 'wchar');
    for (const task of tasksOf('/proc', pid)) {
      const status = textOf(`${task}/status`);
      sum.voluntarySwitches += numberIn(status, 'voluntary_ctxt_switches');
      sum.involuntarySwitches += numberIn(status, 'nonvoluntary_ctxt_switches');
    }
  }
  return sum;
}

/**
 * Returns a function that returns the CPU seconds on `cpus` of the processes at these addresses and their descendants, since its first
 * call. A task's time counts for the core that it ran on last, which is exact for pinned tasks. Returns null if nobody listens there in
 * this network namespace, or the listener is another user's. A socket without a file has no backend.
 */
export function watchUpstreams(
  addresses: readonly UpstreamAddress[],
  cpus: readonly number[],
  proc = '/proc',
): () => number | null {
  const served = addresses.filter((address) => !('socket' in address) || isThere(address.socket));
  if (served.length === 0) return () => 0;
  const listeners = listenersOn(served, proc);
  if (listeners === undefined) return () => null;
  // This process may be a descendant of theirs: systemd keeps the sockets of its services.
  const startedBy = (pid: string) => {
    const [tree, self] = [processTree(proc, pid), String(process.pid)];
    return pid !== self && tree.includes(self) ? [pid] : tree;
  };
  const tasks = watchTasks(() => [...new Set(listeners.flatMap(startedBy))], proc);
  let isFirst = true;
  let sum = 0;
  return () => {
    for (const [task, { cpuSeconds }] of tasks()) {
      // The core that the task ran on last: field 39 of stat in proc(5), without the first two.
      if (!isFirst && cpuSeconds > 0 && cpus.includes(Number(statFields(task)?.[36] ?? NaN)))
        sum += cpuSeconds;
    }
    isFirst = false;
    return sum;
  };
}

/** Returns false only if there is no such file. In a folder that is closed to this user a file may exist. */
function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** Returns the processes that have the addresses' listening sockets open, workers included; undefined if an address has none. */
function listenersOn(addresses: readonly UpstreamAddress[], proc: string): string[] | undefined {
  const inodes = inodesOf(addresses, proc);
  const wanted = new Set(inodes.flat());
  const held = new Set<string>();
  const holders: string[] = [];
  for (const pid of processIds(proc)) {
    const sockets = socketsOf(pid, proc).filter((inode) => wanted.has(inode));
    if (sockets.length > 0) holders.push(pid);
    for (const inode of sockets) held.add(inode);
  }
  const isServed = (some: readonly string[]) =>
    some.length > 0 && some.every((inode) => held.has(inode));
  return inodes.every(isServed) ? holders : undefined;
}

/**
 * Returns the inodes of the sockets that listen at each address. Each of the kernel's tables is read only once, since that takes
 * milliseconds.
 */
function inodesOf(addresses: readonly UpstreamAddress[], proc: string): string[][] {
  const atPorts = inodesBy(listeningSockets(proc), ({ port }) => port);
  const atPaths = inodesBy(listeningUnixSockets(proc), (socket) => socket.path);
  return addresses.map(
    (at) => ('port' in at ? atPorts.get(at.port) : atPaths.get(at.socket)) ?? [],
  );
}

function inodesBy<T extends { inode: string }, K>(
  sockets: readonly T[],
  keyOf: (socket: T) => K,
): Map<K, string[]> {
  const inodes = new Map<K, string[]>();
  for (const socket of sockets) {
    const key = keyOf(socket);
    const before = inodes.get(key);
    if (before === undefined) inodes.set(key, [socket.inode]);
    else before.push(socket.inode);
  }
  return inodes;
}
