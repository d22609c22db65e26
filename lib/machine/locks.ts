// Locks: one for all runs, and locks of files. The kernel releases both when their holder ends.
import { once } from 'node:events';
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { hostname, userInfo } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { ifThere } from '../files.ts';
import { duration } from '../format.ts';
import { listeningAt, processIds, socketsOf, startChild, userOf } from '../process.ts';
import { shownCommand } from '../secrets.ts';
import { fromCallersFolder } from '../setup/paths.ts';

/** As long as the kernel's field: Node before 22 pads a shorter name. */
export const machineName = 'server-bakeoff measures'.padEnd(107, '.');

/** A stopped process accepts connections and sends nothing. */
const patienceMs = 1000;
/** A holder that has ended frees the name within microseconds. */
const refusedAgainMs = 20;
const mostRefusals = 10;
const askAgainMs = 500;

/** Identifies a run to its parts on other hosts. `from`: the host that started it. */
export interface Run {
  from: string;
  about: string;
}

export function runHere(): Run {
  return { from: hostname(), about: aboutThis() };
}

/**
 * Returns once no other bakeoff of any user measures here; call the returned function at the end of the run. The kernel frees the lock,
 * an abstract unix socket, with its process. Each network namespace has its own.
 * @param run of which this process is a part, which may measure beside its other parts
 * @param wait how long, and what gets the line that names the other run; absent: the command has no --wait
 * @throws UserError that names the other run, or the signal's reason
 */
export async function oneRunAtATime(
  name = machineName,
  run?: Run,
  wait?: { seconds: number; signal: AbortSignal; say(line: string): void },
): Promise<() => void> {
  const address = `\0${name}`;
  const about = run === undefined ? aboutThis() : `from ${run.from}: ${run.about}`;
  const beganAtMs = performance.now();
  let isFirst = true;
  let refusals = 0;
  for (;;) {
    const server = await listen(address, about);
    if (server !== undefined) return () => server.close();
    const answer = await ask(address);
    if (answer === undefined) {
      // A holder that has ended frees the name; one that never listens is no run of bakeoff.
      refusals++;
      if (refusals > mostRefusals) {
        (wait?.say ?? console.error)(
          "a process that is no run of bakeoff holds bakeoff's lock: this run measures anyway",
        );
        return () => undefined;
      }
      await pause(refusedAgainMs, wait?.signal);
      continue;
    }
    if (run !== undefined && [about, run.about].map(printableLine).includes(answer))
      return () => undefined;
    const listener = listenerOn(name);
    const isAsItSays = listener === undefined || isOfBakeoff(answer, listener.pid);
    if (!isAsItSays && process.geteuid?.() === 0 && listener.uid !== 0) {
      const say = wait?.say ?? console.error;
      say(
        `${listener.words} holds bakeoff's lock and does not answer as bakeoff does: root measures anyway`,
      );
      return () => undefined;
    }
    const silent = 'it does not answer: it may be stopped (Ctrl-Z), which fg or kill ends';
    const holder = [answer || silent, ...(isAsItSays ? [] : [listener.words])].join('; ');
    const another = 'another run of bakeoff';
    if (wait === undefined || wait.seconds === 0)
      throw new UserError(
        `${another} is measuring (${holder}), and both would be slower: wait until it is done${wait ? ' (--wait 10m)' : ''}, or end it`,
      );
    const patience = duration(wait.seconds);
    if (performance.now() - beganAtMs > 1000 * wait.seconds)
      throw new UserError(
        `${another} is still measuring after ${patience} (${holder}): give a longer --wait, or end it`,
      );
    if (isFirst) wait.say(`waiting for ${another} to end, ${patience} at most: ${holder}`);
    isFirst = false;
    await pause(askAgainMs, wait.signal);
  }
}

