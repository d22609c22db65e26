// The end of a server: its processes, its last output, and alarms in its log.
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { printable, UserError } from '../errors.ts';
import { sendIfThere, type Child } from '../process.ts';
import { lastLines } from '../program-logs.ts';
import { shownCommand } from '../secrets.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { isServerName } from '../setup/servers.ts';
import type { ServerKind } from './kind.ts';
import { serverKinds } from './kinds.ts';
import { configIsSide } from './ports.ts';
import type { Scope } from './scope.ts';
import type { Scratch } from './scratch.ts';
import { textOf } from '../files.ts';

/** Workers may end by themselves after their master: for example, h2o's key process then removes its folder in /tmp. */
const workersGraceMs = 1000;
const commandGraceMs = 5000;
const pollMs = 10;

/**
 * Returns `died` and `stop` of a RunningServer. Once the first process has ended, waits for the others and calls the scope's `end`. Then
 * `gone` says how the first one ended, and has the ids of the processes that it left.
 * @param isCommand sends TERM to all processes; a known server passes it on itself
 * @param kills counts as `memoryKills`
 */
export function watchLifecycle(
  who: string,
  child: Child,
  logFile: string,
  scope: Pick<Scope, 'processes' | 'end'> & Partial<Pick<Scratch, 'exceeded'>>,
  isCommand: boolean,
  kills = memoryKills,
) {
  const isKilledForMemory = watchMemoryKills(kills);
  let stopping: Promise<void> | undefined;
  let waiting: Promise<void> | undefined;
  const members = () => scope.processes(true).map(Number);
  const restEnds = () =>
    (waiting ??= isCommand
      ? untilEnded(members, commandGraceMs, 'SIGTERM')
      : untilEnded(members, workersGraceMs));

  const gone = child.exited.then(async (exit) => {
    const left = isCommand ? members() : [];
    await restEnds();
    await scope.end();
    return { ...exit, left };
  });

  const died = new Promise<string>((resolve) => {
    void gone.then(async ({ code, signal, left }) => {
      if (stopping !== undefined) return;
      const exceeded = scope.exceeded?.();
      if (exceeded !== undefined) return resolve(`${who} ${exceeded}`);
      if (isKilledForMemory({ code, signal })) return resolve(`${who} ${killedForMemory}`);
      if (left.length > 0 && code === 0)
        return resolve(
          `${who} went on in the background (pid ${left.join(', ')}), and was ended: keep it in the foreground, such as nginx -g 'daemon off;', haproxy -db, apache2 -DFOREGROUND, lighttpd -D or caddy run; ${configIsSide}`,
        );
      const last = describeEnd(await lastLines(logFile), isCommand ? 4 : 1);
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      const noLog = signal === null ? '; its log is empty' : '';
      resolve(`${who} ended ${how}${last === '' ? noLog : `; its log ends: ${last}`}`);
    });
  });

  async function end() {
    if (isCommand) {
      await restEnds();
      await child.stop(0).catch(() => undefined);
    } else await child.stop().catch(() => undefined);
    await (child.hasExited() ? gone : scope.end());
  }

  return { died, gone, stop: () => (stopping ??= end()) };
}

/** The last lines of a log that say what is wrong, in one line. */
export function describeEnd(lines: readonly string[], count: number): string {
  // Leaves out a stack trace, and npm's hints.
  const untelling =
    /^(?:at .*|[\W\d_]*|Node\.js v[\d.]+|npm error(?:| To see .*| +npm run| A complete .*))$/;
  const telling = lines.filter((line) => !untelling.test(line));
  return (telling.length === 0 ? lines : telling).slice(-count).join(' | ');
}

/** Does work that needs the server. Throws `died` as a UserError if the server ends, or the signal's reason. */
export async function whileItRuns<T>(
  died: Promise<string>,
  aborted: AbortSignal,
  work: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const ended = died.then((line) => {
    throw new UserError(line);
  });
  try {
    return await Promise.race([work(AbortSignal.any([over.signal, aborted])), ended]);
  } finally {
    over.abort();
  }
}

/** Sends `signal`, if given, to each process that `find` finds, until there are none, but for `graceMs` at most. */
async function untilEnded(
  find: () => number[],
  graceMs: number,
  signal?: 'SIGTERM',
): Promise<void> {
  const signalled = new Set<number>();
  const deadlineMs = performance.now() + graceMs;
  for (let left = find(); left.length > 0 && performance.now() < deadlineMs; left = find()) {
    for (const pid of left) {
      if (signal === undefined || signalled.has(pid)) continue;
      signalled.add(pid);
      sendIfThere(pid, signal);
      // A stopped process gets the signal when it continues.
      sendIfThere(pid, 'SIGCONT');
    }
    await delay(pollMs);
  }
}

