// Locks: one for all runs, and locks of files. The kernel releases both when their holder ends.
import { once } from 'node:events';
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { hostname, userInfo } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, systemError } from '../errors.ts';
import { ifThere } from '../files.ts';
import { counts, duration } from '../format.ts';
import { listeningAt, listeningUnixSockets, processIds, socketsOf, userOf } from '../proc-files.ts';
import { startChild } from '../process.ts';
import { shownCommand } from '../secrets.ts';
import { fromCallersFolder } from '../setup/paths.ts';

/** The name fills the kernel's field, because Node before 22 pads shorter names. */
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

export function localRun(): Run {
  return { from: hostname(), about: aboutThis() };
}

/** How long a run waits for others, and the receiver of the line that names them. */
interface Wait {
  seconds: number;
  signal: AbortSignal;
  say(line: string): void;
}

interface Claim {
  /** The lock's name, for tests. Default: the machine's. */
  name?: string;
  /** The run that this process is a part of; parts of a run may measure at the same time. */
  run?: Run;
  /** Absent if the command has no --wait. */
  wait?: Wait;
}

/**
 * Waits until no other bakeoff of any user measures on this machine; call the returned function at the end of the run. Waiting runs get the
 * lock in order of arrival. It is an abstract unix socket, which the kernel releases at the end of the process. Each network namespace has
 * its own lock.
 * @throws UserError that names the other run; the signal's reason
 */
export async function oneRunAtATime({ name = machineName, run, wait }: Claim = {}): Promise<
  () => void
> {
  const address = `\0${name}`;
  const thisRun = run ?? localRun();
  const ofPart = `from ${thisRun.from}: ${thisRun.about}`;
  const about = run === undefined ? thisRun.about : ofPart;
  // A host may be this machine: then the run itself, or one of its parts, came first.
  const ofThisRun = (run === undefined ? [ofPart] : [ofPart, run.about]).map(printableLine);
  const say = wait?.say ?? console.error;
  let place: WaitingPlace | undefined;
  let refusals = 0;
  try {
    for (;;) {
      place?.requirePatience();
      if (place?.isOthersTurn()) {
        await pause(askAgainMs, wait?.signal);
        continue;
      }
      const release = await listen(address, () => `${about}\n${progressOfThis()}\n`);
      if (release !== undefined) {
        measuringSince = new Date();
        return release;
      }
      const answer = await ask(address);
      if (answer === undefined) {
        // If the holder has ended, the name is free. A holder that never listens is no run of bakeoff.
        refusals++;
        if (refusals > mostRefusals) {
          say("a process that is not a bakeoff run holds bakeoff's lock: this run measures anyway");
          return () => undefined;
        }
        await pause(refusedAgainMs, wait?.signal);
        continue;
      }
      if (ofThisRun.includes(answer.about)) return () => undefined;
      const holder = holderOf(name, answer);
      if (holder.isFalse) {
        say(
          `${holder.line} holds bakeoff's lock and does not answer as bakeoff does: root measures anyway`,
        );
        return () => undefined;
      }
      place ??= await waitInLine(name, holder.line, wait);
      await pause(askAgainMs, wait?.signal);
    }
  } finally {
    place?.leave();
  }
}

/**
 * Names the holder of the lock for people. For a process of another user it takes the user's name from the kernel, as the process's answer
 * may lie. `isFalse`: it is no run of bakeoff, so a run of root need not wait for it.
 */
function holderOf(name: string, { about, progress }: HolderAnswer) {
  const listener = listenerOn(name);
  const isAsItSays = listener === undefined || mayBeOfBakeoff(about, listener);
  const own = process.geteuid?.();
  if (!isAsItSays && own === 0 && listener.uid !== 0)
    return { isFalse: true, line: listener.description };
  const silent = 'it does not answer: it may be stopped (Ctrl-Z), which fg or kill ends';
  const parts = [about || silent];
  if (progress !== '') parts.push(progress);
  const says = parts.join('; ');
  if (listener === undefined || (isAsItSays && listener.uid === own))
    return { isFalse: false, line: says };
  const which = about === '' ? '; ' : ', which says: ';
  return { isFalse: false, line: listener.description + which + says };
}