/** Throws the signal's reason. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal?.throwIfAborted());
}

function listen(address: string, about: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      // A client that stays connected must not keep this process from ending.
      socket
        .on('error', () => undefined)
        .unref()
        .end(`${about}\n`, () => socket.destroy());
    });
    server.unref();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      const why = `cannot see whether another run of bakeoff is measuring: ${message}`;
      if (code === 'EADDRINUSE') resolve(undefined);
      else reject(new UserError(why));
    });
    server.listen(address, () => resolve(server));
  });
}

/** The holder's line; '' if it sends nothing in time, undefined if it has ended. */
async function ask(address: string): Promise<string | undefined> {
  let text = '';
  try {
    const socket = createConnection({ path: address, signal: AbortSignal.timeout(patienceMs) });
    for await (const more of socket.setEncoding('utf8')) {
      text += more;
      if (text.length > 1000 || text.includes('\n')) break;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return undefined;
  }
  return printableLine(text);
}

/** The process that listens at an abstract name, as the kernel has it; undefined if it is not to be seen from here. */
function listenerOn(name: string) {
  const sockets = listeningAt(`@${name}`, '/proc');
  const holds = (pid: string) => socketsOf(`/proc/${pid}`).some((one) => sockets.includes(one));
  const pid = processIds('/proc').find(holds);
  const uid = pid === undefined ? undefined : userOf(pid);
  return uid === undefined ? undefined : { pid, uid, words: `process ${pid} of user ${uid}` };
}

/** A run that was started on another host names its process there. */
function isOfBakeoff(answer: string, pid?: string): boolean {
  return answer.startsWith(`process ${pid} of `) || /^from .+: process \d+ of /.test(answer);
}

function printableLine(text: string): string {
  return text.split('\n', 1)[0]?.replace(/\p{C}/gu, '').slice(0, 300) ?? '';
}

const startedAt = new Date();

/** "process 123 of root: scenario aa, since 2026-11-20 08:15 UTC, in /home/me", without flags: they may have a password. */
function aboutThis(): string {
  const words = process.argv.slice(2);
  const flag = words.findIndex((word) => word.startsWith('-'));
  const command = shownCommand(words.slice(0, flag < 0 ? words.length : flag).join(' '));
  // A container's user may have no name.
  const user = ifThere(() => userInfo().username) ?? `user ${process.getuid?.()}`;
  return `process ${process.pid} of ${user}: ${command}, since ${startedAt.toISOString().slice(0, 16).replace('T', ' ')} UTC, in ${fromCallersFolder('.')}`;
}

const conflict = 75;

/**
 * Takes an exclusive flock(2) on a file, made if missing. The lock lasts until the descriptor is closed, here and in children.
 * @returns the descriptor, or null if another process keeps the lock for `waitSeconds`
 */
export async function lockFile(file: string, waitSeconds = 0): Promise<number | null> {
  // A link's target would be written to.
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW;
  const descriptor = openSync(file, flags, 0o666);
  let isLocked = false;
  try {
    const child = await startChild({
      command: 'flock',
      args: `--exclusive --conflict-exit-code ${conflict} --timeout ${waitSeconds} 3`.split(' '),
      stdio: ['ignore', 'ignore', 'pipe', descriptor],
    });
    let complaint = '';
    child.process.stderr?.on('data', (text: Buffer) => void (complaint += text.toString()));
    const [code] = (await once(child.process, 'close')) as [number | null];
    if (code !== 0 && code !== conflict)
      throw new UserError(
        `cannot lock ${file}: ${complaint.trim().split('\n')[0] || `flock ended with ${code}`}`,
      );
    isLocked = code === 0;
    return isLocked ? descriptor : null;
  } finally {
    if (!isLocked) closeSync(descriptor);
  }
}

export async function withLock<T>(
  file: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  let descriptor: number | null = null;
  while (descriptor === null) {
    signal.throwIfAborted();
    descriptor = await lockFile(file, 1);
  }
  try {
    return await work();
  } finally {
    closeSync(descriptor);
  }
}

export function writeHolder(lock: number, pid: number): void {
  ftruncateSync(lock);
  writeSync(lock, `${pid}\n`, 0);
}

/** Names the process with the lock: " (process 123)". The content may be older than the lock. */
export function holder(file: string): string {
  const pid = readFileSync(file, 'utf8').trim();
  return /^\d+$/.test(pid) ? ` (process ${pid})` : '';
}
