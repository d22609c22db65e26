// CPU time and memory of processes, read from /proc; also of a user's own backends, which bakeoff does not start.
import { total } from '../analysis/statistics.ts';
import { namesIn, readIfThere, textOf } from '../files.ts';
import { ticksPerSecond } from '../machine/usage.ts';
import { byName } from '../present.ts';
import { counterNames } from '../result/result.ts';
import { listeningAt, processIds, socketsOf } from '../process.ts';
import { listeningSockets, type UpstreamAddress } from './ports.ts';

export interface TreeUsage {
  /** CPU seconds of all tasks seen so far; ended tasks count with their last value. */
  cpuSeconds: number;
  /** Seconds that these tasks waited for a core (sched-stats.rst); 0 on kernels that do not count it. */
  waitedSeconds: number;
  /** Sum of the processes' resident sets (VmRSS). A page that n workers share counts n times. */
  rssBytes: number;
  /** A process is stopped: by a signal, or by a debugger that is none of these processes. */
  stopped: boolean;
}

type TaskUse = Pick<TreeUsage, 'cpuSeconds' | 'waitedSeconds'>;

/** A call between look-ups costs one small read per task, and one per process. */
const refreshMs = 1000;

/**
 * Returns a function that gives the use of the processes that `lookUp` finds. It never throws, and misses tasks shorter than a second.
 * @param proc the folder of the proc file system
 */
export function watchUsage(lookUp: () => string[], proc = '/proc'): () => TreeUsage {
  let cpuSeconds = 0;
  let waitedSeconds = 0;
  let rssBytes = 0;
  let processes: string[] = [];
  const tasks = watchTasks(() => {
    processes = lookUp();
    const kilobytes = (pid: string) =>
      Number(/^VmRSS:\s+(\d+) kB/m.exec(textOf(`${proc}/${pid}/status`))?.[1] ?? 0);
    rssBytes = 1024 * total(processes, kilobytes);
    return processes;
  }, proc);
  return () => {
    const used = [...tasks().values()];
    cpuSeconds += total(used, (task) => task.cpuSeconds);
    waitedSeconds += total(used, (task) => task.waitedSeconds);
    return {
      cpuSeconds,
      waitedSeconds,
      rssBytes: used.length === 0 ? 0 : rssBytes,
      stopped: processes.some((pid) => isStopped(proc, pid, processes)),
    };
  };
}

function isStopped(proc: string, pid: string, own: readonly string[]): boolean {
  // Its first thread: the process's own file sums up all threads.
  const state = statFields(`${proc}/${pid}/task/${pid}`)?.[0];
  if (state !== 't') return state === 'T';
  // A command may be a server under strace.
  const tracer = /^TracerPid:\s+(\d+)/m.exec(textOf(`${proc}/${pid}/status`))?.[1];
  return tracer !== undefined && !own.includes(tracer);
}

/** Gives the use of each task since the previous call, or since the task began. */
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
        // Less than before: a new task has got the id.
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
  // In ns. Kernels without it have clock ticks.
  const schedstat = readIfThere(`${task}/schedstat`);
  if (schedstat) {
    const [ran = 0, waited = 0] = schedstat.split(' ').map(Number);
    return { cpuSeconds: ran / 1e9, waitedSeconds: waited / 1e9 };
  }
  const cpuSeconds = statCpuSeconds(task);
  return cpuSeconds === undefined ? undefined : { cpuSeconds, waitedSeconds: 0 };
}

/** Returns a function that gives a process's CPU seconds, ended threads included; the last value once it has ended. */
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

/** Counts of processes since they began. */
export type Counters = Record<(typeof counterNames)[number], number>;

/** Sums with ended threads and without ended children. Unreadable counters are 0. */
export function countersOf(pids: readonly string[]): Counters {
  const ticksToUs = 1e6 / ticksPerSecond;
  const sum = byName(counterNames, () => 0);
  const numberIn = (text: string, name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  for (const pid of pids) {
    const stat = (statFields(`/proc/${pid}`) ?? []).map(Number);
    const io = textOf(`/proc/${pid}/io`);
    // minflt, majflt, utime and stime of proc(5).
    sum.pageFaults += (stat[7] ?? 0) + (stat[9] ?? 0);
    sum.userCpuUs += ticksToUs * (stat[11] ?? 0);
    sum.systemCpuUs += ticksToUs * (stat[12] ?? 0);
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

/** The fields after the command name, which may have spaces and brackets: state, ppid, pgrp, …, utime at 11. */
export function statFields(folder: string): string[] | undefined {
  const stat = readIfThere(`${folder}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/**
 * Returns a function that gives the CPU seconds on `cpus`, since its first call, of the processes at these addresses and their
 * descendants; null if none listens in this network, or it is another user's. A task's time counts for its last core, exact for pinned
 * tasks.
 */
export function watchUpstreams(
  addresses: readonly UpstreamAddress[],
  cpus: readonly number[],
  proc = '/proc',
): () => number | null {
  if (addresses.length === 0) return () => 0;
  const listeners = listenersOn(addresses, proc);
  if (listeners === undefined) return () => null;
  // This process may be a descendant: systemd keeps the sockets of its services.
  const startedBy = (pid: string) => {
    const [tree, self] = [processTree(proc, pid), String(process.pid)];
    return pid !== self && tree.includes(self) ? [pid] : tree;
  };
  const tasks = watchTasks(() => [...new Set(listeners.flatMap(startedBy))], proc);
  let isFirst = true;
  let sum = 0;
  return () => {
    for (const [task, { cpuSeconds }] of tasks()) {
      // Field 39 of stat in proc(5), without the first two.
      if (!isFirst && cpuSeconds > 0 && cpus.includes(Number(statFields(task)?.[36] ?? NaN)))
        sum += cpuSeconds;
    }
    isFirst = false;
    return sum;
  };
}

/** The processes that have their listening sockets open, workers included; undefined if an address has none. */
function listenersOn(addresses: readonly UpstreamAddress[], proc: string): string[] | undefined {
  const inodes = addresses.map((address) =>
    'socket' in address
      ? listeningAt(address.socket, proc)
      : listeningSockets(proc)
          .filter(({ port }) => port === address.port)
          .map(({ inode }) => inode),
  );
  const wanted = new Set(inodes.flat());
  const holders = processIds(proc)
    .map((pid) => ({ pid, held: socketsOf(`${proc}/${pid}`).filter((inode) => wanted.has(inode)) }))
    .filter(({ held }) => held.length > 0);
  const isHeld = new Set(holders.flatMap(({ held }) => held));
  return inodes.every((some) => some.length > 0 && some.every((inode) => isHeld.has(inode)))
    ? holders.map(({ pid }) => pid)
    : undefined;
}
