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
  /** Sum of the processes' resident sets (VmRSS). A page that n workers share counts n times. */
  rssBytes: number;
}

/** A call between look-ups costs one small read per task. */
const refreshMs = 1000;

/**
 * Returns a function that gives the use of the processes that `lookUp` finds. It never throws, and misses tasks shorter than a second.
 * @param proc the folder of the proc file system
 */
export function watchUsage(lookUp: () => string[], proc = '/proc'): () => TreeUsage {
  let cpuSeconds = 0;
  let rssBytes = 0;
  const tasks = watchTasks(() => {
    const processes = lookUp();
    const kilobytes = (pid: string) =>
      Number(/^VmRSS:\s+(\d+) kB/m.exec(textOf(`${proc}/${pid}/status`))?.[1] ?? 0);
    rssBytes = 1024 * total(processes, kilobytes);
    return processes;
  }, proc);
  return () => {
    const used = tasks();
    cpuSeconds += total([...used.values()], (seconds) => seconds);
    return { cpuSeconds, rssBytes: used.size === 0 ? 0 : rssBytes };
  };
}

/** Gives the CPU seconds of each task since the previous call, or since the task began. */
function watchTasks(lookUp: () => string[], proc: string): () => Map<string, number> {
  const lastSeen = new Map<string, number>();
  let refreshedAtMs = -Infinity;
  return () => {
    const nowMs = performance.now();
    if (nowMs - refreshedAtMs >= refreshMs) {
      for (const task of lookUp().flatMap((pid) => tasksOf(proc, pid)))
        lastSeen.set(task, lastSeen.get(task) ?? 0);
      refreshedAtMs = nowMs;
    }
    const used = new Map<string, number>();
    for (const [task, before] of lastSeen) {
      // The first field is in ns. Kernels without it have clock ticks.
      const schedstat = readIfThere(`${task}/schedstat`);
      const seconds = schedstat ? parseInt(schedstat) / 1e9 : statCpuSeconds(task);
      if (seconds === undefined) lastSeen.delete(task);
      else {
        // Less than before: a new task has got the id.
        used.set(task, seconds < before ? seconds : seconds - before);
        lastSeen.set(task, seconds);
      }
    }
    return used;
  };
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
    for (const [task, seconds] of tasks()) {
      // Field 39 of stat in proc(5), without the first two.
      if (!isFirst && seconds > 0 && cpus.includes(Number(statFields(task)?.[36] ?? NaN)))
        sum += seconds;
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
