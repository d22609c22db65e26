// How a server ends: its processes, its last words, and alarms in its log.
import { randomUUID } from 'node:crypto';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { printable, UserError } from '../errors.ts';
import { readIfThere } from '../files.ts';
import { lastLines, processIds, sendIfThere, startChild, type Child } from '../process.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { processTree, statFields } from './usage.ts';

/** Workers may end by themselves after their master: h2o's key process then removes its folder in /tmp. */
const workersGraceMs = 1000;
const commandGraceMs = 5000;
const killedMs = 2000;
const pollMs = 10;

/**
 * Returns `died` and `stop` of a RunningServer. Once the first process has ended, ends the others and runs `cleanUp`.
 * @param members a command's processes, which all get TERM; absent: a known server, which passes TERM on
 */
export function watchLifecycle(
  who: string,
  child: Child,
  logFile: string,
  cleanUp: () => Promise<void>,
  members?: () => number[],
) {
  let stopping: Promise<void> | undefined;
  let ending: Promise<void> | undefined;
  const endRest = () =>
    (ending ??=
      members === undefined
        ? endAll(() => groupOf(child.pid).map(Number), workersGraceMs)
        : endAll(members, commandGraceMs, 'SIGTERM'));

  const gone = child.exited.then(async (exit) => {
    const left = members?.() ?? [];
    await endRest();
    // A folder that cannot be removed does not fail a round.
    await cleanUp().catch(() => undefined);
    return { ...exit, left };
  });

  const died = new Promise<string>((resolve) => {
    void gone.then(async ({ code, signal, left }) => {
      if (stopping !== undefined) return;
      if (left.length > 0 && code === 0)
        return resolve(
          `${who} went on in the background (pid ${left.join(', ')}), and was ended: keep it in the foreground, such as nginx -g 'daemon off;', lighttpd -D or caddy run`,
        );
      const last = lastWords(await lastLines(logFile), members === undefined ? 1 : 4);
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      resolve(`${who} ended ${how}${last === '' ? '' : `; its log ends: ${last}`}`);
    });
  });

  async function end() {
    await (members === undefined ? child.stop().catch(() => undefined) : endRest());
    await gone;
  }

  return { died, stop: () => (stopping ??= end()) };
}

function lastWords(lines: readonly string[], count: number): string {
  // Without a stack trace.
  const telling = lines.filter((line) => !/^(?:at .*|[\W\d_]*|Node\.js v[\d.]+)$/.test(line));
  return (telling.length === 0 ? lines : telling).slice(-count).join(' | ');
}

/** Does work that needs the server. Throws `died` as a UserError when the server ends, or the signal's reason. */
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

/** Sends `signal`, if given, and KILL after `graceMs`, until `find` finds no more. */
async function endAll(find: () => number[], graceMs: number, signal?: 'SIGTERM'): Promise<void> {
  const signalled = new Set<number>();
  const killAtMs = performance.now() + graceMs;
  const deadlineMs = killAtMs + killedMs;
  for (let left = find(); left.length > 0 && performance.now() < deadlineMs; left = find()) {
    for (const pid of left) {
      if (performance.now() >= killAtMs) sendIfThere(pid, 'SIGKILL');
      else if (signal !== undefined && !signalled.has(pid)) {
        signalled.add(pid);
        sendIfThere(pid, signal);
        // A stopped process gets the signal when it continues.
        sendIfThere(pid, 'SIGCONT');
      }
    }
    await delay(pollMs);
  }
}

/** Makes a variable for a command's environment, which its children inherit. */
export function newMark(): string {
  return `BAKEOFF_SIDE=${randomUUID()}`;
}

/** Returns the running processes of the group that `pid` leads, of environments with `mark`, and their descendants. */
export function groupOf(pid: number, mark?: string): string[] {
  const own = processIds('/proc').filter(
    (one) =>
      Number(runningFields(one)?.[2]) === pid ||
      (mark !== undefined && readIfThere(`/proc/${one}/environ`)?.split('\0').includes(mark)),
  );
  return [...new Set(own.flatMap((root) => processTree('/proc', root)))].filter(runningFields);
}

/** An ended process may stay in the table for a while. */
function runningFields(pid: string): string[] | undefined {
  const fields = statFields(`/proc/${pid}`);
  return fields !== undefined && /^[ZX]$/.test(fields[0] as string) ? undefined : fields;
}

/** Its input ends when bakeoff does. */
const killMarked = `
  trap "" HUP INT TERM
  read -r nothing
  sleep 5
  for file in $(grep -lszxF "$0" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    kill -KILL "\${file%/environ}"
  done`;

/** Starts a shell that kills everything with the mark 5 s after this process was killed. Returns a function that ends the shell. */
export async function guardMarked(mark: string): Promise<() => Promise<void>> {
  const { stop } = await startChild({
    command: 'sh',
    args: ['-c', killMarked, mark],
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'ignore', 'ignore'],
    onlyTerm: true,
  });
  return () => stop(0);
}

/** Without time and process ids: the first line about a crash, the first alarm, and the last line. */
export interface LogAlarms {
  crash?: string;
  first?: string;
  last?: string;
}

const alarmWords: Record<ServerSpec['name'], { alarm?: RegExp; crash?: RegExp }> = {
  // Without root it says so before it reads its config.
  nginx: {
    alarm: /\[(?:alert|emerg)\](?! could not open error log file)/,
    crash: /\[alert\].* exited (?:on signal \d+|with fatal code)/,
  },
  h2o: { crash: /^received fatal signal \d+/ },
  nghttpd: { crash: /^terminate called|Assertion .* failed/ },
  command: {},
  address: {},
};

/** A server may complain of each request. */
const mostLogBytes = 64 * 1024 * 1024;

export async function alarmsIn(logFile: string, server: ServerSpec['name']): Promise<LogAlarms> {
  const { alarm, crash } = alarmWords[server];
  const found: LogAlarms = {};
  const log = await open(logFile).catch(() => undefined);
  try {
    for await (const line of log?.readLines({ end: mostLogBytes }) ?? []) {
      const isCrash = crash?.test(line) ?? false;
      if (isCrash || alarm?.test(line)) found.first ??= withoutTime(line);
      if (isCrash) return { ...found, crash: withoutTime(line) };
    }
  } catch {
    // The lines read so far count.
  } finally {
    await log?.close();
  }
  const last = (await lastLines(logFile)).at(-1);
  return last === undefined ? found : { ...found, last: withoutTime(last) };
}

function withoutTime(line: string): string {
  return printable(line)
    .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '')
    .replace(/ \d+#\d+:(?: \*\d+)?/, '')
    .replace(/(process) \d+/, '$1')
    .slice(0, 300)
    .trim();
}