/** Lines of a log, without times and process ids. After the first line about a crash, no other is looked for. */
export interface LogAlarms {
  crash?: string;
  /** The last alarm, since it is the nearest to a failure. */
  alarm?: string;
  /** The log's last line, if it is none of the above. */
  last?: string;
  /** How often each kind of trouble with clients is in the log. nginx logs it at level info only. */
  clientErrors?: Record<string, number>;
}

/** A worker of nginx was ended by KILL. */
const killedWorker = /exited on signal 9$/;

const isWorkerKilledForMemory = watchMemoryKills();

/** nginx's line at level info, without the address and the request that follow. */
const clientError = /\[info\] \d+#\d+: \*\d+ (.* while [^,]+)/;
/** nginx has some twenty kinds. */
const mostKinds = 50;

/** A server may complain of each request. */
const mostLogBytes = 64 * 1024 * 1024;
/** In characters, twice of nginx's longest. The time that a pattern takes grows with the square of a line's length. */
const mostOfLine = 4096;

/** @param isKilledForMemory as watchMemoryKills returns */
export async function alarmsIn(
  logFile: string,
  server: ServerSpec['name'],
  isKilledForMemory = isWorkerKilledForMemory,
): Promise<LogAlarms> {
  const log: Partial<ServerKind['log']> = isServerName(server) ? serverKinds[server].log : {};
  const alarms: LogAlarms = {};
  let lastAlarm: string | undefined;
  const file = await open(logFile).catch(() => undefined);
  try {
    for await (const whole of file?.readLines({ end: mostLogBytes }) ?? []) {
      const line = whole.slice(0, mostOfLine);
      if (log.crash?.test(line)) {
        const text = withoutTime(line);
        const isForMemory =
          killedWorker.test(text) && isKilledForMemory({ code: null, signal: 'SIGKILL' });
        return { ...alarms, crash: isForMemory ? `${text}: it ${killedForMemory}` : text };
      }
      if (log.alarm?.test(line)) lastAlarm = line;
      const kind = server === 'nginx' ? clientError.exec(line)?.[1] : undefined;
      if (kind !== undefined) countKind((alarms.clientErrors ??= {}), kind);
    }
  } catch {
    // The lines read so far count.
  } finally {
    await file?.close();
  }
  if (lastAlarm !== undefined) alarms.alarm = withoutTime(lastAlarm);
  const last = (await lastLines(logFile)).at(-1);
  // This line ends Apache's start.
  const isOfStart = last === undefined || /\bAH00094: Command line: /.test(last);
  if (isOfStart) return alarms;
  const text = withoutTime(last);
  return text === alarms.alarm ? alarms : { ...alarms, last: text };
}

function countKind(counts: Record<string, number>, kind: string): void {
  const known = counts[kind];
  if (known !== undefined) counts[kind] = known + 1;
  else if (Object.keys(counts).length < mostKinds) counts[kind] = 1;
}

function withoutTime(line: string): string {
  return (
    shownCommand(printable(line.slice(0, mostOfLine)))
      // Hides the values of query parameters.
      .replace(/([?&][^=&\s"]*=)[^&\s"]+/g, '$1…')
      .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '')
      .replace(/ \d+#\d+:(?: \*\d+)?/, '')
      .replace(/(process) \d+/, '$1')
      .slice(0, 300)
      .trim()
  );
}

/**
 * Returns how many processes the kernel has killed since the machine's start because memory ran out, of the machine or of a control group;
 * 0 if it does not count them.
 */
function memoryKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(textOf('/proc/vmstat'))?.[1] ?? 0);
}

/** The exit code of a shell if its command was ended by KILL. */
const killedCode = 137;

interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/**
 * Begins to watch for processes that the kernel kills because memory ran out. The returned function says whether that happened to a
 * process: KILL has ended it, and the kernel's count has grown. It must not be used for processes that bakeoff kills.
 */
export function watchMemoryKills(count = memoryKills): (exit: Exit) => boolean {
  const before = count();
  return ({ code, signal }) => (signal === 'SIGKILL' || code === killedCode) && count() > before;
}

/** Follows the name of a process that the kernel has killed. */
export const killedForMemory =
  'was killed by the kernel, as memory ran out (of the machine, or of its container or service): give it more, or let the server use less';
