// The end of a started server, asked for or not.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import { processIds } from '../proc.ts';
import { sendIfThere, type Child } from '../process.ts';
import type { RunningServer } from './server.ts';
import { statFields } from './usage.ts';

/** A server's other processes may end by themselves: h2o's keeper of keys then removes its folder in /tmp. */
const groupEndsItselfMs = 1000;
/** How long the kernel may take to end a killed group. */
const groupEndLimitMs = 2000;
const groupEndPollMs = 10;
/** How long all processes of a command may take to end after TERM. */
const commandGraceMs = 5000;

/**
 * `died` and `stop` of a RunningServer. However the child ends, the rest of its process group (workers outlive a killed master, and keep
 * its port) or all members are ended, and `cleanUp` runs. Configured servers pass TERM on to their workers; all members get it.
 * @param members finds the running processes of a command, which may have left its group
 */
export function watchLifecycle(
  name: string,
  child: Child,
  logFile: string,
  cleanUp: () => void | Promise<void>,
  members?: () => number[],
): Pick<RunningServer, 'died' | 'stop'> {
  let stopping: Promise<void> | undefined;
  let ending: Promise<void> | undefined;
  const endRest = (): Promise<void> =>
    (ending ??=
      members === undefined
        ? endAll(() => groupIfThere(child.pid), groupEndsItselfMs)
        : endAll(members, commandGraceMs, 'SIGTERM'));

  const gone = child.exited.then(async (exit) => {
    const left = members?.() ?? [];
    await endRest();
    try {
      await cleanUp();
    } catch {
      // A folder that stays behind is no reason to fail a round.
    }
    return { ...exit, left };
  });

  const died = new Promise<string>((resolve) => {
    void gone.then(async ({ code, signal, left }) => {
      if (stopping !== undefined) return;
      if (left.length > 0 && code === 0)
        return resolve(
          `${name} (pid ${child.pid}) went on in the background (pid ${left.join(', ')}), and was ended: ${howToStay}`,
        );
      const last = lastWords(await lastLines(logFile), members === undefined ? 1 : wordsOfStranger);
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      resolve(
        `${name} (pid ${child.pid}) ended ${how}${last === '' ? '' : `; its log ends: ${last}`}`,
      );
    });
  });

  async function end(): Promise<void> {
    // It may have ended between the look and the signal.
    await (members === undefined ? child.stop().catch(() => undefined) : endRest());
    await gone;
  }

  return { died, stop: () => (stopping ??= end()) };
}

export const howToStay =
  "keep it in the foreground, such as nginx -g 'daemon off;', lighttpd -D or caddy run";

/** The last line of an unknown program need not be its reason. */
const wordsOfStranger = 4;

/** Without the lines of a stack. */
function lastWords(lines: readonly string[], count: number): string {
  const telling = lines.filter((line) => !/^(?:at .*|[\W\d_]*|Node\.js v[\d.]+)$/.test(line));
  return (telling.length === 0 ? lines : telling).slice(-count).join(' | ');
}

/** Does work that needs the server. Throws UserError with its last words when it ends, or the signal's reason. */
export async function whileItRuns<T>(
  died: Promise<string>,
  aborted: AbortSignal,
  work: (until: AbortSignal) => Promise<T>,
): Promise<T> {
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

/**
 * Sends each process a signal (absent: they end by themselves), and KILL after `graceMs`; also to those that they start meanwhile.
 * @param find gives processes, and groups by their numbers below 0
 */
async function endAll(find: () => number[], graceMs: number, signal?: 'SIGTERM'): Promise<void> {
  const told = new Set<number>();
  const killAt = performance.now() + graceMs;
  const deadline = killAt + groupEndLimitMs;
  for (let left = find(); left.length > 0 && performance.now() < deadline; left = find()) {
    const isLate = performance.now() >= killAt;
    for (const pid of left) {
      if (isLate) sendIfThere(pid, 'SIGKILL');
      else if (signal !== undefined && !told.has(pid)) {
        told.add(pid);
        sendIfThere(pid, signal);
        // A stopped process gets it once it goes on.
        sendIfThere(pid, 'SIGCONT');
      }
    }
    await delay(groupEndPollMs);
  }
}

/** The group by its number below 0, as long as one of it runs. */
function groupIfThere(group: number): number[] {
  return processIds('/proc').some((pid) => runs(pid, group)) ? [-group] : [];
}

/** Whether a process runs, in that group. Ended ones may stay in the table for a while. */
export function runs(pid: string, group?: number): boolean {
  const [state, , itsGroup] = statFields(`/proc/${pid}`) ?? [];
  return (
    state !== undefined &&
    state !== 'Z' &&
    state !== 'X' &&
    (group === undefined || Number(itsGroup) === group)
  );
}
