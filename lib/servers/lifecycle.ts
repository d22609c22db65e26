// The processes of a started server, how they end, and what its log says.
import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { printable, UserError } from '../errors.ts';
import { lastLines, processIds, sendIfThere, startChild, type Child } from '../process.ts';
import { ifThere, linkOf, namesIn, readIfThere, textOf } from '../files.ts';
import type { ServerSpec } from '../scenario/model.ts';
import type { RunningServer } from './server.ts';
import { processTree, statFields } from './usage.ts';

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

/** For the environment of one command, as env(1) takes it. What the command starts inherits it. */
export function newMark(): string {
  return `BAKEOFF_SIDE=${randomUUID()}`;
}

/** The ids of the process group that a command leads, and of all their descendants, as they run now. */
export function groupOf(pid: number): string[] {
  return withDescendants(processIds('/proc').filter((one) => runs(one, pid)));
}

/** The same, and all that have the command's mark. */
export function familyOf(pid: number, mark: string): string[] {
  return withDescendants(
    processIds('/proc').filter((one) => runs(one, pid) || (runs(one) && hasMark(one, mark))),
  );
}

function withDescendants(roots: readonly string[]): string[] {
  return [...new Set(roots.flatMap((root) => processTree('/proc', root)))].filter((one) =>
    runs(one),
  );
}

/** False of a process that hides its environment, or has written over it. */
function hasMark(pid: string, mark: string): boolean {
  return readIfThere(`/proc/${pid}/environ`)?.split('\0').includes(mark) === true;
}

/** The ids of all other processes that may write into a file: those that have inherited it may have left everything else. */
export function writersOf(file: string): string[] {
  const real = ifThere(() => realpathSync(file));
  if (real === undefined) return [];
  const mayWrite = (pid: string, descriptor: string): boolean =>
    (parseInt(/^flags:\s*(\d+)/m.exec(textOf(`/proc/${pid}/fdinfo/${descriptor}`))?.[1] ?? '0', 8) &
      3) !==
    0;
  return processIds('/proc').filter(
    (pid) =>
      pid !== String(process.pid) &&
      runs(pid) &&
      namesIn(`/proc/${pid}/fd`).some(
        (descriptor) =>
          linkOf(`/proc/${pid}/fd/${descriptor}`) === real && mayWrite(pid, descriptor),
      ),
  );
}

/** Its input ends when the process that started it does. */
const killMarked = `
  trap "" HUP INT TERM
  read -r nothing
  sleep 5
  for file in $(grep -lszxF "$0" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    kill -KILL "\${file%/environ}"
  done`;

/**
 * Starts a shell that sees to a command if this process is killed. The kernel sends TERM to the command's first process then
 * (startChild); 5 s later the shell kills everything that has the mark.
 * @returns ends the shell; may be called twice
 */
export async function guardMarked(mark: string): Promise<() => Promise<void>> {
  const { stop } = await startChild({
    command: 'sh',
    args: ['-c', killMarked, mark],
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  return () => stop(0);
}

/** The first line about a crash of a process, the first alarm of all, and the log's last line; without time and process ids. */
export interface LogAlarms {
  crash?: string;
  first?: string;
  last?: string;
}

/** h2o and nghttpd are one process each, which is gone after a crash; these are their last words, if any. */
const words: Record<ServerSpec['name'], { alarm?: RegExp; crash?: RegExp }> = {
  // Before it reads its config, nginx without root cannot open the log that it was built with; it goes on without.
  nginx: {
    alarm: /\[(?:alert|emerg)\](?! could not open error log file)/,
    crash: /\[alert\].* exited (?:on signal \d+|with fatal code)/,
  },
  h2o: { crash: /^received fatal signal \d+/ },
  nghttpd: { crash: /^terminate called|Assertion .* failed/ },
  command: {},
  address: {},
};

/** A server that complains of each request writes gigabytes, all alike. */
const mostBytes = 64 * 1024 * 1024;

/** Reads a server's log of one round. Never throws. */
export async function alarmsIn(logFile: string, server: ServerSpec['name']): Promise<LogAlarms> {
  const { alarm, crash } = words[server];
  const found: LogAlarms = {};
  const log = await open(logFile).catch(() => undefined);
  try {
    for await (const line of log?.readLines({ end: mostBytes }) ?? []) {
      const isCrash = crash?.test(line) ?? false;
      if (isCrash || alarm?.test(line)) found.first ??= withoutTime(line);
      if (isCrash) return { ...found, crash: withoutTime(line) };
    }
  } catch {
    // What was read before still holds.
  } finally {
    await log?.close();
  }
  const last = (await lastLines(logFile)).at(-1);
  return last === undefined ? found : { ...found, last: withoutTime(last) };
}

/** "2026/11/20 08:15:31 [alert] 7#7: worker process 12 exited on signal 11" is "[alert] worker process exited on signal 11". */
function withoutTime(line: string): string {
  return printable(line)
    .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '')
    .replace(/ \d+#\d+:(?: \*\d+)?/, '')
    .replace(/(process) \d+/, '$1')
    .slice(0, 300)
    .trim();
}