interface WaitingPlace {
  /** The lock is free, and a run that came earlier has not had its time to take it. */
  isOthersTurn(): boolean;
  /** Throws UserError when the wait is over. */
  requirePatience(): void;
  leave(): void;
}

/**
 * How long a free lock is left to each run that came earlier. Waiting runs poll the lock every 500 ms; a stopped run must not block the
 * others.
 */
const headStartMs = 2000;
/** Any user may make sockets with such names: with more of them the wait is no longer. */
const mostHeadStarts = 10;

/**
 * Joins the runs that wait for a lock. Each listens at an abstract socket whose name begins with the lock's and ends with its time of
 * arrival. The kernel lists these names, and frees them with their processes.
 * @throws UserError that names the holder, without --wait
 */
async function waitInLine(name: string, holder: string, wait?: Wait): Promise<WaitingPlace> {
  const another = 'another run of bakeoff';
  if (wait === undefined || wait.seconds === 0)
    throw new UserError(
      `${another} is measuring (${holder}), and both would be slower: wait until it is done${wait ? ' (--wait 10m)' : ''}, or end it`,
    );
  const patience = duration(wait.seconds);
  const beganAtMs = performance.now();
  const common = `${name.replace(/\.+$/, '')} waits `;
  const socketName = `${common}${Date.now()} ${process.pid}`.padEnd(machineName.length, '.');
  const isEarlier = (other: string) => other.startsWith(`@${common}`) && other < `@${socketName}`;
  const countEarlier = (sockets: readonly { path: string }[]) =>
    sockets.filter(({ path }) => isEarlier(path)).length;
  const leave = await listen(`\0${socketName}`, () => '');
  const before = countEarlier(listeningUnixSockets());
  const verb = before === 1 ? 'waits' : 'wait';
  let others = '';
  if (before > 0) others = `; ${counts(before, 'other run')} ${verb} too, and came before`;
  wait.say(`waiting for ${another} to end, ${patience} at most: ${holder}${others}`);
  let freeSinceMs: number | undefined;
  return {
    isOthersTurn() {
      const sockets = listeningUnixSockets();
      if (sockets.some(({ path }) => path === `@${name}`)) {
        freeSinceMs = undefined;
        return false;
      }
      freeSinceMs ??= performance.now();
      const headStarts = Math.min(mostHeadStarts, countEarlier(sockets));
      return performance.now() - freeSinceMs < headStartMs * headStarts;
    },
    requirePatience() {
      if (performance.now() - beganAtMs > 1000 * wait.seconds)
        throw new UserError(
          `${another} is still measuring after ${patience} (${holder}): give a longer --wait, or end it`,
        );
    },
    leave: () => leave?.(),
  };
}

/** Throws the signal's reason. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal?.throwIfAborted());
}

/**
 * Listens at an address. Returns a function that closes the socket; undefined if another socket has the address.
 * @param answer sent to each client
 */
function listen(address: string, answer: () => string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      // A client that stays connected must not keep this process from ending.
      socket
        .on('error', () => undefined)
        .unref()
        .end(answer(), () => socket.destroy());
    });
    server.unref();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      const why = `cannot see whether another run of bakeoff is measuring: ${message}`;
      if (code === 'EADDRINUSE') resolve(undefined);
      else reject(new UserError(why));
    });
    server.listen(address, () => resolve(() => void server.close()));
  });
}

/** The holder's answer. `about` says who it is, and never changes; `progress` says since when it measures and how long it will take. */
interface HolderAnswer {
  about: string;
  progress: string;
}

