// CPU time and memory of a process tree, read from /proc.
import { processIds } from '../process.ts';
import { namesIn, readIfThere } from '../files.ts';

export interface TreeUsage {
  /** CPU seconds of all tasks that were ever seen in the tree, the ended ones with their last value. */
  cpuSeconds: number;
  /** Sum of the processes' resident sets (VmRSS), as ps shows them: a page that n workers share counts n times. */
  rssBytes: number;
}

/** Processes and memory are looked up at most this often, so that a call stays at one small read per task. */
const refreshMs = 1000;

/** `utime` and `stime` count in USER_HZ, which is 100 on every Linux that Node runs on. */
const clockTicksPerSecond = 100;

/**
 * Returns a function that tells what the tree below `rootPid` (that process included) has used. It never throws: for a
 * process that has ended, the CPU time last seen stays in the sum. A task that starts and ends between two look-ups is missed.
 * @param proc where the proc file system is mounted
 * @param lookUp gives the processes, where they are not the tree alone
 */
export function watchUsage(
  rootPid: number,
  proc = '/proc',
  lookUp = () => processTree(proc, String(rootPid)),
): () => TreeUsage {
  let cpuSeconds = 0;
  let rssBytes = 0;
  const tasks = watchTasks(() => {
    const processes = lookUp();
    rssBytes = processes.reduce((sum, pid) => sum + residentBytes(proc, pid), 0);
    return processes;
  }, proc);
  return () => {
    const used = tasks();
    for (const seconds of used.values()) cpuSeconds += seconds;
    return { cpuSeconds, rssBytes: used.size === 0 ? 0 : rssBytes };
  };
}

/** Returns a function that tells the CPU seconds of each task of these processes since the call before; for a new task, since it began. */
export function watchTasks(lookUp: () => string[], proc: string): () => Map<string, number> {
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
      const seconds = taskCpuSeconds(task);
      if (seconds === undefined) {
        lastSeen.delete(task);
        continue;
      }
      // Less than before: its id now belongs to a newcomer, whose clock started anew.
      used.set(task, seconds < before ? seconds : seconds - before);
      lastSeen.set(task, seconds);
    }
    return used;
  };
}

/** Returns a function that tells the CPU seconds of a process, with ended threads; the last ones when it has ended. */
export function watchProcess(pid: number, proc = '/proc'): () => number {
  let cpuSeconds = 0;
  return () => {
    cpuSeconds = statCpuSeconds(`${proc}/${pid}`) ?? cpuSeconds;
    return cpuSeconds;
  };
}

/** The process, then all its descendants. */
export function processTree(proc: string, root: string): string[] {
  const children = childrenByTask(proc, root) === undefined ? childrenByParent(proc) : undefined;
  const tree = [root];
  for (const pid of tree)
    tree.push(...((children === undefined ? childrenByTask(proc, pid) : children.get(pid)) ?? []));
  return tree;
}

/** From the kernel's own list; undefined where it was built without one (CONFIG_PROC_CHILDREN) or the process is gone. */
function childrenByTask(proc: string, pid: string): string[] | undefined {
  const lists = tasksOf(proc, pid).flatMap((task) => readIfThere(`${task}/children`) ?? []);
  return lists.length === 0
    ? undefined
    : lists.flatMap((list) => list.split(' ')).filter((child) => child.trim() !== '');
}

function childrenByParent(proc: string): Map<string, string[]> {
  const children = new Map<string, string[]>();
  for (const pid of processIds(proc)) {
    const parent = statFields(`${proc}/${pid}`)?.[1];
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  return children;
}

/** The first process of the tree that somebody stopped: by a signal (state T), or with a debugger (t). */
export function stoppedIn(rootPid: number, proc = '/proc'): number | undefined {
  const stopped = processTree(proc, String(rootPid)).find((pid) =>
    /^[Tt]$/.test(statFields(`${proc}/${pid}`)?.[0] ?? ''),
  );
  return stopped === undefined ? undefined : Number(stopped);
}

/** Their folders in /proc. */
function tasksOf(proc: string, pid: string): string[] {
  return namesIn(`${proc}/${pid}/task`).map((tid) => `${proc}/${pid}/task/${tid}`);
}

/** CPU seconds of one task: schedstat's first field (ns), or, on kernels without it, the clock ticks of stat. */
function taskCpuSeconds(task: string): number | undefined {
  const schedstat = readIfThere(`${task}/schedstat`);
  return schedstat === undefined ? statCpuSeconds(task) : Number(schedstat.split(' ', 1)[0]) / 1e9;
}

function statCpuSeconds(folder: string): number | undefined {
  const fields = statFields(folder);
  return fields === undefined
    ? undefined
    : (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond;
}

/** The fields of a stat file after the command name (which may itself hold spaces and brackets): state, ppid, pgrp, … utime at 11. */
export function statFields(folder: string): string[] | undefined {
  const stat = readIfThere(`${folder}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function residentBytes(proc: string, pid: string): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readIfThere(`${proc}/${pid}/status`) ?? '')?.[1];
  return Number(kilobytes ?? 0) * 1024;
}
