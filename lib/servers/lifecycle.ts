// The end of a started server, asked for or not.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import type { Child } from '../process.ts';
import { processIds, statFields } from './usage.ts';

export interface Lifecycle {
  /** As in RunningServer. */
  died: Promise<string>;
  stop(): Promise<void>;
}

/** What a server leaves behind may end by itself, in order: h2o's keeper of keys removes its folder in /tmp then. */
const groupEndsItselfMs = 300;
/** How long the kernel may take to end a killed group. */
const groupEndLimitMs = 2000;
const groupEndPollMs = 10;
/** What a command has left behind may take so long to end in order. */
const strayGraceMs = 2000;

/** What else there is to end of a command, which may have left its group. */
export interface Strays {
  /** Those that run now. @param byItself the command has ended without being asked to */
  find(byItself: boolean): number[];
  /** What is said of a command that has ended well while these ran on. */
  background(found: readonly number[]): string;
}

/**
 * `died` and `stop` of a RunningServer. However the child ends, the rest of its process group is ended (workers
 * outlive a master that was killed, and keep its port), then what has left the group, and `cleanUp` runs.
 */
export function watchLifecycle(name: string, child: Child, logFile: string, cleanUp: () => void, strays?: Strays): Lifecycle {
  let stopping: Promise<void> | undefined;

  const gone = child.exited.then(async (exit) => {
    const byItself = stopping === undefined;
    const find = (): number[] => strays?.find(byItself) ?? [];
    const left = find();
    await endGroup(child.pid);
    await endAll(find);
    try {
      cleanUp();
    } catch {
      // A folder that stays behind is no reason to fail a round.
    }
    return { ...exit, left };
  });

  const died = new Promise<string>((resolve) => {
    void gone.then(async ({ code, signal, left }) => {
      if (stopping !== undefined) return;
      if (strays !== undefined && left.length > 0 && code === 0) return resolve(strays.background(left));
      const last = lastWords(await lastLines(logFile), strays === undefined ? 1 : wordsOfStranger);
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      resolve(`${name} (pid ${child.pid}) ended ${how}${last === '' ? '' : `; its log ends: ${last}`}`);
    });
  });

  async function end(): Promise<void> {
    await child.stop().catch(() => undefined); // It ended between the look and the signal.
    await gone;
  }

  return { died, stop: () => (stopping ??= end()) };
}

/** Which line of what an unknown program says last is the one that says why, is not known. */
const wordsOfStranger = 4;

/** Without what a stack and its braces are made of. */
function lastWords(lines: readonly string[], count: number): string {
  const telling = lines.filter((line) => !/^(?:at .*|[\W\d_]*|Node\.js v[\d.]+)$/.test(line));
  return (telling.length === 0 ? lines : telling).slice(-count).join(' | ');
}

/** Does what needs the server to run, until it ends or the signal comes: throws UserError with its last words then, or the signal's reason. */
export async function whileItRuns<T>(died: Promise<string>, aborted: AbortSignal, work: (until: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const ended = died.then((line): never => {
    throw new UserError(line);
  });
  try {
    return await Promise.race([work(AbortSignal.any([over.signal, aborted])), ended]);
  } finally {
    over.abort();
  }
}

/** TERM, then KILL; those that they start meanwhile too. */
async function endAll(find: () => number[]): Promise<void> {
  const told = new Set<number>();
  const killAt = performance.now() + strayGraceMs;
  const deadline = killAt + groupEndLimitMs;
  for (let left = find(); left.length > 0 && performance.now() < deadline; left = find()) {
    const isLate = performance.now() >= killAt;
    for (const pid of left) {
      if (isLate) signal(pid, 'SIGKILL');
      else if (!told.has(pid)) signal(pid, 'SIGTERM');
      signal(pid, 'SIGCONT');
      told.add(pid);
    }
    await delay(groupEndPollMs);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended between the look and the signal.
  }
}

async function endGroup(group: number): Promise<void> {
  const killAt = performance.now() + groupEndsItselfMs;
  const deadline = killAt + groupEndLimitMs;
  try {
    while (groupRuns(group) && performance.now() < deadline) {
      // They may be stopped, and be stopped again by who loads them.
      process.kill(-group, performance.now() < killAt ? 'SIGCONT' : 'SIGKILL');
      await delay(groupEndPollMs);
    }
  } catch {
    // ESRCH: nobody of the group is left.
  }
}

/** Whether any process of the group runs. */
function groupRuns(group: number): boolean {
  return processIds('/proc').some((pid) => runs(pid, (processGroup) => processGroup === group));
}

/** Whether it runs, in such a group. Some that have ended may stay in the table until the system's first process asks for them. */
export function runs(pid: string, inGroup = (_: number) => true): boolean {
  const [state, , processGroup] = statFields(`/proc/${pid}`) ?? [];
  return state !== undefined && state !== 'Z' && state !== 'X' && inGroup(Number(processGroup));
}