/** Returns the holder's answer, with empty strings if it sends nothing in time; undefined if it has ended. */
async function ask(address: string): Promise<HolderAnswer | undefined> {
  let text = '';
  try {
    const socket = createConnection({ path: address, signal: AbortSignal.timeout(patienceMs) });
    for await (const more of socket.setEncoding('utf8')) {
      text += more;
      if (text.length > 1000) break;
    }
  } catch (error) {
    if (systemError(error).code === 'ECONNREFUSED') return undefined;
  }
  const [about = '', progress = ''] = text.split('\n').map(printableLine);
  return { about, progress };
}

/** Returns the process that listens at an abstract name, according to the kernel; undefined if it cannot be seen from here. */
function listenerOn(name: string) {
  const sockets = listeningAt(`@${name}`);
  const holds = (pid: string) => socketsOf(pid).some((socket) => sockets.includes(socket));
  const pid = processIds('/proc').find(holds);
  const uid = pid === undefined ? undefined : userOf(pid);
  if (pid === undefined || uid === undefined) return undefined;
  return { pid, uid, description: `process ${pid} of user ${uid}` };
}

/**
 * Returns whether the process that listens may be a run of bakeoff that gave this answer. A run from another host names its process on that
 * host.
 */
function mayBeOfBakeoff(answer: string, { pid, uid }: { pid: string; uid: number }): boolean {
  const isOwnUser = uid === process.geteuid?.();
  if (!isOwnUser && answer.startsWith(`process ${pid} of ${thisUser()}: `)) return false;
  return answer.startsWith(`process ${pid} of `) || /^from .+: process \d+ of /.test(answer);
}

function printableLine(line: string): string {
  return line.replace(/\p{C}/gu, '').slice(0, 300);
}

let measuringSince = new Date();
let expectedEndMs: number | undefined;

/** Sets the time that this process tells waiting runs: it measures for at most so long. */
export function expectToMeasure(seconds: number): void {
  expectedEndMs = performance.now() + 1000 * seconds;
}

/** "measuring since 2026-11-20 08:15 UTC, 2 min left at most by its plan" */
function progressOfThis(): string {
  const since = `measuring since ${measuringSince.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  if (expectedEndMs === undefined) return since;
  const secondsLeft = Math.round((expectedEndMs - performance.now()) / 1000);
  if (secondsLeft > 0) return `${since}, ${duration(secondsLeft)} left at most by its plan`;
  return `${since}, longer than planned`;
}

/** "process 123 of root: scenario aa, in /home/me", without flags: they may have a password. */
function aboutThis(): string {
  const words = process.argv.slice(2);
  const flag = words.findIndex((word) => word.startsWith('-'));
  const command = shownCommand(words.slice(0, flag < 0 ? words.length : flag).join(' '));
  return `process ${process.pid} of ${thisUser()}: ${command}, in ${fromCallersFolder('.')}`;
}

/** A container's user may have no name. */
function thisUser(): string {
  return ifThere(() => userInfo().username) ?? `user ${process.getuid?.()}`;
}

const conflict = 75;

/**
 * Takes an exclusive flock(2) on a file, which is made if missing. The lock lasts until the descriptor is closed, here and in children.
 * @returns the descriptor, or null if another process keeps the lock for `waitSeconds`
 */
export async function lockFile(file: string, waitSeconds = 0): Promise<number | null> {
  // A link's target would be written to.
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW;
  // Whoever may read the file may keep it locked.
  const descriptor = openSync(file, flags, 0o600);
  let isLocked = false;
  try {
    const child = await startChild({
      command: 'flock',
      args: `--exclusive --conflict-exit-code ${conflict} --timeout ${waitSeconds} 3`.split(' '),
      stdio: ['ignore', 'ignore', 'pipe', descriptor],
    });
    let complaint = '';
    child.process.stderr?.on('data', (text: Buffer) => void (complaint += text.toString()));
    const [code]: (number | null)[] = await once(child.process, 'close');
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

/** Names the process with the lock in words to append, such as " (process 123)". The content may be older than the lock. */
export function holder(file: string): string {
  const pid = readFileSync(file, 'utf8').trim();
  return /^\d+$/.test(pid) ? ` (process ${pid})` : '';
}
